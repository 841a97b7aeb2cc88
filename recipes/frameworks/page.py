"""The page of the study, from its results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.frameworks.declared import FRAMEWORKS, STUDY
from recipes.results import Result, read
from recipes.statistics import paired_difference
from recipes.study import Study

METRIC = "episode/success"
Score: TypeAlias = Callable[[Result], float]
INTRODUCTION = """
Does an agent learn alike in TRL, verl, OpenRLHF, Oat and ROLL? The weights of a seed, its tasks, the estimator (ReBN),
batches of 64 episodes, one update for each, and AdamW with a constant rate are the same. What differs: which responses
are sampled, the engines, releases of torch and transformers, and the scale of the loss, as
[the benchmark](../benchmarks.md#the-same-learning-in-five-frameworks) says. No run has an entropy
bonus, which Oat lacks.
`recipes/frameworks/declared.py` says everything else.

Tasks: a corridor of 7 cells that pays 0.1 for each step towards its goal (`recipes/frameworks/corridor.py`), for 25
updates, and GuessTheNumber-v0-easy for 120. A score is the mean success over all updates of a run, the area under its
curve. Intervals are 95 %: bootstraps over runs, and Student's interval of the differences between runs of one seed.

The frameworks exclude each other. The command starts each run in the environment that the framework's nox session has
left in `.nox/` (`GEM_PYTHON_VERL=PYTHON` names another one), and waits until all its processes have ended. Oat runs
whole in the environment of `nox -s oat_full`, and otherwise with stand-ins for vLLM and Launchpad. ROLL needs
`ROLL_HOME`. CPU seconds are read twice a second from all processes of a run, start-up included. What a process uses
after its last reading is missed, so they are a lower bound.
"""

READING = """
## What this says

The frameworks learn nearly alike. Of the 20 pairs, zero is inside the interval of 18, and no interval reaches further
than 0.10 from zero. Outside are two, both with ROLL: OpenRLHF against ROLL in the corridor, by 0.02, and TRL against
ROLL in GuessTheNumber, by 0.04. Of 20 intervals of 95 %, about one misses its value by chance. So ROLL may learn
GuessTheNumber a little more slowly. The scale of its loss is one of the differences above. Whether that is the reason,
these runs cannot tell.

Seeds differ more than frameworks. In GuessTheNumber, runs of seed 0 learn slowly at first in all five: a success of
0.33 to 0.46 in the second tenth of the updates, where all other runs have 0.5 or more. The distance between TRL and
ROLL is 0.07 with seed 0, and 0.02 to 0.05 with the others.

A run in ROLL needs 0.05 to 0.12 s of CPU for a turn, in verl and OpenRLHF 0.006 to 0.03 s, in Oat 0.005 s, and in TRL
0.002 s. The last three runs of ROLL ran on a slower machine, two of them beside other programs.
"""
"""By hand, of the complete results."""


def page(results: Path, figures: Path) -> str:
    """Draw the figures, and return the page."""
    there = read(results)
    parts = comparison(STUDY, "Five frameworks", INTRODUCTION, there, figures, {"score": lambda run: run.area(METRIC)})
    if len(there) == len(STUDY.runs("cpu")):
        parts.append(READING.removeprefix("\n"))
    parts.append(_again())
    return "\n".join(parts)


def comparison(
    study: Study, title: str, introduction: str, there: Sequence[Result], figures: Path, scores: Mapping[str, Score]
) -> list[str]:
    """The parts of a page before its own: the introduction, the figure, and for each task a table and the differences.

    Args:
        study: whose cells are the frameworks.
        title, introduction: of the page.
        there: the results.
        figures: folder of the figure, which is drawn.
        scores: the first columns of the tables, by their heads.
    """
    by_task = grouped(there, FRAMEWORKS)
    parts = pages.beginning(study.name, title, introduction, study.runs("cpu"), there)
    if by_task:
        figure = f"{study.name}_curves.png"
        draw_curves(by_task, METRIC, figures / figure, label="success")
        parts.append(f"![Success over updates](../img/recipes/{figure})\n")
    for task, cells in by_task.items():
        parts.append(f"## {task}\n\n{_table(cells, scores)}\n{differences(cells)}")
    return parts


def _table(cells: Mapping[str, Sequence[Result]], scores: Mapping[str, Score]) -> str:
    head = ["", "runs", *scores, "first tenth", "last fifth", "turns", "CPU s"]
    return pages.table(head, [[cell, str(len(runs)), *_row(runs, scores)] for cell, runs in cells.items()])


def _row(runs: Sequence[Result], scores: Mapping[str, Score]) -> list[str]:
    return [
        *(pages.shown([score(run) for run in runs]) for score in scores.values()),
        pages.shown([run.start(METRIC) for run in runs]),
        pages.shown([run.end(METRIC) for run in runs]),
        f"{np.mean([run.totals['rollout/turns'] for run in runs]):.0f}",
        f"{np.mean([run.cpu_seconds for run in runs]):.0f}",
    ]


def differences(cells: Mapping[str, Sequence[Result]]) -> str:
    """The difference of the scores of each pair of frameworks with as many runs, seed by seed."""
    scores = {cell: {run.seed: run.area(METRIC) for run in runs} for cell, runs in cells.items()}
    most = max(map(len, scores.values()))
    scores = {cell: by_seed for cell, by_seed in scores.items() if len(by_seed) == most >= pages.MIN_RUNS}
    if len(scores) < 2:
        return f"Fewer than two frameworks have {pages.MIN_RUNS} runs, so no difference is shown.\n"
    rows: list[list[str]] = []
    for one, other in itertools.combinations(scores, 2):
        seeds = sorted({*scores[one]} & {*scores[other]})
        gap = paired_difference([scores[one][seed] for seed in seeds], [scores[other][seed] for seed in seeds])
        apart = "no" if gap.low <= 0 <= gap.high else "yes"
        rows.append([f"{one} - {other}", f"{gap.value:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]", apart])
    return pages.table(["difference of the scores", "", "zero is outside"], rows)


def _again() -> str:
    return """## Run it again

In the environment of `nox -s trl`, with those of the frameworks that are wanted (`nox -s verl -- --collect-only`):

```bash
python -m recipes.frameworks  # the runs without a result, one by one; it may be stopped at any time
python -m recipes.frameworks --task dense-corridor --cell trl verl --seed 0 1 2
python -m recipes.frameworks --repeat dense-corridor/trl  # one cell with a new seed, compared
python -m recipes.frameworks --write-page  # this page and its figures, from the results
```

A run that fails leaves what it printed in `runs/recipes/models/`, and the message names the file. For GPUs the study
declares no runs: the examples of the frameworks have their settings. [Recipes](index.md) explains the parts.
"""
