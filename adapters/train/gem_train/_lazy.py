"""Names of an adapter's package, loaded on first use, after the framework's version is checked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gem_core.specs import AdapterSpec
from gem_train.versions import require


def lazy_names(package: str, spec: AdapterSpec, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of an adapter's package.

    Args:
        package: name of the package.
        spec: the framework and its supported versions.
        modules: for each name, the module of the package that defines it. Importing it may import the framework.

    Returns:
        A function that raises `FrameworkVersionError` if the framework is missing or its version is unsupported.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        require(spec)
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return load
