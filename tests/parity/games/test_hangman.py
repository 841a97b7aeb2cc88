"""Hangman beside upstream's, with the same word and the same guesses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from side_by_side import MALFORMED, play, seeds
from stub_words import stubbed, words_of

import gem_games.hangman as ours_module
from gem_games.hangman import Hangman

upstream = pytest.importorskip("gem.envs.game_env.hangman")

VARIANTS = {"easy": (3, 10), "hard": (7, 20), "random": (None, None)}
ODD = (
    "\\BOXED{a}",
    "\\boxed{\u017f}",
    "\\boxed{\u0131}",
    "\\boxed{\u212a}",
    "\\boxed{\u0130A}",
    "\\boxed{ a}",
    "\\boxed{ab cd}",
)


@pytest.fixture(autouse=True)
def _words() -> Iterator[None]:
    with stubbed(ours_module, upstream):
        yield


def pair(variant: str, seed: int) -> tuple[Hangman, Any]:
    """Both games with upstream's word and limit."""
    length, turns = VARIANTS[variant]
    ours, theirs = Hangman(length, turns), upstream.HangmanEnv(length, False, turns)
    theirs.reset()
    ours.reset(seed=seed)
    ours.word_length, ours.max_turns, ours.secret = theirs.word_length, theirs.max_turns, theirs.secret_word
    ours.open = "_" * ours.word_length
    return ours, theirs


def guesses(player: random.Random, secret: str, turns: int) -> list[str]:
    """Letters, some of the word and some twice, words, and now and then what is no guess."""
    said: list[str] = []
    for _ in range(turns):
        kind = player.random()
        if kind < 0.4:
            guess = player.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        elif kind < 0.75:
            guess = player.choice(secret)
        elif kind < 0.87:
            guess = player.choice(words_of(len(secret)))
        elif kind < 0.95:
            guess = player.choice((*words_of(player.randint(3, 8)), secret))
        else:
            said.append(player.choice((*ODD, *MALFORMED)))
            continue
        said.append(f"Now \\boxed{{{player.choice((guess, guess.lower()))}}}!")
    return said


@pytest.mark.parametrize("variant", VARIANTS)
def test_guesses_of_all_kinds_are_answered_alike(variant: str) -> None:
    turns = 0
    for seed, player in seeds(700):
        ours, theirs = pair(variant, seed)
        turns += play(ours, theirs, guesses(player, ours.secret, ours.max_turns))
    assert turns > 3000


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_word_named_after_any_of_its_letters_is_paid_alike(variant: str) -> None:
    for seed, player in seeds(150):
        ours, theirs = pair(variant, seed)
        letters = sorted(set(ours.secret))
        opened = player.sample(letters, player.randint(0, len(letters)))
        play(ours, theirs, [f"\\boxed{{{guess}}}" for guess in (*opened, ours.secret)])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_last_turn_is_answered_alike(variant: str) -> None:
    for last in ("secret", "letter", "again", "long", "malformed"):
        for seed, _ in seeds(20):
            ours, theirs = pair(variant, seed)
            guess = {"secret": ours.secret, "letter": ours.secret[0], "again": "!", "long": "MUCHTOOLONG"}.get(last, "")
            letters = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter != ours.secret[0]]
            said = letters[: ours.max_turns - 1]
            actions = [f"\\boxed{{{each}}}" for each in (*said, said[0] if guess == "!" else guess)]
            assert play(ours, theirs, actions) == ours.max_turns


@pytest.mark.parametrize("action", [*MALFORMED, *ODD, "\\boxed{a} \\boxed{?}", "\\boxed{a} then \\boxed{B}"])
def test_odd_actions_are_answered_alike(action: str) -> None:
    for variant in VARIANTS:
        play(*pair(variant, 0), [action] * 20)
