"""A process in which `gem` is not installed, and the stand-in is asked for; what a program without `gem` gives Ray."""

from __future__ import annotations

import importlib.util
from typing import Any

from gem_roll.stand_in import install_stand_in


def stand_in_for_gem() -> None:
    """Hide the `gem` that the tests' environment has."""
    find = importlib.util.find_spec

    def without_gem(name: str, package: str | None = None) -> Any:
        return None if name == "gem" else find(name, package)

    importlib.util.find_spec = without_gem
    assert install_stand_in()
