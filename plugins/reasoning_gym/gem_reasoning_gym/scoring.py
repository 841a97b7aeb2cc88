"""Grading functions, one per data set and settings, for `gem_grading`.

No answer is evaluated. What reasoning-gym's own functions do with some answers takes long, so they run where that does
no harm. A third of the data sets only compare texts, which costs a thousandth of a process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from reasoning_gym.dataset import ProceduralDataset  # pyright: ignore[reportMissingTypeStubs]

from gem_reasoning_gym._entries import DATASETS, Definition, Entry
from gem_reasoning_gym.scorers import PUBLISHED, RIGHT, Scorer

Score: TypeAlias = Callable[[str, Entry], float]
"""From 0 to 1 for an answer."""

_PREFIX = "score_"


_by_comparison = cast("Callable[[Any, str, Entry], float]", ProceduralDataset.score_answer)


def compares(definition: Definition, published: bool) -> bool:
    """Whether the score of a data set only compares the answer with the entry's. `published` as below."""
    own = (PUBLISHED if published else RIGHT).get(definition.name)
    return own is None and DATASETS[definition.name][0].score_answer is ProceduralDataset.score_answer


def compared(answer: str, entry: Entry) -> float:
    """The score of such a data set."""
    return float(_by_comparison(None, answer, entry))  # the method uses nothing of its data set


def function_name(definition: Definition, published: bool) -> str:
    """Name of the grading function of a data set; `published` names the one of `-v0`."""
    return f"{__name__}:{_PREFIX}{pickle.dumps((definition, published)).hex()}"


def __getattr__(name: str) -> Score:
    # Asked for in the template, once: its forks find the data set built, and what its scoring needs imported.
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    definition, published = pickle.loads(bytes.fromhex(name.removeprefix(_PREFIX)))
    dataset = definition.build(0)
    score = _score_of(dataset, (PUBLISHED if published else RIGHT).get(definition.name))
    first = dataset[0]
    if first["answer"] is not None:
        score(first["answer"], first)  # sympy takes half a second at the first use
    return score


def _score_of(dataset: Any, own: Scorer | None) -> Score:
    if own is None:
        return lambda answer, entry: float(dataset.score_answer(answer, entry))
    return lambda answer, entry: float(own(dataset, answer, entry))
