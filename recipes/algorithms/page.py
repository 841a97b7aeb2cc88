"""The page of the study, from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.algorithms.declared import FIRST_CELLS, STUDY
from recipes.figures import Grouped, draw_curves, draw_intervals, draw_profiles, grouped
from recipes.language_model import section
from recipes.results import Result, read
from recipes.statistics import Interval, Scores, difference, improvement, interquartile_mean, mean
from recipes.study import Run

METRIC = STUDY.metric
CELLS = ("reinforce", "rebn", "grpo", "gae", "rloo", "gigpo")

INTRODUCTION = """
Does ReBN learn as well as or better than REINFORCE, GRPO and PPO (`gae`), as Figure 4 of
[GEM](https://arxiv.org/abs/2510.01051) says? Here tiny models learn eight environments from the same weights, with the
same number of episodes and updates for every estimator. `recipes/algorithms/declared.py` says everything else:
budgets, gammas, seeds, and the learning rate of each estimator. There is one update for each batch, so `gae` is PPO
whose clipping never acts; the paper makes two.

A score is the mean return over all updates of a run (the area under its curve). The highest return is 1 in each
environment. In dense ones (minesweeper, fifteen, mastermind) it rises long before an episode is solved. "ReBN's lead"
is ReBN's mean score minus that of the row, with Welch's interval; ReBN is told apart where the interval leaves out 0.

Intervals are 95 %: stratified bootstraps over runs, as in [rliable](https://arxiv.org/abs/2108.13264), so they cover
seeds (weights, tasks and samples) and not other environments. With three runs a bootstrap interval is too narrow; five
are declared.
"""

READING = """
## What this says

ReBN is better than GRPO in three environments and worse in none. It is better than REINFORCE in `guess`, and not told
apart from it elsewhere. PPO is better in minesweeper, and not told apart elsewhere. So the paper's order holds against
GRPO; its gap to REINFORCE is here in one environment only. With 40 comparisons at 95 %, about two leave out 0 by
chance.

Why, as far as the curves show; no run isolates a cause:

- `guess` pays a wrong last guess for being near, so almost all returns are above 0. REINFORCE has no baseline and
  makes all of these actions more likely; ReBN subtracts the mean of the batch.
- Minesweeper pays for each open cell, so what is still to come depends on the board. PPO's critic explains 0.76 to
  0.84 of the variance of the returns there. ReBN subtracts one mean for all boards.
- GRPO gives all turns of an episode the same advantage, and none where all episodes of a task return the same.
- Adam and the limit on the norm of the gradient take out the scale of the advantages, so dividing by their standard
  deviation alone changes little.

Nobody opened a whole board of minesweeper, and success stays below 0.25 in fifteen, mastermind and `leg_counting`:
in these budgets the score shows the first part of learning. In hanoi a run learns it or does not, so intervals are
wide.
"""
"""By hand, of the complete results."""

MODEL_READING = ""
"""By hand, of the complete results with SmolLM2."""


def page(results: Path, figures: Path) -> str:
    """Draw the figures, and return the page."""
    there = read(results)
    tuning = [run for run in STUDY.runs("cpu") if run.phase == "tuning"]
    by_task = grouped(there, CELLS)
    complete = _complete(by_task)
    parts = pages.beginning("algorithms", "Algorithms", INTRODUCTION, STUDY.runs("cpu"), there)
    if by_task:
        draw_curves(by_task, METRIC, figures / "algorithms_curves.png", label="return")
        parts += ["![Return over updates](../img/recipes/algorithms_curves.png)\n", _tasks(by_task)]
    if complete and len(next(iter(complete.values()))) > 1:
        draw_intervals(
            {cell: interquartile_mean(scores) for cell, scores in complete.items()},
            figures / "algorithms_intervals.png",
            label="interquartile mean of the score",
        )
        draw_profiles(complete, figures / "algorithms_profiles.png", label="score")
        parts.append(_together(complete))
    if {run.name for run in STUDY.runs("cpu") if run.phase == "main"} <= {run.name for run in there}:
        parts.append(READING)
    parts += [_tuning(read(results, phase="tuning"), tuning), section(STUDY, FIRST_CELLS, figures, MODEL_READING)]
    parts += [pages.commands("algorithms", "corridor/rebn")]
    return "\n".join(parts)


def _has_enough(cells: Mapping[str, Sequence[Result]], cell: str) -> bool:
    return len(cells.get(cell, ())) >= pages.MIN_RUNS


def _complete(by_task: Grouped) -> dict[str, Scores]:
    """Scores of the cells on the tasks that all of the paper's four have run, by cell."""
    tasks = [task for task, cells in by_task.items() if all(_has_enough(cells, cell) for cell in CELLS[:4])]
    cells = [cell for cell in CELLS if tasks and all(_has_enough(by_task[task], cell) for task in tasks)]
    return {cell: {task: [run.area(METRIC) for run in by_task[task][cell]] for task in tasks} for cell in cells}


def _tasks(by_task: Grouped) -> str:
    parts = ["## Each environment\n"]
    for task, cells in by_task.items():
        rows = [[cell, str(len(runs)), *_row(runs)] for cell, runs in cells.items()]
        head = [
            "estimator",
            "runs",
            "score",
            "return at the end",
            "success at the end",
            "turns played",
            "CPU s of a run",
            "return at equal turns",
            "ReBN's lead",
        ]
        equal, leads = _at_equal_turns(cells), _leads(cells)
        rows = [[*row, equal[row[0]], str(leads.get(row[0], "-"))] for row in rows]
        parts.append(f"### {task}\n\n{pages.table(head, rows)}")
        parts.append(_sentence(task, cells, leads) + "\n")
    return "\n".join(parts)


def _row(runs: Sequence[Result]) -> list[str]:
    areas = [run.area(METRIC) for run in runs]
    ends = [[run.end(metric) for run in runs] for metric in (METRIC, "episode/success")]
    turns = np.mean([run.totals["rollout/turns"] for run in runs])
    seconds = np.mean([run.cpu_seconds for run in runs])
    shown = [pages.shown(numbers) for numbers in (areas, *ends)]
    return [*shown, f"{turns:,.0f}", f"{seconds:.0f}"]


def _at_equal_turns(cells: Mapping[str, Sequence[Result]]) -> dict[str, str]:
    """The mean return over the last fifth of as many turns as the run that played the fewest has played."""
    budget = min(run.totals["rollout/turns"] for runs in cells.values() for run in runs)
    return {cell: f"{np.mean([_at(run, budget) for run in runs]):.2f}" for cell, runs in cells.items()}


def _at(run: Result, turns: float) -> float:
    played = np.cumsum(run.curves["rollout/turns"]) * run.updates / len(run.curves["rollout/turns"])
    return float(np.mean(np.interp(np.linspace(0.8 * turns, turns, 21), played, run.curves[METRIC])))


def _leads(cells: Mapping[str, Sequence[Result]]) -> dict[str, Interval]:
    """ReBN's mean score minus that of each other estimator that has enough runs, with Welch's interval."""
    scores = {cell: [run.area(METRIC) for run in runs] for cell, runs in cells.items() if _has_enough(cells, cell)}
    rebn = scores.pop("rebn", None)
    return {cell: difference(rebn, others) for cell, others in scores.items()} if rebn else {}


def _sentence(task: str, cells: Mapping[str, Sequence[Result]], leads: Mapping[str, Interval]) -> str:
    """What the runs show about ReBN in plain words."""
    if not {*CELLS[:4]} - {"rebn"} <= leads.keys():
        return f"{task}: too few runs for a statement."
    worse = [cell for cell, lead in leads.items() if lead.high < 0]
    better = [cell for cell, lead in leads.items() if lead.low > 0]
    others = [cell for cell in leads if cell not in (*worse, *better)]
    best = max(("rebn", *leads), key=lambda cell: float(np.mean([run.area(METRIC) for run in cells[cell]])))
    said = [
        f"{verdict} {_listed(names)}"
        for verdict, names in (("better than", better), ("worse than", worse), ("not told apart from", others))
        if names
    ]
    lead = f"**ReBN is not best.** {best}" if worse else best
    return f"{task}: {lead} has the highest mean score. ReBN is {', and '.join(said)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _together(complete: Mapping[str, Scores]) -> str:
    tasks = list(next(iter(complete.values())))
    rows = [[cell, str(interquartile_mean(scores)), str(mean(scores))] for cell, scores in complete.items()]
    pairs = [
        [f"rebn over {other}", str(improvement(complete["rebn"], scores))]
        for other, scores in complete.items()
        if other != "rebn"
    ]
    return (
        f"## Together\n\nOver the environments where every estimator of the paper has at least {pages.MIN_RUNS} runs: "
        f"{', '.join(tasks)}.\n\n"
        + pages.table(["estimator", "interquartile mean", "mean"], rows)
        + "\n![Interquartile means](../img/recipes/algorithms_intervals.png)\n\n"
        + "![Performance profiles](../img/recipes/algorithms_profiles.png)\n\n"
        + "The probability of improvement, a tie counting half:\n\n"
        + pages.table(["pair", "probability"], pairs)
    )


def _tuning(results: Sequence[Result], runs: Sequence[Run]) -> str:
    if not results:
        return "## Learning rates\n\nNo tuning run has been played, so all estimators have the same learning rate.\n"
    scores: dict[tuple[str, str], list[float]] = {}
    for one in results:
        cell, _, rate = one.cell.partition("@")
        scores.setdefault((cell, rate), []).append(one.area(METRIC))
    rates = sorted({rate for _, rate in scores}, key=float)
    rows = [
        [cell, *(f"{np.mean(scores[cell, rate]):.2f}" if (cell, rate) in scores else "-" for rate in rates)]
        for cell in dict.fromkeys(cell for cell, _ in scores)
    ]
    declared = {run.name for run in runs}
    played = {one.name for one in results}
    chosen = (
        "The best rate of an estimator is used everywhere."
        if declared <= played
        else f"**{len(played)} of {len(declared)} have been played, so they have not chosen the rates**: all runs have "
        "the rates of `declared.py`."
    )
    tasks = ", ".join(sorted({one.task for one in results}))
    seeds = len({one.seed for one in results})
    return (
        f"## Learning rates\n\nThe mean score of the tuning runs, on {tasks} with {seeds} seeds that no figure shows. "
        f"{chosen}\n\n" + pages.table(["estimator", *rates], rows)
    )
