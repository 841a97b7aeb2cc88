"""Word search beside upstream's, with the same square and the same guesses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from side_by_side import MALFORMED, play, seeds
from stub_words import stubbed

import gem_games.word_search as ours_module
from gem_games.word_search import WordSearch

upstream = pytest.importorskip("gem.envs.game_env.word_search")

VARIANTS = {"easy": (False, 20, 5), "hard": (True, 20, 5), "random": (None, None, None)}
ODD = (
    "\\boxed{[0 0 0 2]}",
    "\\boxed{0 0 0}",
    "\\boxed{0 0 0 2 }",
    "\\boxed{0\t0\n0\u00a02}",
    "\\boxed{0 0 5 5}",
    "\\boxed{99 0 99 4}",
    "\\boxed{0 0 0 99}",
    "\\boxed{2 2 2 2}",
    "\\boxed{\u0660 0 0 2}",
)


@pytest.fixture(autouse=True)
def _words() -> Iterator[None]:
    with stubbed(ours_module, upstream):
        yield


def pair(variant: str, seed: int) -> tuple[WordSearch, Any]:
    """Both games with upstream's square and words."""
    ours, theirs = WordSearch(*VARIANTS[variant]), upstream.WordSearchEnv(*VARIANTS[variant])
    theirs.reset()
    ours.reset(seed=seed)
    assert ours.max_turns == theirs.max_turns
    places = {
        (row, column, *((row, column + len(word) - 1) if way == "across" else (row + len(word) - 1, column))): word
        for word, (row, column, way) in theirs.placed_words.items()
    }
    ours.show(len(theirs.game_board), [letter for row in theirs.game_board for letter in row], places)
    return ours, theirs


def guesses(player: random.Random, game: WordSearch) -> list[str]:
    """Words both ways round, other lines, repetitions, slanted and outside, and now and then what is no guess."""
    said: list[str] = []
    for _ in range(game.max_turns):
        kind = player.random()
        line = player.choice([*game.places])
        if kind < 0.2:
            line = (*line[2:], *line[:2])
        elif kind < 0.35:
            row, *ends = (player.randrange(game.size) for _ in range(3))
            line = (row, ends[0], row, ends[1])
        elif kind < 0.45:
            line = tuple(player.randrange(game.size + 2) for _ in range(4))
        elif kind > 0.96:
            said.append(player.choice((*ODD, *MALFORMED)))
            continue
        said.append(f"at \\boxed{{{player.choice((' ', '  ')).join(map(str, line))}}}")
    return said


@pytest.mark.parametrize("variant", VARIANTS)
def test_guesses_of_all_kinds_are_answered_alike(variant: str) -> None:
    turns = 0
    for seed, player in seeds(500):
        ours, theirs = pair(variant, seed)
        turns += play(ours, theirs, guesses(player, ours))
    assert turns > 3000


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("swap", [False, True])
def test_found_words_are_paid_alike_also_twice(variant: str, swap: bool) -> None:
    for seed, player in seeds(60):
        ours, theirs = pair(variant, seed)
        lines = player.sample([*ours.places], len(ours.places))
        both = [end for line in lines for end in ((line, (*line[2:], *line[:2])) if swap else (line,))]
        turns = play(ours, theirs, [f"\\boxed{{{' '.join(map(str, line))}}}" for line in both])
        assert turns == (9 if swap else 5)


@pytest.mark.parametrize("last", ["0 0 0 0", "0 0 0 1", "0 0 1 1", "99 0 0 0", "again", "word", "x"])
def test_the_last_turn_is_answered_alike(last: str) -> None:
    for seed, _ in seeds(20):
        ours, theirs = pair("easy", seed)
        said = [f"{cell // 4} {cell % 4} {cell // 4} {cell % 4}" for cell in range(1, 20)]
        word = " ".join(map(str, next(iter(ours.places))))
        end = {"again": said[0], "word": word}.get(last, last)
        assert play(ours, theirs, [f"\\boxed{{{line}}}" for line in (*said, end)]) == 20


@pytest.mark.parametrize("action", [*MALFORMED, *ODD])
def test_odd_actions_are_answered_alike(action: str) -> None:
    for variant in VARIANTS:
        play(*pair(variant, 0), [action] * 20)
