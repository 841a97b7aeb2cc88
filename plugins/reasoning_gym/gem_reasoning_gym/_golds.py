"""Answers that reasoning-gym has wrong, and how they are found instead."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gem_core.errors import EnvError
from gem_reasoning_gym._entries import Entry

Model: TypeAlias = tuple[frozenset[str], ...]
"""The things that there are, each by the words that name it."""

_STATEMENT = re.compile(r"(All|No|Some) (\w+) are (not )?(\w+)")


def syllogism(entry: Entry) -> str:
    """Whether the conclusion is true in every model of the premises in which each word names something.

    reasoning-gym's own rules take `Some A are not C` for a consequence of `All A are B. Some B are not C`. That a word
    names something is its convention: from `All A are B` follows `Some B are A`.
    """
    told = entry["metadata"]
    statements = [_STATEMENT.fullmatch(told[part]) for part in ("premise1", "premise2", "conclusion")]
    if None in statements:
        raise EnvError(f"rg:syllogism: this release of reasoning-gym writes other statements: {told!r:.200}")
    read = [(one[1], one[2], one[4], bool(one[3])) for one in statements if one]
    words = sorted({word for _, one, other, _ in read for word in (one, other)})
    follows = all(
        _holds(read[2], model)
        for model in _models(words)
        if _holds(read[0], model) and _holds(read[1], model)
    )
    return "Yes" if follows else "No"


def _models(words: list[str]) -> list[Model]:
    """Every model in which each word names something; what no word names says nothing."""
    things = [frozenset(each) for size in range(1, len(words) + 1) for each in itertools.combinations(words, size)]
    models = (model for size in range(1, len(things) + 1) for model in itertools.combinations(things, size))
    return [model for model in models if all(any(word in thing for thing in model) for word in words)]


def _holds(statement: tuple[str, str, str, bool], model: Model) -> bool:
    quantifier, one, other, is_negative = statement
    found = [(other in thing) != is_negative for thing in model if one in thing]
    return any(found) if quantifier == "Some" else all(found) if quantifier == "All" else not any(found)


CORRECTED: Mapping[str, Callable[[Entry], str]] = {"syllogism": syllogism}
"""The right answer of an entry, for data sets of which some answers are wrong."""


def corrected(name: str, entry: Entry) -> Entry:
    """The entry of a data set, with the right answer."""
    return {**entry, "answer": CORRECTED[name](entry)} if name in CORRECTED else entry
