"""Estimates and their intervals. Repeats of a task are alike, so tasks are what is counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95


class Estimate(msgspec.Struct, frozen=True):
    """A mean over tasks, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def success_rate(tasks: Sequence[Sequence[bool]]) -> Estimate:
    """The mean success over tasks, with a Wilson interval for the effective number of episodes.

    The effective number is `p (1 - p) / v`, where `v` is the variance of the mean over tasks, pulled by two tasks'
    worth towards that of repeats which always agree. The quantile is Student's with `tasks - 1` degrees of freedom.
    With it the interval holds for few tasks and for extreme rates (docs/evaluation.md has its coverage); Wilson 1927,
    and Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), for clusters.

    Args:
        tasks: of each task, whether its repeats succeeded; at least one each.

    Raises:
        ValueError: no task, or a task without an episode.
    """
    return _bounded_mean([float(np.mean(one)) for one in _checked(tasks)], [len(one) for one in tasks])


def mean(tasks: Sequence[Sequence[float]]) -> Estimate:
    """The mean over tasks of a number without bounds, with Student's interval over the means of tasks.

    With one task the interval is the whole line.

    Raises:
        ValueError: no task, or a task without an episode.
    """
    means = np.array([np.mean(one) for one in _checked(tasks)])
    center = float(means.mean())
    if len(means) == 1:
        return Estimate(center, -math.inf, math.inf)
    half = _quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Estimate(center, center - half, center + half)


def pass_at(tasks: Sequence[Sequence[bool]], k: int) -> Estimate:
    """The chance that at least one of `k` repeats succeeds, without bias: `1 - C(n - c, k) / C(n, k)` for each task.

    Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374).

    Args:
        tasks: of each task, whether its repeats succeeded. Tasks with fewer than `k` repeats are left out.
        k: at least 1.

    Raises:
        ValueError: no task has `k` repeats.
    """
    return _over_tasks(tasks, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all(tasks: Sequence[Sequence[bool]], k: int) -> Estimate:
    """The chance that all of `k` repeats succeed (pass^k), without bias: `C(c, k) / C(n, k)` for each task.

    Yao et al., "tau-bench" (arXiv 2406.12045). Arguments and errors as `pass_at`.
    """
    return _over_tasks(tasks, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def difference(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Estimate:
    """The mean of the second less that of the first, over the same tasks in the same order, with Student's interval.

    Raises:
        ValueError: not the same number of tasks, or as `mean`.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} tasks cannot be paired with {len(second)}")
    return mean([[float(np.mean(b)) - float(np.mean(a))] for a, b in zip(first, second, strict=True)])


def _over_tasks(tasks: Sequence[Sequence[bool]], k: int, chance: Callable[[int, int], float]) -> Estimate:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    enough = [one for one in tasks if len(one) >= k]
    if not enough:
        raise ValueError(f"no task has {k} repeats")
    values = [chance(len(one), sum(map(bool, one))) for one in enough]
    return _bounded_mean(values, [len(one) // k for one in enough])


def _bounded_mean(values: Sequence[float], repeats: Sequence[int]) -> Estimate:
    """The mean of values in [0, 1], one for each task, with the interval of `success_rate`."""
    means: NDArray[np.float64] = np.array(values)
    n, p = len(means), float(means.mean())
    largest = max(repeats)
    if n == 1:
        return Estimate(p, 0.0, 1.0)
    if largest == 1:
        effective = float(n)
    else:
        pulled = (float(means.sum()) + 1) / (n + 2)
        variance = (float(means.var(ddof=1)) + 2 * pulled * (1 - pulled) / n) / (n + 2)
        effective = p * (1 - p) / variance if p * (1 - p) > 0 else float(n)
        effective = min(max(effective, n / 2), float(sum(repeats)))
    z2 = _quantile(n - 1) ** 2
    center = (p + z2 / 2 / effective) / (1 + z2 / effective)
    half = math.sqrt(z2) / (1 + z2 / effective) * math.sqrt(p * (1 - p) / effective + z2 / 4 / effective**2)
    return Estimate(p, min(p, max(0.0, center - half)), max(p, min(1.0, center + half)))


def _quantile(degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def _checked(tasks: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    if not tasks or not all(len(one) for one in tasks):
        raise ValueError("an estimate needs at least one task, and one episode of each")
    return tasks
