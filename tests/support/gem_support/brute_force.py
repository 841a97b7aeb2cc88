"""Advantages from their formulas, in plain Python, for comparison."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def returns_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    return [sum(gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))]


def expected(
    name: str,
    episodes: Sequence[Sequence[float]],
    groups: Sequence[int],
    gamma: float,
    states: Sequence[Sequence[str]] = (),
) -> list[list[float]]:
    """One number per turn of each episode, for the estimators in the tests of adapters. `gigpo` needs observations."""
    if name == "turn_grpo":
        return _standardized(
            episodes, [[(group, t) for t, _ in enumerate(e)] for group, e in zip(groups, episodes, strict=True)], gamma
        )
    if name == "gigpo":
        keys = [[(group, state) for state in row] for group, row in zip(groups, states, strict=True)]
        both = zip(expected("grpo", episodes, groups, 1.0), _standardized(episodes, keys, gamma), strict=True)
        return [[x + y for x, y in zip(*rows, strict=True)] for rows in both]
    returns = [returns_to_go(rewards, gamma) for rewards in episodes]
    flat = [g for episode in returns for g in episode]
    mean, std = statistics.fmean(flat), statistics.pstdev(flat)
    constant = max(flat) - min(flat) < 1e-12
    if name == "reinforce":
        return returns
    if name == "rebn":
        return [[0.0 if constant else (g - mean) / (std + 1e-9) for g in episode] for episode in returns]
    if name == "rebn_loo":
        result = []
        for index, episode in enumerate(returns):
            others = [g for other, one in enumerate(returns) if other != index for g in one]
            result.append([0.0 if constant else (g - statistics.fmean(others)) / (std + 1e-9) for g in episode])
        return result
    result = []
    for index, episode in enumerate(returns):
        mates = [returns[other][0] for other in range(len(returns)) if groups[other] == groups[index]]
        rest = [returns[other][0] for other in range(len(returns)) if groups[other] == groups[index] and other != index]
        centre, spread = statistics.fmean(mates), statistics.pstdev(mates)
        value = {
            "grpo": 0.0 if spread < 1e-12 else (episode[0] - centre) / (spread + 1e-9),
            "drgrpo": episode[0] - centre,
            "rloo": episode[0] - statistics.fmean(rest),
        }[name]
        result.append([value] * len(episode))
    return result


def _standardized(
    episodes: Sequence[Sequence[float]], keys: Sequence[Sequence[tuple[int, object]]], gamma: float
) -> list[list[float]]:
    """Each turn's return among those of all turns with its key."""
    returns = [returns_to_go(rewards, gamma) for rewards in episodes]
    pairs = [pair for row in zip(keys, returns, strict=True) for pair in zip(*row, strict=True)]

    def number(key: tuple[int, object], own: float) -> float:
        mates = [value for other, value in pairs if other == key]
        spread = statistics.pstdev(mates)
        return 0.0 if spread < 1e-12 else (own - statistics.fmean(mates)) / (spread + 1e-9)

    return [[number(*pair) for pair in zip(*row, strict=True)] for row in zip(keys, returns, strict=True)]


def gae(rewards: Sequence[float], values: Sequence[float], gamma: float, lam: float) -> list[float]:
    """One number per turn of an episode: the sum of later one-step errors, discounted by gamma and lambda."""
    after = [*values[1:], 0.0]
    errors = [reward + gamma * v_next - v for reward, v, v_next in zip(rewards, values, after, strict=True)]
    return [sum((gamma * lam) ** k * error for k, error in enumerate(errors[t:])) for t in range(len(errors))]
