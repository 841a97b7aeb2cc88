"""What holds for every environment of this project that needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import gem_core
from gem_core.plugins import manager
from gem_testing import check_env

pytestmark = pytest.mark.long

GAMES = [registration.spec.id for registration in manager.registrations("gem_envs", "game")]
QUESTIONS = ["math:Sample", "qa:Sample", "code:Sample"]
RG = ["rg:letter_counting", "rg:countdown", "rg:spiral_matrix", "rg:polynomial_multiplication"]
FAMILIES = ["GuessTheNumber", "Mastermind", "Minesweeper", "Wordle", "FifteenPuzzle", "Hangman"]
FAMILIES += ["Sudoku", "TowerofHanoi", "Game2048", "Sokoban", "Crosswords", "WordSearch"]


def hostile(mark: Path) -> Iterator[str]:
    """Answers that are out to do harm: run code, take all time or memory, or break a parser."""
    code = f"__import__('os').system('touch {mark}')"
    for text in (code, "9**9**9**9", "(" * 5000 + ")" * 5000, "a\0b", "\ud800", f"open({str(mark)!r}, 'w')"):
        yield f"\\boxed{{{text}}} <answer>{text}</answer> ```python\n{text}\n```"
    yield "<answer>" * 20_000
    yield "\\boxed{" * 27_000
    yield "```" * 54_000


def test_all_of_upstreams_games_are_here() -> None:
    wanted = {f"game:{family}-v0-{variant}" for family in FAMILIES for variant in ("easy", "hard", "random")}
    assert wanted | {"game:Game2048-v0-extreme-hard", "game:GuessTheNumber-v0"} <= {*GAMES}


@pytest.mark.parametrize("env_id", GAMES)
def test_games_keep_the_contract(env_id: str) -> None:
    check_env(env_id)


@pytest.mark.parametrize("env_id", [*GAMES, *QUESTIONS, *RG])
def test_hostile_answers_do_no_harm(env_id: str, tmp_path: Path) -> None:
    mark = tmp_path / "touched"
    with gem_core.make(env_id) as env:
        for number, action in enumerate(hostile(mark)):
            env.reset(seed=number)
            observation, reward, *_, info = env.step(action)
            # reasoning-gym pays a little for anything that it can read.
            assert reward <= (0.1 if env_id in RG else 0.0), action[:80]
            assert isinstance(observation, str)
            json.dumps(info)
    assert not mark.exists()


@pytest.mark.parametrize("env_id", GAMES)
def test_random_play_is_never_invalid(env_id: str) -> None:
    with gem_core.make(env_id) as env:
        for seed in range(5):
            env.reset(seed=seed)
            done = False
            while not done:
                *_, terminated, truncated, info = env.step(env.sample_random_action())
                assert not info.get("invalid_action")
                done = terminated or truncated


@pytest.mark.parametrize("env_id", GAMES)
def test_games_say_how_to_move(env_id: str) -> None:
    with gem_core.make(env_id) as env:
        rules, info = env.reset(seed=0)
        assert "\\boxed{" in rules or env_id.startswith(("game:Corridor-", "game:PlainGuess-"))
        assert len(rules) + len(info.get("suffix", "")) < 3000, "short enough to be read every turn"


@pytest.mark.parametrize("env_id", GAMES)
def test_words_are_few(env_id: str) -> None:
    """A rule is told once; what follows is a line, so that long games fit a context."""
    with gem_core.make(env_id) as env:
        env.reset(seed=1)
        observation, *_ = env.step(env.sample_random_action())
        assert len(observation) < 200
