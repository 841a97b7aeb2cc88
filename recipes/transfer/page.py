"""The page of the study, from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.results import Result, read
from recipes.statistics import difference
from recipes.transfer.declared import CELLS, STUDY
from recipes.transfer.environments import PLAYED, corridor

INTRODUCTION = """
What does training on one size of a task bring for the others, and does a mixture bring as much on each of them, as in
Table 2 of [GEM](https://arxiv.org/abs/2510.01051)? Here a tiny model walks corridors of 5, 7 or 9 cells, or a third of
each, with the same number of episodes and updates. It then plays all of these lengths, and 11, which no training had.
Only sizes are compared; other families of tasks are not. `recipes/transfer/declared.py` says everything else.
"""


def page(results: Path, figures: Path) -> str:
    """Draw the figures, and return the page."""
    there = read(results)
    by_task = grouped(there, [*CELLS])
    parts = pages.beginning("transfer", "Transfer and mixtures", INTRODUCTION, STUDY.runs("cpu"), there)
    if by_task:
        draw_curves(by_task, "episode/success", figures / "transfer_curves.png", label="success in training")
        cells = by_task["corridors"]
        parts.append("![Success in training over updates](../img/recipes/transfer_curves.png)\n")
        parts.append(f"## Success after training\n\n{_table(cells)}\n{_sentence(cells)}\n")
    parts.append(pages.commands("transfer", "corridors/mixed"))
    return "\n".join(parts)


def _table(cells: Mapping[str, Sequence[Result]]) -> str:
    lengths = _played(cells)
    every = [run for runs in cells.values() for run in runs]
    before = [
        "before training",
        str(len(every)),
        *(f"{np.mean(_success(every, one, 'before')):.2f}" for one in lengths),
    ]
    rows = [
        [cell, str(len(runs)), *(pages.shown(_success(runs, one)) for one in lengths)] for cell, runs in cells.items()
    ]
    return pages.table(["trained on", "runs", *(f"{one} cells" for one in lengths)], [before, *rows])


def _played(cells: Mapping[str, Sequence[Result]]) -> list[int]:
    return [one for one in PLAYED if all(_name(one) in run.after for runs in cells.values() for run in runs)]


def _name(length: int) -> str:
    return f"eval_env/{corridor(length)}/success"


def _success(runs: Sequence[Result], length: int, when: str = "after") -> list[float]:
    return [getattr(run, when)[_name(length)] for run in runs]


def _sentence(cells: Mapping[str, Sequence[Result]]) -> str:
    """Whether the mixture is as good as training on each length alone."""
    if any(len(runs) < pages.MIN_RUNS for runs in cells.values()) or "mixed" not in cells:
        return "Too few runs for a statement on the mixture."
    said: list[str] = []
    for length in _played(cells):
        alone = cells.get(f"length-{length}")
        if alone:
            gap = difference(_success(cells["mixed"], length), _success(alone, length))
            verdict = "better than" if gap.low > 0 else "worse than" if gap.high < 0 else "not told apart from"
            shown = f"{gap.value:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"
            said.append(f"on {length} cells {verdict} training on these alone ({shown})")
    return f"By Welch's interval of the difference, the mixture is {'; '.join(said)}."
