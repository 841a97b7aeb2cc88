"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("game", "multi-turn")
_GUESS = "gem_games.guess_the_number:GuessTheNumber"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every game of this package."""
    yield EnvSpec("game:Corridor-v0", "gem_games.corridor:Corridor", tags=(*_TAGS, "tiny"))
    for variant, kwargs in {
        "-easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
        "-hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
        "-random": {"min_number": None, "max_number": None, "max_turns": None},
        # Ids of the paper (arXiv 2510.01051) that later releases of upstream dropped.
        "": {"min_number": 1, "max_number": 20, "max_turns": 10},
        "-hard-no-max-turn": {"min_number": 1, "max_number": 50, "max_turns": 50},
    }.items():
        yield EnvSpec(f"game:GuessTheNumber-v0{variant}", _GUESS, kwargs, _TAGS)
