"""What this package registers: ids, classes and parameters, as data.

Ids and the parameters of `-v0-` are those of gem-llm 0.1.0, so that published recipes carry over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("game", "multi-turn")

_Variants = Mapping[str, Mapping[str, Any]]

_GUESS: _Variants = {
    "-easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
    "-hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
    "-random": {"min_number": None, "max_number": None, "max_turns": None},
}
_PAPER: _Variants = {  # ids of the paper (arXiv 2510.01051) that later releases of upstream dropped
    "": {"min_number": 1, "max_number": 20, "max_turns": 10},
    "-hard-no-max-turn": {"min_number": 1, "max_number": 50, "max_turns": 50},
}

_GAMES: tuple[tuple[str, str, _Variants], ...] = (
    ("GuessTheNumber-v0", "guess_the_number:GuessTheNumber", {**_GUESS, **_PAPER}),
    ("GuessTheNumber-v1", "guess_the_number:GuessTheNumberV1", _GUESS),
)


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every game of this package."""
    yield EnvSpec("game:Corridor-v0", "gem_games.corridor:Corridor", tags=(*_TAGS, "tiny"))
    for stem, entry_point, variants in _GAMES:
        for variant, kwargs in variants.items():
            yield EnvSpec(f"game:{stem}{variant}", f"gem_games.{entry_point}", kwargs, _TAGS)
