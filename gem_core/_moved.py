"""Old names of modules that have left gem_core. They answer in this release, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MOVED = {
    "rollout": "gem_train.rollout",
    "records": "gem_train.records",
    "training": "gem_train",
    "testing": "gem_testing",
    "compat": "gem_compat",
    "interop": "gem_compat.interop",
}


class MovedFinder:
    """Finds modules by their old names."""

    @staticmethod
    def find_spec(fullname: str, *_: Any) -> ModuleSpec | None:
        """The module under its old name, or `None` for any other name."""
        package, _, name = fullname.partition(".")
        head, _, rest = name.partition(".")
        if package != "gem_core" or head not in _MOVED:
            return None
        return ModuleSpec(fullname, _MovedLoader(f"{_MOVED[head]}.{rest}".rstrip(".")))


class _MovedLoader:
    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the new module in the place of the old."""
        warnings.warn(f"{module.__name__} is now {self.new}", FutureWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(self.new)
