"""Names of an adapter's package, loaded on first use, after the framework's version is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gem_core.lazy import lazy_exports
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

    load, _ = lazy_exports(package, modules)

    def load_checked(name: str) -> Any:
        if name in modules:
            require(spec)
        return load(name)

    return load_checked
