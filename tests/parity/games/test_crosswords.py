"""Crosswords beside upstream's, with the same grid and the same letters."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from side_by_side import MALFORMED, play, seeds

from gem_games.crosswords import Crosswords, clues_of

# Upstream reads its clues with pandas, which its own requirements lack; here it gets ours, so an empty module will do.
with patch.dict(sys.modules, {"pandas": ModuleType("pandas")}):
    upstream = pytest.importorskip("gem.envs.game_env.crosswords.crosswords")

VARIANTS = {"easy": (False, 30, 3), "hard": (True, 40, 3), "random": (None, None, None)}
ODD = (
    "\\boxed{[0 0 A]}",
    "\\boxed{0 0 AB}",
    "\\boxed{ 0 0 A}",
    "\\boxed{0\t0\nA}",
    "\\boxed{0 0 1}",
    "\\boxed{99 0 A}",
    "\\boxed{0 99 A}",
    "\\boxed{\u0663 \u0663 A}",
    "\\boxed{00003 3 e}",
    "\\boxed{0 A}",
)


def load_words(game: Any, words_path: str | None = None, hardcore: bool = False) -> None:
    """Our clues, as upstream keeps its own."""
    game.word_data = [{"word": clue.word, "clues": {"1": clue.text}} for clue in clues_of(hardcore=bool(hardcore))]


@pytest.fixture(autouse=True)
def _clues() -> Iterator[None]:
    with patch.object(upstream.CrosswordsEnv, "_load_words", load_words):
        yield


def pairs(variant: str, count: int) -> Iterator[tuple[Crosswords, Any, random.Random]]:
    """Both games with upstream's grid and limit."""
    theirs = upstream.CrosswordsEnv(*VARIANTS[variant])
    ours = Crosswords(*VARIANTS[variant])
    for seed, player in seeds(count):
        theirs.reset()
        ours.reset(seed=seed)
        ours.max_turns = theirs.max_turns
        ours.show(len(theirs.board), [cell.upper().replace(".", "") for row in theirs.solution for cell in row])
        yield ours, theirs, player


def letters(player: random.Random, game: Crosswords) -> list[str]:
    """Right letters, wrong ones, on cells of all kinds, and now and then what is no letter."""
    said: list[str] = []
    for _ in range(game.max_turns):
        row, column = player.randrange(game.size + 1), player.randrange(game.size + 1)
        place, kind = player.choice(game.hidden), player.random()
        letter = player.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        if kind < 0.85:
            row, column = divmod(place, game.size)
            letter = game.solution[place] if kind < 0.7 else letter
        elif kind > 0.97:
            said.append(player.choice((*ODD, *MALFORMED)))
            continue
        said.append(f"so \\boxed{{{row} {column}  {player.choice((letter, letter.lower()))}}}")
    return said


@pytest.mark.parametrize("variant", [*VARIANTS])
def test_letters_of_all_kinds_are_answered_alike(variant: str) -> None:
    turns = sum(play(ours, theirs, letters(player, ours)) for ours, theirs, player in pairs(variant, 250))
    assert turns > 3000


@pytest.mark.parametrize("variant", [*VARIANTS])
def test_complete_crosswords_end_alike(variant: str) -> None:
    for ours, theirs, player in pairs(variant, 60):
        places = player.sample(ours.hidden, len(ours.hidden))
        play(
            ours,
            theirs,
            [f"\\boxed{{{place // ours.size} {place % ours.size} {ours.solution[place]}}}" for place in places],
        )


@pytest.mark.parametrize("last", ["wrong", "right", "outside", "malformed"])
def test_the_last_turn_is_answered_alike(last: str) -> None:
    for ours, theirs, _ in pairs("easy", 20):
        row, column = divmod(ours.hidden[0], ours.size)
        right = ours.solution[ours.hidden[0]]
        end = {"wrong": f"{row} {column} q", "right": f"{row} {column} {right}", "outside": "77 77 A"}.get(last, "x")
        wrong = f"\\boxed{{{row} {column} {'A' if right != 'A' else 'B'}}}"
        assert play(ours, theirs, [wrong] * (ours.max_turns - 1) + [f"\\boxed{{{end}}}"]) == ours.max_turns


@pytest.mark.parametrize("action", [*MALFORMED, *ODD])
def test_odd_actions_are_answered_alike(action: str) -> None:
    for variant in VARIANTS:
        for ours, theirs, _ in pairs(variant, 2):
            play(ours, theirs, [action] * 40)
