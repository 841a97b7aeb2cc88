"""How often the 95 % intervals of `gem-core eval` contain the true value.

    python benchmarks/eval_intervals.py [--evaluations 3000] [--seed 0] [--worst 3]

Simulates evaluations of models whose true values are known, without a model or an environment. The chance of success of
a task has a beta distribution, so that two repeats of a task have a given correlation. Prints a line for each kind of
interval and number of tasks, with the lowest and highest coverage over the cells, and the cells of lowest coverage.

| intervals | cells |
| --- | --- |
| success | 112: 30, 60, 100, 200 tasks; 1, 4, 8 repeats; success .05, .2, .5, .9; correlation .1, .5, .9 |
| pass@k, pass^k | the 96 of these with 4 or 8 repeats, for k = 2, 4 |
| success, hard | 240: success .02, .05, .2, .9, .97; 4, 8, 16 repeats; correlation .1, .3, .5, .9 |
| difference | 378: 10, 30, 100 tasks; 1, 4 repeats; 7 pairs of success; correlation .1, .5, .9; three kinds of pairs |

The three kinds of pairs: none, half or all of the tasks have the same rank of difficulty for both models. "difference,
Student" is Student's interval over the differences of tasks, for comparison.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import betaincinv, stdtrit

from gem_evaluation._statistics import PULL_OF_MORE, Array, chance_of_all, chance_of_any, difference_interval, interval

PAIRS = ((0.05, 0.05), (0.05, 0.15), (0.5, 0.5), (0.5, 0.7), (0.9, 0.9), (0.9, 0.97), (0.05, 0.9))


@dataclass(frozen=True)
class Cell:
    """What is simulated: tasks, repeats of each, true mean success, and correlation of two repeats of a task."""

    tasks: int
    repeats: int
    success: float
    correlation: float

    @property
    def beta(self) -> tuple[float, float]:
        """The parameters of the distribution of a task's chance of success."""
        total = 1 / self.correlation - 1
        return self.success * total, (1 - self.success) * total

    def any_of(self, k: int) -> float:
        """The true pass@k."""
        a, b = self.beta
        return 1 - float(np.prod([(b + i) / (a + b + i) for i in range(k)]))

    def all_of(self, k: int) -> float:
        """The true pass^k."""
        a, b = self.beta
        return float(np.prod([(a + i) / (a + b + i) for i in range(k)]))


@dataclass(frozen=True)
class Covered:
    """How often an interval held in a cell, and its mean width."""

    cell: str
    tasks: int
    share: float
    width: float


def covered(cell: object, tasks: int, ends: tuple[Array, Array], true: float) -> Covered:
    low, high = ends
    held = (low <= true + 1e-12) & (true - 1e-12 <= high)
    return Covered(str(cell), tasks, float(held.mean()), float((high - low).mean()))


def study_cells() -> Iterator[Cell]:
    for tasks, repeats, success, correlation in product(
        (30, 60, 100, 200), (1, 4, 8), (0.05, 0.2, 0.5, 0.9), (0.1, 0.5, 0.9)
    ):
        if repeats > 1 or correlation == 0.5:  # without repeats the correlation changes nothing
            yield Cell(tasks, repeats, success, correlation)


def hard_cells() -> Iterator[Cell]:
    for values in product((30, 60, 100, 200), (4, 8, 16), (0.02, 0.05, 0.2, 0.9, 0.97), (0.1, 0.3, 0.5, 0.9)):
        yield Cell(*values)


def successes(cell: Cell, evaluations: int, rng: np.random.Generator) -> Array:
    """How many repeats succeeded, of each task of each evaluation; (evaluations, tasks)."""
    return rng.binomial(cell.repeats, rng.beta(*cell.beta, size=(evaluations, cell.tasks)))


def coverage(cell: Cell, evaluations: int, rng: np.random.Generator) -> dict[str, Covered]:
    """The coverage of the intervals of success, pass@k and pass^k in a cell."""
    counts = successes(cell, evaluations, rng)
    ends = interval(counts / cell.repeats, np.full(cell.tasks, cell.repeats))
    found = {"success": covered(cell, cell.tasks, ends, cell.success)}
    for k in (2, 4):
        if k > cell.repeats:
            break
        for name, chance, true in (("pass@", chance_of_any, cell.any_of(k)), ("pass^", chance_of_all, cell.all_of(k))):
            values = np.array([chance(cell.repeats, count, k) for count in range(cell.repeats + 1)])[counts]
            ends = interval(values, np.full(cell.tasks, cell.repeats // k), PULL_OF_MORE)
            found[f"{name}{k}"] = covered(cell, cell.tasks, ends, true)
    return found


def paired_coverage(
    first: Cell, second: Cell, alike: float, evaluations: int, rng: np.random.Generator
) -> dict[str, Covered]:
    """The coverage of intervals of the difference of success.

    Args:
        alike: share of the tasks that have the same rank of difficulty for both models.
    """
    rank = rng.random((evaluations, first.tasks))
    again = np.where(rng.random(rank.shape) < alike, rank, rng.random(rank.shape))
    before = rng.binomial(first.repeats, betaincinv(*first.beta, rank)) / first.repeats
    after = rng.binomial(second.repeats, betaincinv(*second.beta, again)) / second.repeats
    repeats = np.full(first.tasks, first.repeats)
    true = second.success - first.success
    cell = f"{first} and success={second.success}, {alike:.0%} alike"
    return {
        "difference": covered(cell, first.tasks, difference_interval(before, after, repeats, repeats), true),
        "difference, Student": covered(cell, first.tasks, student(after - before), true),
    }


def student(differences: Array) -> tuple[Array, Array]:
    """Student's interval, as `gem_evaluation._statistics.mean` has it, for many evaluations; (..., tasks)."""
    tasks = differences.shape[-1]
    center = differences.mean(-1)
    half = stdtrit(tasks - 1, 0.975) * differences.std(-1, ddof=1) / np.sqrt(tasks)
    return center - half, center + half


def everything(evaluations: int, rng: np.random.Generator) -> Iterator[tuple[str, Covered]]:
    for cell in study_cells():
        yield from coverage(cell, evaluations, rng).items()
    for cell in hard_cells():
        for name, one in coverage(cell, evaluations, rng).items():
            yield f"{name}, hard", one
    for tasks, repeats, pair, correlation, alike in product(
        (10, 30, 100), (1, 4), PAIRS, (0.1, 0.5, 0.9), (0.0, 0.5, 1.0)
    ):
        first, second = (Cell(tasks, repeats, success, correlation) for success in pair)
        yield from paired_coverage(first, second, alike, evaluations, rng).items()


def show(name: str, cells: list[Covered], worst: int) -> None:
    for tasks in sorted({one.tasks for one in cells}):
        shares = np.array([one.share for one in cells if one.tasks == tasks])
        width = np.mean([one.width for one in cells if one.tasks == tasks])
        print(
            f"{name:20} {tasks:4} tasks, {len(shares):3} cells: {shares.min():.3f} to {shares.max():.3f}, "
            f"{(shares < 0.93).sum():2} below 93 %, {(shares > 0.98).sum():2} above 98 %, mean width {width:.3f}"
        )
    for one in sorted(cells, key=lambda one: one.share)[:worst]:
        print(f"    {one.share:.3f} {one.cell}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=3000, help="in each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=3, help="cells to name")
    options = parser.parse_args()
    found: dict[str, list[Covered]] = defaultdict(list)
    for name, one in everything(options.evaluations, np.random.default_rng(options.seed)):
        found[name].append(one)
    for name, cells in found.items():
        show(name, cells, options.worst)


if __name__ == "__main__":
    main()
