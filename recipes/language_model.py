"""The part of a page that shows a study's runs with SmolLM2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.results import Result, read
from recipes.study import Study

SUCCESS = "episode/success"
HELD_OUT = "eval_episode/success"
PROFILE = "smollm2"
Score = Callable[[Result], float]


def section(
    study: Study, cells: Sequence[str], figures: Path, reading: str, scores: Mapping[str, Score] | None = None
) -> str:
    """The section about SmolLM2: the figure, and a table for each task.

    Args:
        study: with runs of the profile `smollm2`.
        cells: their order.
        figures: folder of the figure, which is drawn.
        reading: by hand, of the complete results; shown when they are.
        scores: further columns of the tables, by their heads.
    """
    declared = study.runs(PROFILE)
    there = read(study.results(PROFILE))
    parts = [
        "## With a real language model\n",
        "[SmolLM2-135M-Instruct](../../adapters/smollm2/README.md) with LoRA of rank 16, after a few steps of "
        "next-token prediction on random valid play. 12 updates of 24 episodes each. Before and after, it plays 72 "
        "episodes on tasks that no run trains on.\n",
        pages.coverage(declared, there),
    ]
    by_task = grouped(there, cells)
    if by_task:
        figure = f"{study.name}_smollm2.png"
        draw_curves(by_task, SUCCESS, figures / figure, label="success in training")
        parts.append(f"![Success of SmolLM2 in training](../img/recipes/{figure})\n")
    for task, runs in by_task.items():
        parts.append(f"### {task} with SmolLM2\n\n{_table(runs, scores or {})}")
    if len(there) == len(declared):
        parts.append(reading)
    parts.append(f"```bash\npython -m recipes.{study.name} --profile {PROFILE}  # these runs, one by one\n```\n")
    return "\n".join(parts)


def _table(cells: Mapping[str, Sequence[Result]], scores: Mapping[str, Score]) -> str:
    head = [
        "",
        "runs",
        "held out, before",
        "held out, after",
        "success in training, last fifth",
        *scores,
        "turns",
        "CPU s",
    ]
    return pages.table(head, [[cell, str(len(runs)), *_row(runs, scores)] for cell, runs in cells.items()])


def _row(runs: Sequence[Result], scores: Mapping[str, Score]) -> list[str]:
    return [
        pages.shown([run.before[HELD_OUT] for run in runs]),
        pages.shown([run.after[HELD_OUT] for run in runs]),
        pages.shown([run.end(SUCCESS) for run in runs]),
        *(pages.shown([score(run) for run in runs]) for score in scores.values()),
        f"{np.mean([run.totals['rollout/turns'] for run in runs]):.0f}",
        f"{np.mean([run.cpu_seconds for run in runs]):.0f}",
    ]
