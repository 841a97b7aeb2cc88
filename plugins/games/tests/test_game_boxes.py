"""Games of `-v1` read boxes as the rest of the project does; those of `-v0` to the letter, as published."""

from __future__ import annotations

import pytest

import gem_core
from gem_games._game import BoxedGame, Game
from gem_games.plugin import gem_envs

GAMES = {
    spec.id: spec.resolve()
    for spec in gem_envs()
    if spec.id.endswith("-easy") and issubclass(spec.resolve(), Game)  # pyright: ignore[reportArgumentType]
}


def answered(env_id: str, form: str) -> str:
    """What a game says to a right move in this form."""
    env = gem_core.make(env_id)
    env.reset(seed=1)
    move = env.sample_random_action().removeprefix("\\boxed{").removesuffix("}")
    return env.step(form.replace("%s", move))[0]


def test_every_later_version_reads_any_box() -> None:
    assert {name for name, kind in GAMES.items() if issubclass(kind, BoxedGame)} == {
        name for name in GAMES if "-v0-" not in name
    }


@pytest.mark.parametrize("env_id", GAMES)
@pytest.mark.parametrize("form", ["\\boxed {%s}", "$$\\boxed{\n%s\n}$$", "\\boxed{$%s$}", "\\fbox{%s}"])
def test_spellings_of_a_box(env_id: str, form: str) -> None:
    assert ("There is no move" in answered(env_id, form)) is ("-v0-" in env_id)
    assert "There is no move" not in answered(env_id, "\\boxed{%s}")
