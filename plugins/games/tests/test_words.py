"""The words of games: plain, sorted, inoffensive, and a clear error without their packages."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from importlib import resources

import pytest

import gem_core
from gem_core.errors import EnvError, MissingExtraError
from gem_core.installation import install_line
from gem_games import _words as words
from gem_games.hangman import Hangman
from gem_games.word_search import WordSearch
from gem_games.wordle import Wordle

EVERYDAY = words.word_list(hardcore=False)
LARGE = words.word_list(hardcore=True)


@pytest.mark.parametrize(
    ("found", "lengths", "least"), [(EVERYDAY, range(3, 8), 1_000), (LARGE, range(3, 21), 200_000)]
)
def test_words_are_upper_case_letters_of_the_lengths_promised(
    found: tuple[str, ...], lengths: range, least: int
) -> None:
    assert len(found) > least
    assert list(found) == sorted(set(found))
    assert all(word.isascii() and word.isalpha() and word.isupper() for word in found)
    assert {len(word) for word in found} == set(lengths)


def test_there_are_enough_everyday_words_of_each_length() -> None:
    counts = Counter(map(len, EVERYDAY))
    assert all(counts[length] >= 80 for length in words.EVERYDAY_LENGTHS)
    for length in words.EVERYDAY_LENGTHS:
        assert words.words_of(length) == tuple(word for word in EVERYDAY if len(word) == length)


def test_everyday_words_are_everyday() -> None:
    assert {"GREEN", "RUN", "WRITE", "HAPPY", "EXPLAIN"} <= set(EVERYDAY)
    assert not {"GEMSBOK", "PLACODE", "BUZE"} & set(EVERYDAY)
    assert {"HOUSE", "WINDMILL", "ASTRONOMER"} <= set(LARGE)


def test_offensive_words_and_what_is_derived_from_them_are_left_out() -> None:
    offensive = {"BITCH", "BITCHERY", "NIGGER", "NEGRESS", "RAPE", "RAPIST", "WHORE", "SLUT", "RETARD", "PENIS", "COON"}
    assert not offensive & set(LARGE)
    assert not offensive & set(EVERYDAY)
    assert {"PASSAGE", "CLASSIC", "GRAPE", "HELLO", "ANALOGY"} <= set(LARGE), "innocent words that contain one stay"


def test_an_example_is_never_the_secret() -> None:
    rng = random.Random(0)
    assert {words.other_word("B", ("A", "B", "C"), rng) for _ in range(100)} == {"A", "C"}


def test_the_lists_are_read_once_and_not_at_import() -> None:
    script = (
        "import sys, gem_games.wordle, gem_games.hangman, gem_games.word_search, gem_games.crosswords\n"
        "from gem_games._words import word_list\n"
        "gem_games.word_search.WordSearch(hardcore=True)\n"
        "assert not {'wonderwords', 'english_words'} & {*sys.modules}\n"
        "assert word_list(hardcore=False) is word_list(hardcore=False)\n"
        "assert 'wonderwords' in sys.modules and 'english_words' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("missing", "game", "kwargs"),
    [
        ("wonderwords", Wordle, {}),
        ("wonderwords", Hangman, {}),
        ("wonderwords", WordSearch, {}),
        ("english_words", Hangman, {"hardcore": True}),
        ("english_words", WordSearch, {"hardcore": True}),
        ("english_words", WordSearch, {"hardcore": None, "max_turns": None, "num_words": None}),
    ],
)
def test_make_says_what_to_install(
    missing: str, game: type[gem_core.Env], kwargs: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    gem_core.register("wordtest:Game-v0", game, kwargs=kwargs)
    with pytest.raises(MissingExtraError, match=rf"{missing}.*{re.escape(install_line('games'))}"):
        gem_core.make("wordtest:Game-v0")


def test_reading_a_list_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "english_words", None)
    words.word_list.cache_clear()
    with pytest.raises(MissingExtraError, match=rf"english_words.*{re.escape(install_line('games'))}"):
        words.word_list(hardcore=True)


def test_the_everyday_games_do_without_the_large_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "english_words", None)
    for game in (Wordle(), Hangman(), WordSearch()):
        game.reset(seed=0)


@pytest.mark.parametrize("length", [2, 8])
def test_lengths_without_words_are_refused(length: int) -> None:
    for game in (Wordle, Hangman):
        with pytest.raises(EnvError, match="3 to 7 letters"):
            game(word_length=length)
    assert Hangman(word_length=8, hardcore=True).word_length == 8


# -- clues -------------------------------------------------------------------------------------------------------------

CLUES = [
    json.loads(line)
    for line in resources.files("gem_games").joinpath("crossword_clues.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_there_are_enough_clues_of_both_kinds() -> None:
    assert len(CLUES) >= 150
    assert Counter(row["hardcore"] for row in CLUES)[True] >= 60
    assert all(row.keys() == {"word", "clue", "hardcore"} for row in CLUES)


def test_each_word_and_each_clue_is_there_once() -> None:
    assert len({row["word"] for row in CLUES}) == len({row["clue"] for row in CLUES}) == len(CLUES)


def test_words_are_short_and_plain() -> None:
    words_there = [row["word"] for row in CLUES]
    assert all(3 <= len(word) <= 8 and word.isascii() and word.isalpha() and word.islower() for word in words_there)


def test_clues_are_short_and_do_not_contain_their_word() -> None:
    for row in CLUES:
        assert 8 <= len(row["clue"]) <= 70, row
        assert row["clue"][0].isupper(), row
        assert not row["clue"].endswith("."), row
        assert row["word"] not in row["clue"].lower(), row
