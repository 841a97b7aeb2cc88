"""A right answer of an entry, as reasoning-gym has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gem_reasoning_gym._entries import Entry

_ASIDE: Mapping[str, str] = {
    "graph_color": "possible_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Where data sets with several right answers have one of them."""


def example(dataset: str, entry: Entry) -> str:
    """A right answer.

    Raises:
        NotImplementedError: the data set has none: boxnet, propositional_logic and rush_hour.
    """
    answer: Any = entry["answer"]
    if answer is None and dataset in _ASIDE:
        answer = entry["metadata"][_ASIDE[dataset]]
    if answer is None:
        raise NotImplementedError(f"{dataset} of reasoning-gym has no answers, only a score for them")
    return json.dumps(answer) if isinstance(answer, dict) else str(answer)
