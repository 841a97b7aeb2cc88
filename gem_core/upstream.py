"""Names that a module does not have: what other packages say of them, by entry points, so that the core knows none.

| group | entry point |
| --- | --- |
| `gem_core.hints` | a table: module -> name -> what to use instead |
| `gem_core.moved` | a module that was part of `gem_core` under the entry point's name; it answers with a warning |
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MOVED = {"rollout", "records", "training", "testing", "compat", "interop"}


def no_attribute(module: str, name: str) -> AttributeError:
    """The error about a name that a module does not have, with what to use instead if that is known."""
    hints = [] if name.startswith("_") else [entry.load() for entry in entry_points_of("gem_core.hints")]
    instead = next((table[module][name] for table in hints if name in table.get(module, {})), None)
    hint = f". {instead}; see plugins/compat/README.md" if instead else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


class MovedFinder:
    """Finds modules that have moved by their old names."""

    @staticmethod
    def find_spec(fullname: str, *others: Any) -> ModuleSpec | None:
        """The module under its old name, or `None` for any other name."""
        package, _, name = fullname.partition(".")
        head, _, rest = name.partition(".")
        if package != "gem_core" or head not in _MOVED:
            return None
        new = next((entry.value for entry in entry_points_of("gem_core.moved") if entry.name == head), None)
        target = f"{new}.{rest}".rstrip(".")
        if new is None or importlib.util.find_spec(target) is None:  # part of it is private now
            return None
        loader: Any = _MovedLoader(target)  # importlib.abc.Loader would cost an import
        return ModuleSpec(fullname, loader)


class _MovedLoader:
    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the new module in the place of the old."""
        warnings.warn(f"{module.__name__} is now {self.new}", FutureWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(self.new)


@functools.cache
def entry_points_of(group: str) -> tuple[Any, ...]:
    """The installed entry points of a group, looked for once per process: that takes milliseconds, and an import."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))
