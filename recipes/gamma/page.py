"""The page of the study, from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.gamma.declared import GAMMAS, LEVERS, LONG, MODEL_GAMMAS, STUDY
from recipes.language_model import section
from recipes.results import Result, read

METRIC = "guesses/all"
OPTIMUM = 243 / 50
AIM = 5.10
TITLES = {"guess50": "Discounts", "levers": "Levers, at gamma 0.9", "long": "Six times the batches, at gamma 0.9"}
"""The parts of the page, by task."""

INTRODUCTION = """
Figure 5a of [GEM](https://arxiv.org/abs/2510.01051) says that a smaller gamma finds a number from 1 to 50 in fewer
guesses, because only a discount makes a late success worth less than an early one. Here a tiny model plays that game
with 20 guesses and ReBN. `recipes/gamma/declared.py` says everything else.

The limit of 20 bites: at the start many episodes fail, and a failure counts 50, so the first part of each fall is the
rising share of numbers that are found. An episode that finds its number counts its guesses. Format errors end an
episode and are counted apart. Bisection needs 243/50 = 4.86 guesses on average, the optimum. *Possible* is the share
of guesses that the hints leave possible. *Off the middle* is how far these lie from the middle of what is left, in
halves of its width: 0 for bisection, about a half for possible guesses at random, 1 at the edge. The start of a run is
the first tenth of its batches, and its end the last fifth. Intervals are 95 %, bootstrapped over runs.

The recipe, by what each part is for:

- The observation is the smallest and the largest number that the hints leave (`recipes/gamma/bounds.py`), so a turn is
  a row of its own, and an update is cheap.
- Each digit is a token. `numbers-are-tokens` has a token for each number.
- The warm start reads random play in which a third of the guesses are possible ones, evenly drawn. It shows that the
  two numbers have to do with the guess, and not which possible guess is better. `blind-warm-start` reads blind guesses.
- A near last guess pays nothing (`game:GuessTheNumber-v1-hard`). `nearness-pays` has the game that pays it.
- Four updates on each batch of 64 episodes, clipped as in PPO. `one-update` has one.
"""

READING = """
## What this says

A smaller gamma finds the number in fewer guesses, as the paper says. At 0.5, 0.8 and 0.9, guesses fall to less than
half of their start in all five runs each; these three are not told apart. At 0.999 and 1 they end more than twice as
high, and the intervals are far apart. In between they rise with gamma. Why: at gamma 1 a number that is found is worth
the same after 5 guesses as after 20. So guesses that the hints rule out cost little there, and only two thirds are
possible ones at the end, against more than nine in ten at 0.8.

The aim, 5.10 guesses (5 % above the optimum), is reached by four of five runs that play more batches, and larger ones.
In 100 batches the policies learn to guess possible numbers, and hardly more: these lie nearly as far off the middle as
random ones. Random possible guesses need 6.18 on average (the mean depth in a random search tree of 50 numbers), and
the best of the short runs are there.

- Six times the batches, and a rate that falls to zero: all five runs end between 5.11 and 5.44. Nearly all guesses are
  possible ones, and they lie half as far off the middle as random ones.
- The same with 256 episodes in each batch, not 64, and without an entropy bonus (`256-episodes`): four of five runs end
  between 4.97 and 5.08, and one at 5.15. The guesses lie closer to the middle. A run takes 788 s of CPU, not 207.

Both cells begin as the short runs do. Their start is lower in the table because a tenth of their batches is 60.

The size of a batch and the number of episodes are not told apart. In batches 121 to 150, when they have played as many
episodes as the runs of 64 in all, the runs of 256 need 5.32 guesses, with a rate that has hardly fallen. So it may be
the number of episodes that counts. Many are needed because the differences are small: a first guess of 13, halfway off
the middle, costs 0.18 guesses on average with the best play after it, and under bisection the guesses of an episode
have a standard deviation of 1.2.

These settings were found in trials, of which no result files were kept. With seed 0 and 64 episodes: at the recipe's
constant rate, gamma 0.8 ended at 5.4 after 400 batches and at 5.3 after 1,000; with a falling rate and no entropy
bonus, 400 batches ended at 5.6 with gamma 0.8 and at 5.2 with gamma 0.9. With seed 10, which is in no other table,
gamma 0.9 and a falling rate:

| estimator | episodes of a batch | batches | entropy bonus | guesses at the end |
| --- | --- | --- | --- | --- |
| ReBN | 64 | 600 | 0 | 5.43 |
| ReBN | 64 | 600 | 0.01 | 5.21 |
| ReBN | 64 | 600 | 0.03 | 5.24 |
| `gae`, lambda 0.95 | 64 | 600 | 0.002 | 5.12 |
| `gae`, lambda 0.95 | 128 | 400 | 0.01 | 5.13 |
| ReBN | 256 | 600 | 0 | 4.97 |

Each is one run, and five runs of one setting differ by up to 0.33. So these trials show no effect of the entropy bonus
or of a critic.

The levers of the short runs, against `gamma-0.9` of the first table (8.02 guesses):

- `one-update`: a single update on each batch ends higher in the mean. The intervals overlap a little.
- `nearness-pays`: where a near last guess pays, one run of five hardly learns and one ends at 12 guesses. The other
  three end at 6.4 to 7.8, as without that reward. So the reward may spoil a run, and is not what keeps the others from
  bisection.
- `blind-warm-start`: starts worse and ends a little worse. So the warm start with possible guesses helps, but is not
  needed.
- `numbers-are-tokens`: starts better, because a number of two digits is one token, not two. It ends alike.

With five runs each, these differences are certain: between small and large gammas, between 100 and 600 batches, and
between the two cells of 600 batches.
"""
"""By hand, of the complete results."""

MODEL_SCORES = {
    "guesses, last fifth (a failure counts 4)": lambda run: run.end("guesses/all"),
    "first guess in the middle": lambda run: run.end("guesses/middle"),
}
MODEL_READING = ""
"""By hand, of the complete results with SmolLM2."""


def page(results: Path, figures: Path) -> str:
    """Draw the figures, and return the page."""
    there = read(results)
    discounts = [f"gamma-{gamma:g}" for gamma in sorted(GAMMAS)]
    by_task = grouped(there, [*discounts, *LEVERS, *LONG])
    parts = pages.beginning("gamma", "Gamma", INTRODUCTION, STUDY.runs("cpu"), there)
    if by_task:
        draw_curves(
            by_task, METRIC, figures / "gamma_curves.png", label="guesses, a failure counts 50", optimum=OPTIMUM
        )
        parts.append("![Guesses over updates; the dashed line is the optimum](../img/recipes/gamma_curves.png)\n")
    for task, title in TITLES.items():
        if task in by_task:
            parts.append(f"## {title}\n\n{_table(by_task[task])}\n{_sentences(by_task[task])}\n")
    if len(there) == len(STUDY.runs("cpu")):
        parts.append(READING.removeprefix("\n"))
    parts.append(section(STUDY, [f"gamma-{gamma:g}" for gamma in MODEL_GAMMAS], figures, MODEL_READING, MODEL_SCORES))
    parts.append(pages.commands("gamma", "guess50/gamma-0.9"))
    return "\n".join(parts)


def _table(cells: Mapping[str, Sequence[Result]]) -> str:
    head = [
        "",
        "runs",
        "guesses at the start",
        "at the end",
        "format errors at the end",
        "possible",
        "off the middle",
        "CPU s",
    ]
    return pages.table(head, [[cell, str(len(runs)), *_row(runs)] for cell, runs in cells.items()])


def _row(runs: Sequence[Result]) -> list[str]:
    def end(metric: str) -> str:
        known = [run.end(metric) for run in runs if metric in run.curves]
        return f"{np.mean(known):.2f}" if known else "-"

    return [
        pages.shown([run.start(METRIC) for run in runs]),
        pages.shown([run.end(METRIC) for run in runs]),
        end("guesses/format_errors"),
        end("guesses/possible"),
        end("guesses/from_middle"),
        f"{np.mean([run.cpu_seconds for run in runs]):.0f}",
    ]


def _sentences(cells: Mapping[str, Sequence[Result]]) -> str:
    """How many runs reached the aims, and what that means for the claim."""
    said: list[str] = []
    for cell, runs in cells.items():
        halved = sum(run.end(METRIC) <= run.start(METRIC) / 2 for run in runs)
        reached = sum(run.end(METRIC) <= AIM for run in runs)
        fell = f"guesses fell to half of their start in {halved} of {len(runs)} runs"
        said.append(f"{cell}: {fell}, and to {AIM:.2f} in {reached}.")
    return "\n".join(f"- {one}" for one in said)
