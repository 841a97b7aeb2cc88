"""Keyword arguments on the command line."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Sequence
from typing import Any

import typer

from gem_core.errors import printable


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments from `key=value`; a value that is neither JSON nor a Python literal is text.

    Raises:
        typer.BadParameter: a setting has no `=`, or no key.
    """
    kwargs: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{printable(setting)!r} is not KEY=VALUE", param_hint="--set")
        kwargs[key] = _value(value)
    return kwargs


def _value(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return parse(text)
    return text
