"""What this package registers: the toy-text family by name, and any other id of Gymnasium when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_LISTED = (
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "Taxi-v4",
    "Blackjack-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
)
"""The toy-text family of Gymnasium 1.4, listed whether Gymnasium is installed or not."""


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """The toy-text family."""
    for name in _LISTED:
        yield _spec(name)


@hookimpl
def gem_find_env(env_id: str) -> EnvSpec:
    """Any id of Gymnasium's registry; `gym:module:Name-v0` imports the module first, as Gymnasium does."""
    name = env_id.removeprefix("gym:")
    try:
        from gem_gym import _finding as finding
    except ModuleNotFoundError:  # `make` says what to install
        return _spec(name)
    return _spec(name, finding.libraries_of(name))


def _spec(name: str, libraries: tuple[str, ...] = ("gymnasium",)) -> EnvSpec:
    tags = ("gymnasium", "multi-turn")
    return EnvSpec(f"gym:{name}", "gem_gym.env:Gymnasium", {"gymnasium_id": name}, tags, "gym", libraries)
