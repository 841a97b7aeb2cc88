"""The old home of `to_gymnasium` and `to_verifiers`, as `gem_core.interop`."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "GymnasiumEnv": "gem_gym",
    "to_gymnasium": "gem_gym",
    "VerifiersEnv": "gem_verifiers",
    "to_verifiers": "gem_verifiers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
