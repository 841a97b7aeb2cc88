"""Wordle beside upstream's, with the same word and the same guesses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from side_by_side import MALFORMED, play, seeds
from stub_words import stubbed, words_of

import gem_games.wordle as ours_module
from gem_games.wordle import Wordle

upstream = pytest.importorskip("gem.envs.game_env.wordle")

VARIANTS = {"easy": (3, 15), "hard": (5, 25), "random": (None, None)}
ODD = (
    "\\boxed{a b c}",
    "\\boxed{a\tc}",
    "\\boxed{a\n b}",
    "\\boxed{ab c d e}",
    "\\boxed{ abc}",
    "\\boxed{abc }",
    "\\boxed{a1c}",
)


@pytest.fixture(autouse=True)
def _words() -> Iterator[None]:
    with stubbed(ours_module, upstream):
        yield


def pair(variant: str, seed: int) -> tuple[Wordle, Any]:
    """Both games with upstream's word and limit."""
    length, turns = VARIANTS[variant]
    ours, theirs = Wordle(length, turns), upstream.WordleEnv(length, True, turns)
    theirs.reset()
    ours.reset(seed=seed)
    ours.word_length, ours.max_turns, ours.secret = theirs.word_length, theirs.max_turns, theirs.secret_word
    return ours, theirs


def guesses(player: random.Random, secret: str, turns: int) -> list[str]:
    """Words, strings of the secret's letters, wrong lengths, repetitions, and now and then what is no guess."""
    said: list[str] = []
    for _ in range(turns):
        kind = player.random()
        if kind < 0.3:
            guess = player.choice(words_of(len(secret)))
        elif kind < 0.75:
            guess = "".join(player.choices(secret + "AEZ", k=len(secret)))
        elif kind < 0.85:
            guess = player.choice(words_of(player.randint(3, 8)))
        elif kind < 0.95:
            said.append(player.choice(said) if said else f"\\boxed{{{secret[::-1]}}}")
            continue
        else:
            said.append(player.choice((*ODD, *MALFORMED)))
            continue
        said.append(f"I try \\boxed{{{player.choice((guess, guess.lower(), ' '.join(guess)))}}}.")
    return said


@pytest.mark.parametrize("variant", VARIANTS)
def test_guesses_of_all_kinds_are_answered_alike(variant: str) -> None:
    turns = 0
    for seed, player in seeds(700):
        ours, theirs = pair(variant, seed)
        turns += play(ours, theirs, guesses(player, ours.secret, ours.max_turns))
    assert turns > 3000


@pytest.mark.parametrize("variant", VARIANTS)
def test_words_up_to_the_secret_are_answered_alike(variant: str) -> None:
    for seed, player in seeds(150):
        ours, theirs = pair(variant, seed)
        words = player.sample(words_of(len(ours.secret)), 3)
        play(ours, theirs, [f"\\boxed{{{word}}}" for word in (*words, ours.secret)])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_last_turn_is_answered_alike(variant: str) -> None:
    for last in ("secret", "wrong", "long", "again", "malformed"):
        for seed, _ in seeds(20):
            ours, theirs = pair(variant, seed)
            wrong = ["".join(chr(65 + (turn + place) % 26) for place in range(len(ours.secret))) for turn in range(26)]
            said = [word for word in wrong if word != ours.secret][: ours.max_turns - 1]
            ends = {"secret": ours.secret, "wrong": "Z" * len(ours.secret), "long": "TOOLONG", "again": said[0]}
            actions = [f"\\boxed{{{word}}}" for word in (*said, ends.get(last, ""))]
            assert play(ours, theirs, actions) == ours.max_turns


@pytest.mark.parametrize("action", [*MALFORMED, *ODD, "\\boxed{abc} \\boxed{}", "\\boxed{de\u00a0f}", "\\BOXED{abc}"])
def test_odd_actions_are_answered_alike(action: str) -> None:
    for variant in VARIANTS:
        play(*pair(variant, 0), [action] * 30)
