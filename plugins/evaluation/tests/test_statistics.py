"""Estimates equal brute force, and intervals equal reference values and contain the true value often enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaincinv

from gem_evaluation._statistics import (
    PULL_OF_MORE,
    Array,
    Estimate,
    chance_of_all,
    chance_of_any,
    difference,
    difference_interval,
    interval,
    mean,
    pass_all,
    pass_at,
    success_difference,
    success_rate,
    success_with_failures,
)

Outcomes = Sequence[Sequence[bool]]

UNEQUAL: Outcomes = [
    [True, False, False, True, True],
    [False, False, False],
    [True, True, True, False],
    [True],
    [False],
]


def ends(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


# Estimates.


def over_subsets(tasks: Outcomes, k: int, succeeds: Callable[[Sequence[bool]], bool]) -> float:
    return fmean(fmean(succeeds(subset) for subset in combinations(task, k)) for task in tasks if len(task) >= k)


@pytest.mark.parametrize("repeats", range(1, 7))
def test_chances_are_those_over_all_subsets(repeats: int) -> None:
    for outcomes, k in product(product([False, True], repeat=repeats), range(1, repeats + 1)):
        assert pass_at([outcomes], k).value == pytest.approx(over_subsets([outcomes], k, any))
        assert pass_all([outcomes], k).value == pytest.approx(over_subsets([outcomes], k, all))


@pytest.mark.parametrize("k", range(1, 6))
def test_tasks_with_unequal_repeats_count_alike(k: int) -> None:
    assert pass_at(UNEQUAL, k).value == pytest.approx(over_subsets(UNEQUAL, k, any))
    assert pass_all(UNEQUAL, k).value == pytest.approx(over_subsets(UNEQUAL, k, all))


def test_one_repeat_of_each_is_success() -> None:
    assert pass_at(UNEQUAL, 1) == pass_all(UNEQUAL, 1) == success_rate(UNEQUAL)
    assert success_rate(UNEQUAL).value == pytest.approx(fmean([3 / 5, 0, 3 / 4, 1, 0]))


def test_success_may_be_numbers() -> None:
    assert success_rate([[1.0, 0.0], [0.0, 0.0]]) == success_rate([[True, False], [False, False]])
    assert success_rate([np.array([True, False])]) == success_rate([[True, False]])


def test_an_estimate_shows_its_interval() -> None:
    assert str(Estimate(0.5, 0.25, 1.0)) == "0.500 [0.250, 1.000]"


# Intervals, against other sources.


@pytest.mark.parametrize(("tasks", "successes"), [(30, 15), (100, 50), (60, 20), (1000, 100), (1000, 970)])
def test_single_repeats_have_wilson_s_interval_with_student_s_quantile(tasks: int, successes: int) -> None:
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, tasks - 1)) - 1
    wilson = stats.binomtest(successes, tasks).proportion_ci(level, method="wilson")
    found = success_rate([[number < successes] for number in range(tasks)])
    assert ends(found) == pytest.approx((wilson.low, wilson.high))


def test_many_tasks_have_the_published_example_of_wilson_s_interval() -> None:
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I: 81 of 263.
    found = success_rate([[number < 81] for number in range(263)])
    assert ends(found) == pytest.approx((0.2553, 0.3662), abs=5e-4)


@pytest.mark.parametrize(("tasks", "successes"), [(30, 1), (100, 1), (100, 2), (200, 3)])
def test_a_few_successes_or_failures_have_exact_limits(tasks: int, successes: int) -> None:
    exact = stats.binomtest(successes, tasks, alternative="greater").proportion_ci(0.95, method="exact")
    few = success_rate([[number < successes] for number in range(tasks)])
    many = success_rate([[number >= successes] for number in range(tasks)])
    assert few.low == pytest.approx(exact.low)
    assert ends(many) == pytest.approx((1 - few.high, 1 - few.low))


def test_the_interval_of_repeats_by_hand() -> None:
    # Tasks with means 1, 1, 0.5, 0 of two repeats.
    p, pulled = 2.5 / 4, 3.5 / 6
    spread = (2 * 0.375**2 + 0.125**2 + 0.625**2) / 3
    variance = (spread + 4 * pulled * (1 - pulled) / 4) / 8
    n = p * (1 - p) / variance
    z2 = 3.1824463**2  # Student's quantile with 3 degrees of freedom
    half = math.sqrt(z2) * math.sqrt(p * (1 - p) / n + z2 / 4 / n**2) / (1 + z2 / n)
    center = (p + z2 / 2 / n) / (1 + z2 / n)
    found = success_rate([[True, True], [True, True], [True, False], [False, False]])
    assert found.value == p
    assert ends(found) == pytest.approx((center - half, center + half))


def test_repeats_that_agree_are_no_more_than_one_and_others_narrow_the_interval() -> None:
    single = success_rate([[number % 2 == 0] for number in range(50)])
    agreeing = success_rate([[number % 2 == 0] * 8 for number in range(50)])
    independent = success_rate([[True, False] * 4 for _ in range(50)])
    assert ends(agreeing) == pytest.approx(ends(single), abs=0.005)
    assert independent.high - independent.low < 0.6 * (single.high - single.low)


def test_pass_at_and_pass_all_have_the_interval_of_many_evaluations() -> None:
    counts = np.random.default_rng(0).integers(0, 5, size=(3, 40))
    for estimate, chance in ((pass_at, chance_of_any), (pass_all, chance_of_all)):
        values = np.array([chance(4, count, 2) for count in range(5)])[counts]
        lows, highs = interval(values, np.full(40, 2), PULL_OF_MORE)
        for row, low, high in zip(counts.tolist(), lows, highs, strict=True):
            found = estimate([[number < count for number in range(4)] for count in row], 2)
            assert ends(found) == pytest.approx((low, high))


def test_a_mean_has_student_s_interval() -> None:
    means = [0.0, 1.5, 4.0]
    found = mean([[-1.0, 1.0], [1.5], [3.0, 4.0, 5.0]])
    assert ends(found) == pytest.approx(stats.t.interval(0.95, 2, fmean(means), stats.sem(means)))


def test_a_difference_is_paired() -> None:
    first, second = [[1.0], [5.0], [9.0]], [[2.0], [6.5, 5.5], [9.5]]
    reference = stats.ttest_rel([2, 6, 9.5], [1, 5, 9]).confidence_interval(0.95)
    assert ends(difference(first, second)) == pytest.approx((reference.low, reference.high))


def test_a_difference_of_success_by_hand() -> None:
    # Of ten tasks both solve four, the first one more, the second three more.
    first = [[True]] * 4 + [[True]] + [[False]] * 5
    second = [[True]] * 4 + [[False]] + [[True]] * 3 + [[False]] * 2
    one, other = success_rate(first), success_rate(second)
    phi = (4 * 2 - 1 * 3) / math.sqrt(5 * 5 * 7 * 3) * 10 / 12
    below, above = other.value - other.low, one.high - one.value
    low = 0.2 - math.sqrt(below**2 + above**2 - 2 * phi * below * above)
    below, above = one.value - one.low, other.high - other.value
    high = 0.2 + math.sqrt(below**2 + above**2 - 2 * phi * below * above)
    found = success_difference(first, second)
    assert (found.value, *ends(found)) == pytest.approx((0.2, low, high))
    assert ends(success_difference(second, first)) == pytest.approx((-high, -low))


def test_equal_models_that_differ_nowhere_have_a_difference_that_is_not_certain() -> None:
    found = success_difference([[False]] * 20, [[False]] * 20)
    assert found.value == 0
    assert found.low < -0.1 < 0.1 < found.high


# Edges.


@pytest.mark.parametrize("outcome", [True, False])
@pytest.mark.parametrize("repeats", [1, 4])
@pytest.mark.parametrize("estimate", [success_rate, lambda tasks: pass_at(tasks, 1), lambda tasks: pass_all(tasks, 1)])
def test_all_or_none_is_not_certain(estimate: Callable[[Outcomes], Estimate], repeats: int, outcome: bool) -> None:
    found = estimate([[outcome] * repeats] * 30)
    assert found.value == outcome
    assert ends(found) == ((0.0, pytest.approx(0.122, abs=1e-3)), (pytest.approx(0.878, abs=1e-3), 1.0))[outcome]


def test_one_task_says_nothing() -> None:
    assert success_rate([[True, True, False]]) == Estimate(2 / 3, 0.0, 1.0)
    assert pass_at([[True, False], [True]], 2) == Estimate(1.0, 0.0, 1.0)
    assert success_difference([[False]], [[True]]) == Estimate(1.0, -1.0, 1.0)
    assert mean([[3.0, 4.0]]) == Estimate(3.5, -math.inf, math.inf)


def test_every_interval_contains_its_estimate_and_ends_within_bounds() -> None:
    rng = np.random.default_rng(0)
    for tasks, repeats, chance in product((2, 3, 10), (1, 2, 7), (0.02, 0.5, 0.98)):
        for _ in range(5):
            first, second = (rng.random((tasks, repeats)) < chance for _ in range(2))
            for found in (success_rate(first.tolist()), pass_at(first.tolist(), repeats)):
                assert 0 <= found.low <= found.value <= found.high <= 1
            found = success_difference(first.tolist(), second.tolist())
            assert -1 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("tasks", [[], [[]], [[True], []]])
def test_nothing_to_estimate(tasks: Outcomes) -> None:
    for estimate in (success_rate, mean):
        with pytest.raises(ValueError, match="at least one task, and one episode of each"):
            estimate(tasks)


def test_impossible_k() -> None:
    for estimate in (pass_at, pass_all):
        with pytest.raises(ValueError, match="k must be at least 1, not 0"):
            estimate([[True]], 0)
        with pytest.raises(ValueError, match="no task has 2 repeats"):
            estimate([[True], [False]], 2)


def test_other_tasks_cannot_be_paired() -> None:
    for pair in (difference, success_difference):
        with pytest.raises(ValueError, match="1 tasks cannot be paired with 2"):
            pair([[True]], [[True], [False]])


# Coverage in the worst cells of benchmarks/eval_intervals.py. The seed is fixed, so luck cannot fail these.

EVALUATIONS = 2000


def share_covered(found: tuple[Array, Array], true: float) -> float:
    low, high = found
    return float(((low <= true) & (true <= high)).mean())


@pytest.mark.parametrize(
    ("tasks", "repeats", "success", "correlation"),
    [(30, 4, 0.05, 0.5), (60, 8, 0.05, 0.5), (100, 8, 0.05, 0.5), (100, 1, 0.9, 0.5), (200, 8, 0.9, 0.5)],
)
def test_success_is_covered(tasks: int, repeats: int, success: float, correlation: float) -> None:
    counts = simulated(tasks, repeats, success, correlation)
    found = interval(counts / repeats, np.full(tasks, repeats))
    assert share_covered(found, success) > 0.92


@pytest.mark.parametrize(
    ("tasks", "repeats", "success", "correlation", "k"),
    [
        (100, 4, 0.9, 0.1, 4),
        (60, 8, 0.9, 0.5, 2),
        (100, 8, 0.05, 0.5, 2),
        (200, 4, 0.05, 0.1, 4),
        (200, 16, 0.97, 0.5, 2),
    ],
)
def test_pass_at_and_pass_all_are_covered(tasks: int, repeats: int, success: float, correlation: float, k: int) -> None:
    counts = simulated(tasks, repeats, success, correlation)
    for chance, true in (
        (chance_of_any, 1 - chance_of_k(1 - success, correlation, k)),
        (chance_of_all, chance_of_k(success, correlation, k)),
    ):
        values = np.array([chance(repeats, count, k) for count in range(repeats + 1)])[counts]
        found = interval(values, np.full(tasks, repeats // k), PULL_OF_MORE)
        assert share_covered(found, true) > 0.92


@pytest.mark.parametrize("tasks", [10, 30])
@pytest.mark.parametrize(("first", "second"), [(0.9, 0.97), (0.5, 0.7), (0.05, 0.05)])
def test_a_difference_of_success_is_covered(tasks: int, first: float, second: float) -> None:
    rng = np.random.default_rng(0)
    rank = rng.random((EVALUATIONS, tasks))
    before, after = (rng.binomial(1, betaincinv(rate / 9, (1 - rate) / 9, rank)) for rate in (first, second))
    single = np.ones(tasks)
    assert share_covered(difference_interval(before, after, single, single), second - first) > 0.92


def simulated(tasks: int, repeats: int, success: float, correlation: float) -> NDArray[np.int64]:
    """How many repeats of each task succeed, where two repeats of a task are correlated; (evaluations, tasks)."""
    rng = np.random.default_rng(0)
    total = 1 / correlation - 1
    return rng.binomial(repeats, rng.beta(success * total, (1 - success) * total, size=(EVALUATIONS, tasks)))


def chance_of_k(success: float, correlation: float, k: int) -> float:
    """The true chance that all of `k` repeats have an outcome of that chance."""
    total = 1 / correlation - 1
    return math.prod((success * total + number) / (total + number) for number in range(k))


def test_the_range_covers_the_truth_though_hard_tasks_fail_more_often() -> None:
    """Long episodes are hard, and each of their turns may fail. The success of the others is too high."""
    draw = np.random.default_rng(0)
    covered, misled = 0, 0
    for _ in range(1000):
        turns = draw.integers(1, 12, size=80)
        chance = np.clip(1.1 - turns / 10, 0.02, 0.98)
        success = draw.random((80, 2)) < chance[:, None]
        failed = draw.random((80, 2)) < 1 - 0.9 ** turns[:, None]
        tasks = [(row[~lost].tolist(), int(lost.sum())) for row, lost in zip(success, failed, strict=True)]
        found = success_with_failures(tasks, 0.05)
        assert found is not None
        truth = float(np.mean(np.clip(1.1 - np.arange(1, 12) / 10, 0.02, 0.98)))
        covered += found.at_least.low <= truth <= found.at_most.high
        misled += not found.low <= truth <= found.high
        assert found.too_many
    assert covered >= 990
    assert misled > 100


def test_success_as_text() -> None:
    assert str(success_with_failures([([True], 0), ([False], 0)], 0.05)).startswith("0.500 [")
    few = success_with_failures([*[([True], 0)] * 49, *[([False], 0)] * 49, ([True], 1)], 0.05)
    assert str(few).startswith("0.505, 0.500 to 0.505 with failed [")
    many = success_with_failures([([True], 0), ([], 3)], 0.05)
    assert str(many).startswith("0.500 to 1.000 with failed [")  # no estimate of a single task of two
    assert success_with_failures([([], 3)], 0.05) is None
