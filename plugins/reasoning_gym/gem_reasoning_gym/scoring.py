"""Grading functions, one per data set and settings, for `gem_grading`.

reasoning-gym evaluates some answers (`eval`, sympy's parser), so its scoring runs where that does no harm.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

from gem_reasoning_gym.entries import Definition, Entry

Score: TypeAlias = Callable[[str, Entry], float]
"""From 0 to 1 for an answer."""

_PREFIX = "score_"


def function_name(definition: Definition) -> str:
    """Name of the grading function of a data set."""
    return f"{__name__}:{_PREFIX}{pickle.dumps(definition).hex()}"


def __getattr__(name: str) -> Score:
    # Asked for in the template, once: its forks find the data set built, and what its scoring needs imported.
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    definition: Definition = pickle.loads(bytes.fromhex(name.removeprefix(_PREFIX)))
    if definition.name in _FIXED:
        return _FIXED[definition.name]
    dataset = definition.build(0)
    first = dataset[0]
    if first["answer"] is not None:
        dataset.score_answer(first["answer"], first)  # sympy takes half a second at the first use
    return _score_of(dataset)


def _score_of(dataset: Any) -> Score:
    return lambda answer, entry: float(dataset.score_answer(answer, entry))


def _same_word(answer: str, entry: Entry) -> float:
    """True or False; reasoning-gym 0.1.25 pays for any text that is not empty."""
    return float(answer.strip().lower() == entry["answer"].lower())


_FIXED: dict[str, Score] = {"game_of_life_halting": _same_word}
