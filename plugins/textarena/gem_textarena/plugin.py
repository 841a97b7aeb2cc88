"""What this package registers: the ids of TextArena's games for one and two players, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.errors import NotFoundError
from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_textarena._names import ABSENT, game_of, match_names, names

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("game", "multi-turn")


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`textarena:<id>` for every game here; they need no network, and are listed where TextArena is missing, too."""
    for name in names():
        entry_point = "gem_textarena.env:TextArena"
        yield EnvSpec(f"textarena:{name}", entry_point, {"name": name}, _TAGS, "textarena", ("textarena",))
    for name in match_names():
        entry_point = "gem_textarena.match:TextArenaMatch"
        tags = (*_TAGS, "match", "several agents")
        yield EnvSpec(f"textarena:{name}", entry_point, {"name": name}, tags, "textarena", ("textarena",))


@hookimpl
def gem_find_env(env_id: str) -> None:
    """Say why an id of TextArena is not here.

    Raises:
        NotFoundError: TextArena has the game.
    """
    name = env_id.partition(":")[2]
    plain = name.removesuffix("-raw").removesuffix("-train")
    if plain in [*names(), *match_names()]:
        raise NotFoundError(
            f"no environment {env_id!r}: -raw and -train change what TextArena shows, which is the same here. "
            f"Next: 'textarena:{plain}'"
        )
    if game_of(name) in ABSENT:
        reason = ABSENT[game_of(name)]
        raise NotFoundError(f"no environment {env_id!r}: this game {reason}. See plugins/textarena/README.md")
