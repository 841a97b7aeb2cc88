"""Names of an adapter's package, loaded when asked for and once the framework is known to fit."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gem_core.specs import AdapterSpec
from gem_core.training.versions import require


def lazy_names(package: str, spec: AdapterSpec, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of an adapter's package.

    Args:
        package: its name.
        spec: what it asks of the framework.
        modules: of each name, the module of the package that has it. Importing that may import the framework.

    Returns:
        A function that raises `FrameworkVersionError` where the framework is missing or outside the range.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        require(spec)
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return load
