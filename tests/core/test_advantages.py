"""Advantages against plain-Python brute force, over any split of the episodes between ranks."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gem_core.advantages import (
    Moments,
    TurnBatch,
    compute_advantages,
    drgrpo,
    gae,
    gigpo,
    grpo,
    rebn,
    rebn_loo,
    reinforce,
    returns_to_go,
    rloo,
    turn_grpo,
)
from gem_core.errors import AdvantageError
from gem_support.example_counts import examples

Floats = NDArray[np.float64]
Estimator = Callable[..., Floats]

BATCHWISE = {"reinforce": reinforce, "rebn": rebn, "rebn_loo": rebn_loo}
GROUPWISE = {"grpo": grpo, "drgrpo": drgrpo, "rloo": rloo}
TURNWISE = {"turn_grpo": turn_grpo, "gigpo": gigpo}
ESTIMATORS: dict[str, Estimator] = {**BATCHWISE, **GROUPWISE, **TURNWISE, "gae": gae}
NORMALIZED = {"rebn": rebn, "rebn_loo": rebn_loo, "grpo": grpo, **TURNWISE}

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
prop = settings(deadline=None, max_examples=examples(30))


@dataclass(frozen=True)
class SmallEpisode:
    """An episode as the brute force sees it."""

    rewards: tuple[float, ...]
    values: tuple[float, ...]
    group: int
    states: tuple[int, ...]


def batch_of(episodes: Sequence[SmallEpisode]) -> TurnBatch:
    return TurnBatch.from_rewards(
        [e.rewards for e in episodes],
        group_keys=[e.group for e in episodes],
        values=[e.values for e in episodes],
        states=[e.states for e in episodes],
    )


def on_ranks(estimator: Estimator, batches: Sequence[TurnBatch], **options: float) -> list[Floats]:
    """Run the estimator on one thread per rank; a rank that skips a collective call breaks the barrier."""
    barrier = threading.Barrier(len(batches), timeout=240)
    slots: list[Floats] = [np.empty(0)] * len(batches)

    def gather(rank: int, array: Floats) -> list[Floats]:
        assert array.ndim == 1
        assert array.dtype == np.float64
        slots[rank] = np.array(array)
        barrier.wait()
        gathered = [np.array(slot) for slot in slots]
        barrier.wait()
        return gathered

    def work(rank: int) -> Floats:
        return estimator(batches[rank], gather=partial(gather, rank), **options)

    with ThreadPoolExecutor(len(batches)) as pool:
        return list(pool.map(work, range(len(batches))))


# Strategies. Grid numbers are exact in binary, so that brute force in fractions sees the same numbers.
grid = st.integers(-640, 640).map(lambda k: k / 64)
# Squares of numbers below 1e-150 are zero in float64, and no reward is so small.
floats = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: x if abs(x) > 1e-150 else 0.0)
gammas = st.sampled_from([0.0, 0.5, 0.9, 1.0])


@st.composite
def played(draw: st.DrawFn, numbers: st.SearchStrategy[float], *, empty: bool = True) -> list[SmallEpisode]:
    """Episodes in groups of at least two that have turns, with empty episodes strewn in."""
    groups = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3, unique=True))
    row = st.lists(numbers, min_size=1, max_size=4)
    episodes: list[SmallEpisode] = []
    for group in groups:
        rows = draw(st.lists(row, min_size=2, max_size=4))
        rows += [[]] * draw(st.integers(0, 1 if empty else 0))
        for rewards in rows:
            values = draw(st.lists(numbers, min_size=len(rewards), max_size=len(rewards)))
            states = draw(
                st.lists(st.sampled_from([-(2**63), 2**53, 2**53 + 1]), min_size=len(rewards), max_size=len(rewards))
            )
            episodes.append(SmallEpisode(tuple(rewards), tuple(values), group, tuple(states)))
    return draw(st.permutations(episodes))


# Brute force: the definitions, word for word, in exact arithmetic.
Exact = list[list[Fraction]]


def exact_returns(episodes: Sequence[SmallEpisode], gamma: float) -> Exact:
    discount = Fraction(gamma)
    return [
        [
            sum((discount**k * Fraction(r) for k, r in enumerate(e.rewards[t:])), Fraction(0))
            for t in range(len(e.rewards))
        ]
        for e in episodes
    ]


def mean(numbers: Sequence[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0)) / len(numbers)


def std(numbers: Sequence[Fraction]) -> Fraction:
    centre = mean(numbers)
    return Fraction(math.sqrt(mean([(x - centre) ** 2 for x in numbers]))) + Fraction(1e-9)


def equal(numbers: Sequence[Fraction]) -> bool:
    return max(numbers) - min(numbers) <= Fraction(1e-9) * max(abs(x) for x in numbers)


def brute_batchwise(name: str, episodes: Sequence[SmallEpisode], gamma: float) -> Exact:
    rows = exact_returns(episodes, gamma)
    everything = [g for row in rows for g in row]
    if name == "reinforce":
        return rows
    alone = sum(1 for row in rows if row) == 1
    if equal(everything) or (name == "rebn_loo" and alone):
        return [[Fraction(0) for _ in row] for row in rows]
    if name == "rebn":
        return [[(g - mean(everything)) / std(everything) for g in row] for row in rows]
    others = [[g for other in rows if other is not row for g in other] for row in rows]
    return [[(g - mean(rest)) / std(everything) for g in row] for row, rest in zip(rows, others, strict=True)]


def brute_groupwise(name: str, episodes: Sequence[SmallEpisode], gamma: float) -> Exact:
    starts = [row[0] if row else None for row in exact_returns(episodes, gamma)]
    advantages: Exact = []
    for i, episode in enumerate(episodes):
        mine = starts[i]
        if mine is None:
            advantages.append([])
            continue
        members = [(k, g) for k, g in enumerate(starts) if g is not None and episodes[k].group == episode.group]
        group = [g for _, g in members]
        others = [g for k, g in members if k != i]
        number = Fraction(0)
        if not equal(group):
            number = {
                "grpo": (mine - mean(group)) / std(group),
                "drgrpo": mine - mean(group),
                "rloo": mine - mean(others),
            }[name]
        advantages.append([number] * len(episode.rewards))
    return advantages


def brute_turnwise(name: str, episodes: Sequence[SmallEpisode], gamma: float) -> Exact:
    returns = exact_returns(episodes, gamma)

    def key(episode: SmallEpisode, turn: int) -> tuple[int, int]:
        return episode.group, turn if name == "turn_grpo" else episode.states[turn]

    def advantage(episode: SmallEpisode, turn: int, own: Fraction) -> Fraction:
        mates = [
            g
            for other, row in zip(episodes, returns, strict=True)
            for at, g in enumerate(row)
            if key(other, at) == key(episode, turn)
        ]
        return Fraction(0) if equal(mates) else (own - mean(mates)) / std(mates)

    rows = [[advantage(e, t, g) for t, g in enumerate(row)] for e, row in zip(episodes, returns, strict=True)]
    if name == "turn_grpo":
        return rows
    whole = brute_groupwise("grpo", episodes, 1.0)
    return [[x + y for x, y in zip(*both, strict=True)] for both in zip(whole, rows, strict=True)]


def brute_gae(episodes: Sequence[SmallEpisode], gamma: float, lam: float) -> Exact:
    discount, decay = Fraction(gamma), Fraction(gamma) * Fraction(lam)
    advantages: Exact = []
    for episode in episodes:
        values = [*map(Fraction, episode.values), Fraction(0)]
        deltas = [Fraction(r) + discount * values[t + 1] - values[t] for t, r in enumerate(episode.rewards)]
        count = len(deltas)
        advantages.append(
            [sum((decay ** (k - t) * deltas[k] for k in range(t, count)), Fraction(0)) for t in range(count)]
        )
    return advantages


def brute(name: str, episodes: Sequence[SmallEpisode], gamma: float) -> Floats:
    if name == "gae":
        exact = brute_gae(episodes, gamma, 0.95)
    elif name in GROUPWISE:
        exact = brute_groupwise(name, episodes, gamma)
    elif name in TURNWISE:
        exact = brute_turnwise(name, episodes, gamma)
    else:
        exact = brute_batchwise(name, episodes, gamma)
    return np.array([float(number) for row in exact for number in row])


def assert_close(found: Floats, expected: Floats) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# The numbers


@every_estimator
@prop
@given(episodes=played(grid), gamma=gammas)
def test_agrees_with_brute_force(name: str, episodes: list[SmallEpisode], gamma: float) -> None:
    assert_close(ESTIMATORS[name](batch_of(episodes), gamma=gamma), brute(name, episodes, gamma))


@every_estimator
@prop
@given(episodes=played(floats), gamma=gammas, ranks=st.integers(1, 4), data=st.data())
def test_any_split_over_ranks_gives_the_same(
    name: str, episodes: list[SmallEpisode], gamma: float, ranks: int, data: st.DataObject
) -> None:
    homes = data.draw(st.lists(st.integers(0, ranks - 1), min_size=len(episodes), max_size=len(episodes)))
    split = [[e for e, home in zip(episodes, homes, strict=True) if home == rank] for rank in range(ranks)]
    together = ESTIMATORS[name](batch_of([e for part in split for e in part]), gamma=gamma)
    apart = on_ranks(ESTIMATORS[name], [batch_of(part) for part in split], gamma=gamma)
    assert_close(np.concatenate(apart), together)


@every_estimator
@prop
@given(episodes=played(floats, empty=False), data=st.data())
def test_permuting_the_turns_permutes_the_result(name: str, episodes: list[SmallEpisode], data: st.DataObject) -> None:
    batch = batch_of(episodes)
    assert batch.group_key is not None
    assert batch.values is not None
    assert batch.state is not None
    order = np.array(data.draw(st.permutations(range(len(batch)))))
    labels = np.array(data.draw(st.permutations(range(-3, len(episodes)))))  # any numbers name the episodes
    shuffled = TurnBatch(
        batch.rewards[order],
        labels[batch.episode][order],
        batch.turn[order],
        batch.group_key[order],
        batch.values[order],
        batch.state[order],
    )
    assert_close(ESTIMATORS[name](shuffled, gamma=0.9), ESTIMATORS[name](batch, gamma=0.9)[order])


def test_returns_to_go_by_hand() -> None:
    batch = TurnBatch.from_rewards([[1.0, 2.0, 4.0], [], [8.0]])
    assert returns_to_go(batch, 0.5).tolist() == [3.0, 4.0, 4.0, 8.0]
    assert returns_to_go(batch).tolist() == [7.0, 6.0, 4.0, 8.0]


def test_gae_between_its_two_ends() -> None:
    batch = TurnBatch.from_rewards([[1.0, 0.0, 2.0]], values=[[0.5, 0.25, 1.0]])
    assert gae(batch, lam=1.0).tolist() == (returns_to_go(batch) - [0.5, 0.25, 1.0]).tolist()
    assert gae(batch, lam=0.0).tolist() == [0.75, 0.75, 1.0]


def test_a_group_counts_episodes_not_turns() -> None:
    batch = TurnBatch.from_rewards([[1.0], [0.0, 0.0, 0.0]], group_keys=[7, 7])
    assert drgrpo(batch).tolist() == [0.5, -0.5, -0.5, -0.5]
    assert rloo(batch).tolist() == [1.0, -1.0, -1.0, -1.0]


def test_group_ids_that_a_float_cannot_tell_apart() -> None:
    ids = [2**53, 2**53 + 1, -(2**63), 2**63 - 1]
    batches = [TurnBatch.from_rewards([[float(k)], [k + 2.0]], group_keys=[i, i]) for k, i in enumerate(ids)]
    for advantages in on_ranks(drgrpo, batches):
        assert advantages.tolist() == [-1.0, 1.0]


def test_leaving_one_trajectory_out_removes_the_bias() -> None:
    """Enumerate all batches of two episodes of a policy that decides at each turn whether to stop.

    Times the standard deviation, the advantages differ from the returns by their baseline only, so the
    expected policy gradient is the true one exactly if the baseline is unbiased.
    """
    stop, horizon, reward = 0.3, 3, [1.0, 3.0, -2.0]
    runs: list[tuple[float, list[float], list[float]]] = []  # probability, rewards, d log pi / d logit(stop)
    for turns in range(horizon):
        runs.append(((1 - stop) ** turns * stop, [0.25] * turns + [reward[turns]], [-stop] * turns + [1 - stop]))
    runs.append(((1 - stop) ** horizon, [0.25] * horizon, [-stop] * horizon))
    true = sum(p * returns_to_go(TurnBatch.from_rewards([r])) @ score for p, r, score in runs)

    def expected(estimator: Estimator) -> float:
        total = 0.0
        for (p, rewards, score), (q, others, other_score) in itertools.product(runs, runs):
            batch = TurnBatch.from_rewards([rewards, others])
            advantages = estimator(batch) * (returns_to_go(batch).std() + 1e-9)
            total += p * q * float(advantages @ [*score, *other_score]) / 2
        return total

    assert expected(rebn_loo) == pytest.approx(true, abs=1e-12)
    assert abs(expected(rebn) - true) > 0.1 * abs(true)


# Constant, large and tiny numbers


def test_upstream_formula_gives_nan_where_ours_gives_zeros() -> None:
    returns = np.full(128, -0.1, dtype=np.float32)
    average = returns.sum() / np.float32(128)
    variance = (returns**2).sum() / np.float32(128) - average**2
    with np.errstate(invalid="ignore"):
        upstream = (returns - average) / (np.sqrt(variance) + np.float32(1e-9))
    assert np.isnan(upstream).all()
    assert rebn(TurnBatch.from_rewards([[-0.1]] * 128)).tolist() == [0.0] * 128


@pytest.mark.parametrize("name", [*NORMALIZED, "drgrpo", "rloo"])
@pytest.mark.parametrize("reward", [0.0, -0.1, 1 / 3, 1e12 * 0.1, 1e90, -1e-200, 5e-324])
@pytest.mark.parametrize("ranks", [1, 3])
def test_equal_returns_give_exact_zeros(name: str, reward: float, ranks: int) -> None:
    batch = TurnBatch.from_rewards([[reward]] * 42, group_keys=[0] * 42, states=[[0]] * 42)
    for advantages in on_ranks(ESTIMATORS[name], [batch] * ranks):
        assert advantages.tolist() == [0.0] * 42


@pytest.mark.parametrize("name", [*NORMALIZED, "drgrpo", "rloo"])
@pytest.mark.parametrize("scale", [1.0, 1e12, 1e90])
def test_returns_equal_up_to_rounding_give_exact_zeros(name: str, scale: float) -> None:
    rewards = [[scale * 0.1 * (1 + k * 2.3e-16)] for k in range(20)]
    assert len({row[0] for row in rewards}) > 1
    batch = TurnBatch.from_rewards(rewards, group_keys=[0] * 20, states=[[0]] * 20)
    assert ESTIMATORS[name](batch).tolist() == [0.0] * 20


@pytest.mark.parametrize("name", NORMALIZED)
@pytest.mark.parametrize("scale", [1e-200, 5e-324])
def test_tiny_rewards_stay_finite(name: str, scale: float) -> None:
    batch = TurnBatch.from_rewards([[scale], [0.0], [-3 * scale, scale]], group_keys=[0] * 3, states=[[0], [0], [0, 0]])
    advantages = NORMALIZED[name](batch)
    assert np.isfinite(advantages).all()
    assert advantages[0] > 0 > advantages[2]


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_common_offset_costs_few_digits(ranks: int) -> None:
    numbers = np.random.default_rng(0).integers(-64, 64, size=(ranks, 50)) / 64
    plain, shifted = (
        on_ranks(rebn, [TurnBatch.from_rewards((row + offset)[:, None].tolist()) for row in numbers])
        for offset in (0.0, 2.0**10)
    )
    np.testing.assert_allclose(shifted, plain, rtol=1e-10, atol=1e-11)


@prop
@given(parts=st.lists(st.lists(floats, max_size=6), min_size=1, max_size=5))
def test_merged_moments_are_those_of_the_whole(parts: list[list[float]]) -> None:
    whole = np.array([x for part in parts for x in part], dtype=np.float64)
    merged = Moments.over_ranks(np.array(parts[0]), lambda own: pack_all(own, parts[1:]))
    assert merged.count == whole.size
    if whole.size:
        assert (merged.minimum, merged.maximum) == (whole.min(), whole.max())
        magnitude = float(np.abs(whole).max()) or 1.0
        assert merged.mean == pytest.approx(whole.mean(), abs=1e-14 * magnitude)
        # Scaled, because numpy's own std squares tiny numbers to zero.
        assert merged.std / magnitude == pytest.approx((whole / magnitude).std(), abs=1e-14)


def pack_all(own: Floats, others: list[list[float]]) -> list[Floats]:
    """What every rank would have sent, caught from their own calls of `gather`."""
    sent = [own]

    def catch(array: Floats) -> list[Floats]:
        sent.append(array)
        return [array]

    for part in others:
        Moments.over_ranks(np.array(part), catch)
    return sent


# Small batches


@pytest.mark.parametrize("name", BATCHWISE)
def test_one_turn(name: str) -> None:
    expected = 0.7 if name == "reinforce" else 0.0
    assert BATCHWISE[name](TurnBatch.from_rewards([[0.7]])).tolist() == [expected]


@pytest.mark.parametrize("ranks", [1, 2])
def test_rebn_loo_of_a_single_episode_is_zero(ranks: int) -> None:
    batches = [TurnBatch.from_rewards([[1.0, 2.0, 3.0], []]), TurnBatch.from_rewards([])][:ranks]
    assert on_ranks(rebn_loo, batches)[0].tolist() == [0.0, 0.0, 0.0]


@every_estimator
@pytest.mark.parametrize("episodes", [[], [[], []]])
def test_no_turns_anywhere(name: str, episodes: list[list[float]]) -> None:
    for advantages in on_ranks(ESTIMATORS[name], [TurnBatch.from_rewards(episodes)] * 2):
        assert advantages.shape == (0,)
        assert advantages.dtype == np.float64


def test_empty_episodes_keep_the_numbering() -> None:
    batch = TurnBatch.from_rewards([[], [1.0, 2.0], [], [3.0]], group_keys=[5, 6, 7, 8], values=[[], [0, 1], [], [2]])
    assert batch.episode.tolist() == [1, 1, 3]
    assert batch.turn.tolist() == [0, 1, 0]
    assert batch.group_key is not None
    assert batch.group_key.tolist() == [6, 6, 8]
    assert len(batch) == 3


def test_a_batch_is_a_read_only_copy_that_pickles() -> None:
    rewards = np.array([1.0, 2.0])
    batch = TurnBatch(rewards, np.array([0, 0]), np.array([0, 1]))
    rewards[0] = 9.0
    assert batch.rewards.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        batch.rewards[0] = 9.0
    with pytest.raises(FrozenInstanceError):
        batch.rewards = rewards  # pyright: ignore[reportAttributeAccessIssue]
    assert rebn(pickle.loads(pickle.dumps(batch))).tolist() == rebn(batch).tolist()


# Errors


def build(
    rewards: Sequence[object] = (1.0, 2.0, 3.0),
    episode: Sequence[object] = (0, 0, 1),
    turn: Sequence[object] = (0, 1, 0),
    group: Sequence[object] | None = None,
    values: Sequence[object] | None = None,
) -> TurnBatch:
    return TurnBatch(
        np.asarray(rewards),
        np.asarray(episode),
        np.asarray(turn),
        None if group is None else np.asarray(group),
        None if values is None else np.asarray(values),
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rewards": (1.0, math.nan, 3.0)}, r"rewards\[1\] is nan \(episode 0, turn 1\)"),
        ({"rewards": (1.0, 2.0, -math.inf)}, r"rewards\[2\] is -inf \(episode 1, turn 0\)"),
        ({"rewards": (1e300, 2.0, 3.0)}, r"rewards\[0\] is 1e\+300 .* at most 1e\+100"),
        ({"values": (1.0, 2.0, math.nan)}, r"values\[2\] is nan"),
        ({"values": (1.0, 2.0)}, r"values has shape \(2,\): expected \(3,\)"),
        ({"rewards": ((1.0,), (2.0,), (3.0,))}, r"rewards has shape \(3, 1\)"),
        ({"turn": (0, 1)}, r"turn has shape \(2,\)"),
        ({"turn": (0.0, 1.0, 0.0)}, r"turn has dtype float64: expected numbers that fit int64"),
        ({"rewards": (1.0, None, 3.0)}, r"rewards has dtype object"),
        ({"turn": (0, 0, 0)}, r"episode 0 has turn 0 more than once \(position 1\)"),
        ({"turn": (0, 2, 0)}, r"episode 0 has a turn 2 but no turn 1 \(position 1\)"),
        ({"turn": (0, 1, 1)}, r"episode 1 has a turn 1 but no turn 0 \(position 2\)"),
        ({"turn": (0, -1, 0)}, r"episode 0 has a negative turn -1 \(position 1\)"),
        ({"group": (4, 5, 5)}, r"episode 0 is in more than one group_key \(position 1\)"),
    ],
)
def test_a_batch_says_what_is_wrong_with_it(columns: dict[str, Sequence[object]], message: str) -> None:
    with pytest.raises(AdvantageError, match=message):
        build(**columns)


def test_from_rewards_wants_matching_columns() -> None:
    with pytest.raises(AdvantageError, match="1 group keys for 2 episodes"):
        TurnBatch.from_rewards([[1.0], [2.0]], group_keys=[0])
    with pytest.raises(AdvantageError, match="values do not match the rewards"):
        TurnBatch.from_rewards([[1.0], [2.0]], values=[[1.0], []])


@every_estimator
@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_gamma_outside_its_range(name: str, gamma: float) -> None:
    batch = TurnBatch.from_rewards([[1.0], [2.0]], group_keys=[0, 0], values=[[0.0], [0.0]], states=[[0], [0]])
    with pytest.raises(AdvantageError, match=r"gamma is .*: it must lie in \[0, 1\]"):
        ESTIMATORS[name](batch, gamma=gamma)


def test_gae_says_what_it_misses() -> None:
    with pytest.raises(AdvantageError, match="no values: give the critic's value"):
        gae(TurnBatch.from_rewards([[1.0]]))
    with pytest.raises(AdvantageError, match="lam is 2"):
        gae(TurnBatch.from_rewards([[1.0]], values=[[0.0]]), lam=2.0)


@pytest.mark.parametrize("name", [*GROUPWISE, *TURNWISE])
def test_groups_are_needed(name: str) -> None:
    with pytest.raises(AdvantageError, match="no groups: give `group_key`"):
        ESTIMATORS[name](TurnBatch.from_rewards([[1.0], [2.0]], states=[[0], [0]]))


def test_gigpo_says_what_it_misses() -> None:
    with pytest.raises(AdvantageError, match="no states: give `state`"):
        gigpo(TurnBatch.from_rewards([[1.0], [2.0]], group_keys=[0, 0]))
    with pytest.raises(AdvantageError, match="states do not match the rewards"):
        TurnBatch.from_rewards([[1.0], [2.0]], states=[[0], []])


def test_gigpo_compares_the_turns_of_a_state() -> None:
    # Two episodes meet in state 7: one then earns a reward, the other comes back to it and gets none.
    batch = TurnBatch.from_rewards([[0.0, 1.0], [0.0, 0.0]], group_keys=[0, 0], states=[[5, 7], [7, 7]])
    episode = 0.5 / (0.5 + 1e-9)
    step = (2 / 3, -1 / 3, -1 / 3)
    spread = np.std([1.0, 0.0, 0.0]) + 1e-9
    expected = [episode, episode + step[0] / spread, -episode + step[1] / spread, -episode + step[2] / spread]
    assert_close(gigpo(batch), np.array(expected))
    assert_close(gigpo(batch, weight=0.0), np.array([episode, episode, -episode, -episode]))


def test_turn_grpo_leaves_out_what_no_other_episode_reached() -> None:
    batch = TurnBatch.from_rewards([[0.0, 4.0, 9.0], [2.0, 0.0]], group_keys=[3, 3])
    assert_close(turn_grpo(batch), np.array([1.0, 1.0, 0.0, -1.0, -1.0]))


@pytest.mark.parametrize("name", GROUPWISE)
def test_nothing_but_lonely_episodes_is_zero_and_said(name: str, caplog: pytest.LogCaptureFixture) -> None:
    batches = [
        TurnBatch.from_rewards([[1.0], []], group_keys=[3, 9]),
        TurnBatch.from_rewards([[1.0]], group_keys=[9]),
        TurnBatch.from_rewards([]),
    ]
    assert [part.tolist() for part in on_ranks(GROUPWISE[name], batches)] == [[0.0], [0.0], []]
    assert "each of the 2 groups has only one episode" in caplog.text


@pytest.mark.parametrize("name", GROUPWISE)
def test_a_lonely_episode_among_full_groups_gets_zero(name: str) -> None:
    batch = TurnBatch.from_rewards([[1.0], [2.0], [5.0, 1.0]], group_keys=[3, 3, 9])
    advantages = GROUPWISE[name](batch)
    assert advantages[:2].tolist() == pytest.approx([-advantages[1], advantages[1]])
    assert advantages[1] > 0
    assert advantages[2:].tolist() == [0.0, 0.0]


def test_the_explained_variance_covers_all_ranks() -> None:
    rewards, values = [[[1.0, 2.0], [0.5]], [], [[4.0]]], [[[2.0, 2.5], [0.0]], [], [[1.0]]]
    parts = [TurnBatch.from_rewards(one, values=own) for one, own in zip(rewards, values, strict=True)]
    returns, errors = np.array([3.0, 2.0, 0.5, 4.0]), np.array([1.0, -0.5, 0.5, 3.0])

    def explained(batch: TurnBatch, *, gather: Callable[[Floats], list[Floats]]) -> Floats:
        return np.array([compute_advantages("gae", batch, gather=gather)[1]["critic/explained_variance"]])

    for found in on_ranks(explained, parts):
        assert found[0] == pytest.approx(1 - errors.var() / returns.var())
    equal = TurnBatch.from_rewards([[1.0], [1.0]], values=[[0.0], [2.0]])
    assert compute_advantages("gae", equal)[1]["critic/explained_variance"] == 0.0
    assert "critic/explained_variance" not in compute_advantages("rebn", equal)[1]
