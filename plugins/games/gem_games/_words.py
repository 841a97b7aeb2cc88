"""Words for games: everyday ones, and a large list.

| list | from | licence | words |
| --- | --- | --- | --- |
| everyday | verbs and adjectives of `wonderwords` | MIT | about 1,300 of 3 to 7 letters |
| large | `web2` (Webster, 1934) of `english-words` | MIT; the list: public domain | 209,000 of 3 to 20 letters |

The nouns of `wonderwords` are left out: a third of them are rare (`gemsbok`, `placode`). Neither list has
capitalized words, or offensive words that one of two filters finds: the words on the profanity list of `wonderwords`
and words derived from the longer ones, and words that begin with one of `_OFFENSIVE`.

Each list is read on first use and once per process. All words are upper case and in alphabetical order, so that a seed
means the same word everywhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from gem_core.errors import EnvError, MissingExtraError
from gem_core.installation import install_line

EVERYDAY_LENGTHS = range(3, 8)
LARGE_LENGTHS = range(3, 21)

_OFFENSIVE = (
    *(
        "nigg",
        "negr",
        "darky",
        "darkie",
        "mulatt",
        "squaw",
        "fagg",
        "fagot",
        "kike",
        "gook",
        "spick",
        "sambo",
        "coolie",
    ),
    *("pickaninn", "blackam", "octoroon", "quadroon", "gypp", "wop", "mongoloid", "cretin", "cripple", "imbecil"),
    *("moron", "lynch", "suicid", "rape", "raping", "rapist", "molest", "incest", "pederast", "catamit", "castrat"),
    *("whor", "slut", "harlot", "strumpet", "prostitut", "concub", "lech", "pimp", "porn", "sodom", "onanis", "coit"),
    *("copulat", "fornicat", "masturbat", "penis", "vagin", "scrot", "testicul", "genital", "hermaphrod"),
    *("urinat", "defecat", "shit", "piss", "turd", "twat", "uppity"),
)
"""Beginnings of words that the profanity list covers only in part; they also remove a few innocent words."""
_STEM = 5
"""From this length on, a listed profanity also bars the words that begin with it."""
_SLIP = "buze"
"""Among the adjectives of `wonderwords`, and no word."""


def lengths(*, hardcore: bool) -> range:
    """Lengths of the words in the large list, or in the everyday one."""
    return LARGE_LENGTHS if hardcore else EVERYDAY_LENGTHS


@cache
def word_list(*, hardcore: bool) -> tuple[str, ...]:
    """The large list, or the everyday one.

    Raises:
        MissingExtraError: the package that carries it is not installed.
    """
    found = _large() if hardcore else _everyday()
    allowed = lengths(hardcore=hardcore)
    plain = sorted(w for w in found if len(w) in allowed and w.isascii() and w.isalpha() and w.islower())
    barred = _barred(plain)
    return tuple(word.upper() for word in plain if word not in barred)


@cache
def words_of(length: int, *, hardcore: bool = False) -> tuple[str, ...]:
    """The words of one length. Raises as `word_list`."""
    return tuple(word for word in word_list(hardcore=hardcore) if len(word) == length)


def require(*, hardcore: bool) -> None:
    """Check that the packages are installed, without reading a list. Constructors call it, so that `make` fails early.

    Raises:
        MissingExtraError: one is not installed.
    """
    for name in ("wonderwords", "english_words") if hardcore else ("wonderwords",):
        if not _installed(name):
            raise _missing(name)


def other_word(secret: str, words: Sequence[str], rng: random.Random) -> str:
    """A word other than the secret, for an example."""
    while (word := rng.choice(words)) == secret:
        pass
    return word


def check_limits(word_length: int, max_turns: int, *, hardcore: bool) -> None:
    """Check that there are words of this length, and a turn.

    Raises:
        EnvError: there are none.
    """
    allowed = lengths(hardcore=hardcore)
    if word_length not in allowed or max_turns < 1:
        raise EnvError(
            f"cannot play words of {word_length} letters in {max_turns} turns: it needs {allowed[0]} to {allowed[-1]} "
            "letters and max_turns >= 1"
        )


def _everyday() -> Iterable[str]:
    wonderwords = _package("wonderwords")
    kinds = wonderwords.Defaults
    return wonderwords.RandomWord(verb=kinds.VERBS, adjective=kinds.ADJECTIVES).filter()


def _large() -> Iterable[str]:
    return _package("english_words").get_english_words_set(["web2"])


def _barred(words: Sequence[str]) -> set[str]:
    """What to leave out of the words, which are in alphabetical order."""
    wonderwords = _package("wonderwords")
    listed: list[str] = wonderwords.RandomWord(profanity=wonderwords.Defaults.PROFANITIES).filter()
    known = {*listed, _SLIP}
    for stem in (*_OFFENSIVE, *(word for word in listed if len(word) >= _STEM)):
        # What begins with the stem is in one piece; "{" comes after "z".
        known.update(words[bisect_left(words, stem) : bisect_left(words, stem + "{")])
    return known


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)  # untyped, and not installed in the environment that checks types
    except ModuleNotFoundError as error:
        raise _missing(name) from error


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _missing(name: str) -> MissingExtraError:
    return MissingExtraError(
        f"the word games need the module {name!r}, which is not installed. Next: {install_line('games')}"
    )
