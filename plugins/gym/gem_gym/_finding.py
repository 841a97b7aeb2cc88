"""Environments in Gymnasium's registry."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import warnings
from typing import Any

from gem_core.errors import MissingExtraError, NotFoundError, near_matches

gymnasium: Any = importlib.import_module("gymnasium")  # untyped, and missing where types are checked


def registered(name: str) -> Any:
    """Gymnasium's spec of a name such as `FrozenLake-v1` or `minigrid:MiniGrid-Empty-5x5-v0`.

    Raises:
        NotFoundError: nothing of that name is registered; the message has similar names.
        MissingExtraError: the module that the name begins with is not installed.
    """
    module, _, bare = name.rpartition(":")
    if module and not module.startswith("."):
        _import(module, name)
    if bare in gymnasium.registry:
        return gymnasium.registry[bare]
    raise NotFoundError(f"no environment 'gym:{name}': {_reason(bare)}{_similar(module, bare)}")


def libraries_of(name: str) -> tuple[str, ...]:
    """The distributions that an environment comes from. Raises as `registered`."""
    entry_point = registered(name).entry_point
    module = entry_point.partition(":")[0] if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    others = _distributions().get(module.partition(".")[0], [])
    return tuple(dict.fromkeys(["gymnasium", *others]))


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


def _import(module: str, name: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"gym:{name} needs the module {error.name!r}, which is not installed. Next: install the package that "
            f"registers {name.rpartition(':')[2]!r}"
        ) from error


def _reason(bare: str) -> str:
    """Why Gymnasium does not have it, in its own words where it knows of another version."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gymnasium.spec(bare)
    except gymnasium.error.DeprecatedEnv as error:
        return str(error)
    except gymnasium.error.Error:
        pass
    return "Gymnasium has none of that name."


def _similar(module: str, bare: str) -> str:
    prefix = f"gym:{module}:" if module else "gym:"
    hint = near_matches(prefix + bare, [prefix + known for known in gymnasium.registry])
    return hint if module else f"{hint} If importing a module registers it, write gym:<module>:{bare}"
