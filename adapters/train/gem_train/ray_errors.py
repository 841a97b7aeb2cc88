"""Errors that come out of Ray."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from gem_core.errors import GemError


@contextmanager
def own_errors() -> Generator[None]:
    """Raise an error of this project as itself where Ray has wrapped it, once per actor on the way."""
    wrapper: type[Exception] = importlib.import_module("ray.exceptions").RayTaskError
    try:
        yield
    except wrapper as error:
        cause: Any = error
        while isinstance(cause, wrapper):
            cause = getattr(cause, "cause", None)
        if isinstance(cause, GemError):
            raise cause from error
        raise
