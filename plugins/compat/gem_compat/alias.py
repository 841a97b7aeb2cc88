"""This package under another name, for programs whose imports cannot be changed."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import gem_compat


def install_alias(name: str) -> None:
    """Have `import name` and `from name.tools import ...` mean this package, in this process.

    Raises:
        ImportError: another package of that name is loaded already.
    """
    loaded = sys.modules.get(name)
    if loaded not in (None, gem_compat):
        raise ImportError(f"{name!r} is loaded already, from {loaded.__file__}: call this before anything imports it")
    home = gem_compat.__name__
    for module in pkgutil.walk_packages(gem_compat.__path__, f"{home}."):
        if not module.name.endswith(".__main__"):
            sys.modules[name + module.name.removeprefix(home)] = importlib.import_module(module.name)
    sys.modules[name] = gem_compat
