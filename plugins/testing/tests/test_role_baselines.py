"""The estimator `rae` against brute force, over batches and over ranks."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gem_core.advantages import TurnBatch, advantages_and_returns, rae
from gem_core.errors import AdvantageError
from gem_testing import check_estimator

GAMMA, DECAY = 0.9, 0.95


def batch_of(episodes: list[tuple[int, list[float]]]) -> TurnBatch:
    """Episodes as pairs of a role and rewards."""
    plain = TurnBatch.from_rewards([rewards for _, rewards in episodes])
    roles = np.array([role for role, rewards in episodes for _ in rewards], dtype=np.int64)
    return TurnBatch(plain.rewards, plain.episode, plain.turn, role=roles)


def brute_force(batches: list[list[tuple[int, list[float]]]]) -> list[list[float]]:
    baselines: dict[int, float] = {}
    found = []
    for episodes in batches:
        returns = [(role, sum(GAMMA**k * r for k, r in enumerate(rewards))) for role, rewards in episodes]
        for role in {one for one, _ in returns}:
            own = [value for one, value in returns if one == role]
            old = baselines.get(role, sum(own) / len(own))
            weight = DECAY ** len(own)
            baselines[role] = weight * old + (1 - weight) * sum(own) / len(own)
        spread = zip(returns, episodes, strict=True)
        found.append([value - baselines[role] for (role, value), (_, rewards) in spread for _ in rewards])
    return found


def drawn(rng: random.Random, count: int) -> list[tuple[int, list[float]]]:
    return [(rng.choice([3, 8, 2**62]), [rng.uniform(-1, 2) for _ in range(rng.randint(1, 4))]) for _ in range(count)]


def test_baselines_last_from_batch_to_batch() -> None:
    rng = random.Random(0)
    batches = [drawn(rng, 9) for _ in range(4)]
    memory: dict[str, Any] = {}
    for episodes, wanted in zip(batches, brute_force(batches), strict=True):
        got, _, _ = advantages_and_returns("rae", batch_of(episodes), gamma=GAMMA, lam=1.0, memory=memory)
        assert got.tolist() == pytest.approx(wanted)


def test_ranks_share_the_baselines() -> None:
    rng = random.Random(1)
    batches = [drawn(rng, 8) for _ in range(3)]
    parts: list[NDArray[np.float64]] = [np.zeros(0)] * 2
    barrier = threading.Barrier(2, timeout=120)

    def play(rank: int) -> list[list[float]]:
        def gather(array: NDArray[np.float64]) -> list[NDArray[np.float64]]:
            barrier.wait()
            parts[rank] = array
            barrier.wait()
            return [*parts]

        memory: dict[str, Any] = {}
        own = [episodes[:5] if rank == 0 else episodes[5:] for episodes in batches]
        return [rae(batch_of(part), gamma=GAMMA, gather=gather, memory=memory).tolist() for part in own]

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(play, range(2))
    for got, wanted in zip(zip(first, second, strict=True), brute_force(batches), strict=True):
        assert [*got[0], *got[1]] == pytest.approx(wanted)


def test_without_a_memory_a_batch_stands_alone() -> None:
    episodes = [(0, [1.0]), (0, [3.0]), (1, [5.0])]
    assert rae(batch_of(episodes)).tolist() == rae(batch_of(episodes)).tolist() == [-1.0, 1.0, 0.0]


def test_it_keeps_the_contract_of_estimators() -> None:
    check_estimator("rae")


def test_a_decay_of_one_would_never_learn() -> None:
    with pytest.raises(AdvantageError, match=r"decay=1.0 lies outside \[0, 1\)"):
        rae(batch_of([(0, [1.0])]), decay=1.0)


def test_an_episode_has_one_role() -> None:
    with pytest.raises(AdvantageError, match="more than one role"):
        TurnBatch(np.ones(2), np.zeros(2, dtype=int), np.arange(2), role=np.arange(2))
