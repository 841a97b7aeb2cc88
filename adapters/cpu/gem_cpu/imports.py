"""Changes modules of other packages when Python imports them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

Change = Callable[[Any], None]
"""Takes a module that was just imported."""


def change_modules(changes: Mapping[str, Change], replaced: Mapping[str, Path] | None = None) -> None:
    """Change modules of this process as soon as they are imported. No framework is imported early.

    Args:
        changes: for each module, a function to call once, after the module's own code ran.
        replaced: for each module, the file to load instead.
    """
    for name in [name for name in changes if name in sys.modules]:
        changes[name](sys.modules[name])
    later = {name: change for name, change in changes.items() if name not in sys.modules}
    sys.meta_path.insert(0, _Finder(later, replaced or {}))


class _Finder(MetaPathFinder):
    def __init__(self, changes: Mapping[str, Change], replaced: Mapping[str, Path]) -> None:
        self._changes = dict(changes)
        self._replaced = replaced

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if file := self._replaced.get(fullname):
            return importlib.util.spec_from_file_location(fullname, file)
        change = self._changes.pop(fullname, None)  # popped, because the next line calls this finder again
        spec = importlib.util.find_spec(fullname) if change else None
        if change and spec and spec.loader:
            both = _followed_by(spec.loader.exec_module, change)
            spec.loader.exec_module = both  # pyright: ignore[reportAttributeAccessIssue]
        return spec


def _followed_by(run: Callable[[ModuleType], None], change: Change) -> Callable[[ModuleType], None]:
    def both(module: ModuleType) -> None:
        run(module)
        change(module)

    return both
