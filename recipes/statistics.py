"""What several runs show together: the method of rliable (arXiv 2108.13264), with scipy.

rliable itself is not used: it needs arch below 8, pandas, seaborn and absl-py, for a few lines of numpy. A run is one
training with one seed, and runs are resampled within their task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 2000
LEVEL = 0.95
SEED = 0

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""A number for each row, from float (..., runs)."""

Scores = Mapping[str, Sequence[float]]
"""The scores of the runs of one cell, by task."""


class Interval(NamedTuple):
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def interquartile_mean(scores: Scores) -> Interval:
    """The mean of the middle half of all runs of all tasks; the interval is that of a stratified bootstrap."""
    return _bootstrapped(lambda runs: stats.trim_mean(runs, 0.25, axis=-1), scores)


def mean(scores: Scores) -> Interval:
    """The mean over all runs, with the same kind of interval."""
    return _bootstrapped(lambda runs: np.mean(runs, axis=-1), scores)


def profile(scores: Scores, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of runs above each threshold (a performance profile): float (thresholds,), the mean over tasks."""
    return np.mean([[np.mean(np.asarray(runs) > limit) for limit in thresholds] for runs in scores.values()], axis=0)


def improvement(one: Scores, other: Scores) -> Interval:
    """The chance that a run of `one` is better than a run of `other` on the same task; a tie counts half.

    The mean over the tasks that both have. The interval is that of a stratified bootstrap over both.

    Raises:
        ValueError: no task has runs of both.
    """
    tasks = [task for task in one if task in other]
    if not tasks:
        raise ValueError("the two cells share no task")
    mine, theirs = ([np.asarray(scores[task], dtype=float) for task in tasks] for scores in (one, other))
    draws = np.random.default_rng(SEED)
    value = float(np.mean([_better(*pair) for pair in zip(mine, theirs, strict=True)]))
    resampled = [
        np.mean([_better(draws.choice(a, len(a)), draws.choice(b, len(b))) for a, b in zip(mine, theirs, strict=True)])
        for _ in range(RESAMPLES)
    ]
    return Interval(value, *_quantiles(np.asarray(resampled)))


def difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The difference of the means of two independent groups of runs, with Welch's interval."""
    test = stats.ttest_ind(one, other, equal_var=False).confidence_interval(LEVEL)
    return Interval(float(np.mean(one) - np.mean(other)), float(test.low), float(test.high))


def paired_difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The mean difference of runs that belong together, one of each pair in each sequence, with Student's interval."""
    test = stats.ttest_rel(one, other).confidence_interval(LEVEL)
    return Interval(float(np.mean(one) - np.mean(other)), float(test.low), float(test.high))


def prediction_interval(known: Sequence[float]) -> tuple[float, float]:
    """Where one further run is expected, from at least two runs: Student's interval of a new observation.

    Runs that all ended alike say little about how far another one may be off, so the interval reaches at least 0.1 to
    each side.
    """
    center, count = float(np.mean(known)), len(known)
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * float(np.std(known, ddof=1)) * math.sqrt(1 + 1 / count)
    half = max(half, 0.1)
    return center - half, center + half


def _better(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.mean(one[:, None] > other) + 0.5 * np.mean(one[:, None] == other))


def _bootstrapped(statistic: Statistic, scores: Scores) -> Interval:
    """A statistic over the runs of all tasks, and its percentile interval with runs resampled within their task."""
    draws = np.random.default_rng(SEED)
    strata = [np.asarray(runs, dtype=float) for runs in scores.values()]
    resampled = np.concatenate([draws.choice(runs, (RESAMPLES, len(runs))) for runs in strata], axis=1)
    return Interval(float(statistic(np.concatenate(strata))), *_quantiles(statistic(resampled)))


def _quantiles(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
