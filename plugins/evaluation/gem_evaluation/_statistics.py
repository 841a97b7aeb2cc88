"""Estimates and their intervals. Repeats of a task are alike, so tasks are what is counted.

`interval` and `difference_interval` are the formulas, for one evaluation or for many at a time. The other functions
apply them to one evaluation. plugins/evaluation/README.md has the measured coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
PULL = 4
"""Tasks' worth by which the variance of repeats is pulled towards that of repeats which always agree."""
PULL_OF_MORE = 16
"""The same for pass@k and pass^k with k from 2: a few tasks decide them, so their variance is less well known."""

Array = NDArray[np.float64]


class Estimate(msgspec.Struct, frozen=True):
    """A mean over tasks, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Success(Estimate, frozen=True):
    """The success of episodes of which some failed: `value`, `low` and `high` are of the others.

    Failed episodes are not a random sample: long ones have more chances to fail. So what is printed includes them.
    """

    at_least: Estimate
    """The success if all failed episodes were unsuccessful."""
    at_most: Estimate
    """The success if all of them were successful."""
    failed: float
    """Their share."""
    too_many: bool
    """Whether so many failed that `value` is not printed."""

    def __str__(self) -> str:
        return self.written("{:.3f}".format)

    def written(self, number: Callable[[float], str], unit: str = "") -> str:
        """The success as text: with its interval, or if episodes failed, from the lowest to the highest.

        Args:
            number: writes a share.
            unit: follows each share except the bounds of the interval.
        """
        known = f"{number(self.value)}{unit}"
        if not self.failed:
            return f"{known} [{number(self.low)}, {number(self.high)}]"
        low, high = number(self.at_least.value), number(self.at_most.value)
        ends = f"[{number(self.at_least.low)}, {number(self.at_most.high)}]"
        return f"{'' if self.too_many else f'{known}, '}{low} to {high}{unit} with failed {ends}"


def success_with_failures(tasks: Sequence[tuple[Sequence[bool], int]], limit: float) -> Success | None:
    """The mean success over tasks of which some episodes failed.

    Args:
        tasks: of each task whether its finished repeats succeeded, and how many repeats failed; at least one of both.
        limit: the share of failed episodes above which there are too many.

    Returns:
        `None` if no episode is finished.
    """
    finished = [played for played, _ in tasks if played]
    if not finished:
        return None
    known, failed = success_rate(finished), sum(count for _, count in tasks)
    if not failed:
        return Success(known.value, known.low, known.high, known, known, 0.0, False)
    share = failed / (failed + sum(map(len, finished)))
    worst, best = (success_rate([[*played, *[result] * count] for played, count in tasks]) for result in (False, True))
    return Success(known.value, known.low, known.high, worst, best, share, share > limit)


def success_rate(tasks: Sequence[Sequence[bool]]) -> Estimate:
    """The mean success over tasks, with the interval of `interval`.

    Args:
        tasks: of each task, whether its repeats succeeded; at least one each.

    Raises:
        ValueError: no task, or a task without an episode.
    """
    return _bounded_mean(*_means(tasks))


def mean(tasks: Sequence[Sequence[float]]) -> Estimate:
    """The mean over tasks of a number without bounds, with Student's interval over the means of tasks.

    With one task the interval is the whole line.

    Raises:
        ValueError: no task, or a task without an episode.
    """
    means, _ = _means(tasks)
    center = float(means.mean())
    if len(means) == 1:
        return Estimate(center, -math.inf, math.inf)
    half = _quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Estimate(center, center - half, center + half)


def pass_at(tasks: Sequence[Sequence[bool]], k: int) -> Estimate:
    """The chance that at least one of `k` repeats succeeds, without bias. The interval is that of `interval`.

    Args:
        tasks: of each task, whether its repeats succeeded. Tasks with fewer than `k` repeats are left out.
        k: at least 1.

    Raises:
        ValueError: no task has `k` repeats.
    """
    return _over_tasks(tasks, k, chance_of_any)


def pass_all(tasks: Sequence[Sequence[bool]], k: int) -> Estimate:
    """The chance that all of `k` repeats succeed (pass^k), without bias. Arguments and errors as `pass_at`."""
    return _over_tasks(tasks, k, chance_of_all)


def chance_of_any(repeats: int, successes: int, k: int) -> float:
    """The share of subsets of `k` repeats with a success: `1 - C(n - c, k) / C(n, k)`.

    Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374).
    """
    return 1 - math.comb(repeats - successes, k) / math.comb(repeats, k)


def chance_of_all(repeats: int, successes: int, k: int) -> float:
    """The share of subsets of `k` repeats without a failure: `C(c, k) / C(n, k)`.

    Yao et al., "tau-bench" (arXiv 2406.12045).
    """
    return math.comb(successes, k) / math.comb(repeats, k)


def difference(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Estimate:
    """The mean of the second less that of the first, over the same tasks in the same order, with Student's interval.

    Raises:
        ValueError: not the same number of tasks, or as `mean`.
    """
    (before, _), (after, _) = _pairs(first, second)
    return mean([[one] for one in (after - before).tolist()])


def success_difference(first: Sequence[Sequence[bool]], second: Sequence[Sequence[bool]]) -> Estimate:
    """As `difference`, of success, with the interval of `difference_interval`."""
    (before, repeats), (after, again) = _pairs(first, second)
    low, high = difference_interval(before, after, repeats, again)
    return Estimate(float(after.mean() - before.mean()), float(low), float(high))


def interval(values: Array, repeats: Array, pull: int = PULL) -> tuple[Array, Array]:
    """The ends of the interval of a mean over tasks of values in [0, 1].

    It is Wilson's interval (1927) for the effective number of episodes `p (1 - p) / v`, where `v` is the variance of
    the mean over tasks (Miller, "Adding Error Bars to Evals", arXiv 2411.00640), pulled towards that of repeats which
    always agree. The quantile is Student's with `tasks - 1` degrees of freedom. With a handful of
    successes or failures Wilson's interval is too short (Brown, Cai and DasGupta 2001, who correct it alike), so
    it reaches at least as far as the one-sided exact limits of Clopper and Pearson, 95 % each.

    Args:
        values: of each task; (..., tasks).
        repeats: independent values that the value of a task is a mean of, at most; (tasks,).
        pull: by how many tasks' worth the variance is pulled.

    Returns:
        Both ends; (...) each.
    """
    p: Array = values.mean(-1)
    tasks = values.shape[-1]
    if tasks == 1:
        return np.zeros_like(p), np.ones_like(p)
    effective = _effective_number(values, repeats, pull)
    z2 = _quantile(tasks - 1) ** 2
    center = (p + z2 / 2 / effective) / (1 + z2 / effective)
    half = math.sqrt(z2) / (1 + z2 / effective) * np.sqrt(p * (1 - p) / effective + z2 / 4 / effective**2)
    low = np.minimum(center - half, _exact_limit(p, effective))
    high = np.maximum(center + half, 1 - _exact_limit(1 - p, effective))
    return np.minimum(np.maximum(low, 0), p), np.maximum(np.minimum(high, 1), p)


def difference_interval(first: Array, second: Array, repeats: Array, again: Array) -> tuple[Array, Array]:
    """The ends of the interval of the mean difference of values in [0, 1] over the same tasks.

    It joins the intervals of both means by the correlation between tasks (Newcombe 1998, "Improved confidence intervals
    for the difference between binomial proportions based on paired data", method 10; Zou and Donner 2008 for intervals
    of any kind). The correlation is pulled by two tasks' worth towards none.

    Args:
        first, second: values of each task; (..., tasks).
        repeats, again: of each task in the first and the second, as in `interval`.

    Returns:
        Both ends of the second mean less the first; (...) each.
    """
    before, after = first.mean(-1), second.mean(-1)
    if first.shape[-1] == 1:
        return -np.ones_like(before), np.ones_like(before)
    before_low, before_high = interval(first, repeats)
    after_low, after_high = interval(second, again)
    correlation = _correlation(first, second)
    below = _joined(after - after_low, before_high - before, correlation)
    above = _joined(after_high - after, before - before_low, correlation)
    return np.maximum(after - before - below, -1), np.minimum(after - before + above, 1)


def _effective_number(values: Array, repeats: Array, pull: int) -> Array:
    """As many independent episodes as would give the mean over tasks its variance."""
    p: Array = values.mean(-1)
    tasks = values.shape[-1]
    if repeats.max() == 1:
        return np.full_like(p, tasks)
    pulled = (values.sum(-1) + 1) / (tasks + 2)
    variance = (values.var(-1, ddof=1) + pull * pulled * (1 - pulled) / tasks) / (tasks + pull)
    spread: Array = p * (1 - p)
    effective: Array = np.where(spread > 0, spread / variance, float(tasks))
    return np.minimum(np.maximum(effective, tasks / 2), repeats.sum())


def _exact_limit(p: Array, effective: Array) -> Array:
    """The lower limit of Clopper and Pearson, for a number of episodes that need not be whole."""
    from scipy.special import betaincinv  # pyright: ignore[reportMissingTypeStubs]

    successes = np.maximum(p * effective, np.finfo(np.float64).tiny)  # without a success the limit is 0
    return betaincinv(successes, (1 - p) * effective + 1, 1 - LEVEL)


def _correlation(first: Array, second: Array) -> Array:
    tasks = first.shape[-1]
    one = first - first.mean(-1, keepdims=True)
    other = second - second.mean(-1, keepdims=True)
    scale = np.sqrt((one**2).sum(-1) * (other**2).sum(-1))
    found = np.divide((one * other).sum(-1), scale, out=np.zeros_like(scale), where=scale > 0)
    return found * tasks / (tasks + 2)


def _joined(one: Array, other: Array, correlation: Array) -> Array:
    return np.sqrt(one**2 + other**2 - 2 * correlation * one * other)


def _over_tasks(tasks: Sequence[Sequence[bool]], k: int, chance: Callable[[int, int, int], float]) -> Estimate:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    enough = [one for one in tasks if len(one) >= k]
    if not enough:
        raise ValueError(f"no task has {k} repeats")
    values = [chance(len(one), sum(map(bool, one)), k) for one in enough]
    repeats = np.array([float(len(one) // k) for one in enough])
    return _bounded_mean(np.array(values), repeats, PULL if k == 1 else PULL_OF_MORE)


def _bounded_mean(values: Array, repeats: Array, pull: int = PULL) -> Estimate:
    low, high = interval(values, repeats, pull)
    return Estimate(float(values.mean()), float(low), float(high))


def _pairs(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    if len(first) != len(second):
        raise ValueError(f"{len(first)} tasks cannot be paired with {len(second)}")
    return _means(first), _means(second)


def _means(tasks: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    """The mean of each task and its number of repeats; (tasks,) each."""
    if not tasks or not all(len(one) for one in tasks):
        raise ValueError("an estimate needs at least one task, and one episode of each")
    return np.array([float(np.mean(one)) for one in tasks]), np.array([float(len(one)) for one in tasks])


def _quantile(degrees: int) -> float:
    from scipy.special import stdtrit  # pyright: ignore[reportMissingTypeStubs]

    return float(stdtrit(degrees, (1 + LEVEL) / 2))
