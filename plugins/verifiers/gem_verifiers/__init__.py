"""Environments of verifiers: installed modules with a `load_environment`, played here turn by turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_verifiers.exported import VerifiersEnv as VerifiersEnv
    from gem_verifiers.exported import to_verifiers as to_verifiers

_HOME = {
    "VerifiersEnv": "exported",
    "to_verifiers": "exported",
}

__all__ = [
    "VerifiersEnv",
    "to_verifiers",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
