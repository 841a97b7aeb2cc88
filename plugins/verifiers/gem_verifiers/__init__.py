"""Environments of verifiers: installed modules with a `load_environment`, played here turn by turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_verifiers.exported import VerifiersEnv as VerifiersEnv
    from gem_verifiers.exported import to_verifiers as to_verifiers

__all__ = ["VerifiersEnv", "to_verifiers"]


def __getattr__(name: str) -> Any:
    """Load the name on first use, and with it the library."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gem_verifiers import exported

    return getattr(exported, name)
