"""Playing one of our games and upstream's with the same hidden state and the same actions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from gem_core.env import Env

pytest.importorskip("gem", reason="this needs gem-llm, as in `nox -s parity`")


def play(ours: Env, theirs: Any, actions: Iterable[str]) -> int:
    """Take the same actions in both until the episode ends; the number of turns, each with the same answer.

    Rewards must agree to 1e-9, and so must both ends.
    """
    turns = 0
    for action in actions:
        _, reward, terminated, truncated, _ = ours.step(action)
        _, wanted, *ends = theirs.step(action)[:4]
        turns += 1
        assert (terminated, truncated) == (bool(ends[0]), bool(ends[1])), f"turn {turns}, {action!r}"
        assert abs(reward - wanted) <= 1e-9, f"turn {turns}, {action!r}: {reward}, and upstream {wanted}"
        if terminated or truncated:
            break
    return turns


def seeds(count: int) -> Iterator[tuple[int, random.Random]]:
    """Seeds of games, each with a generator for the player and for upstream's global one."""
    for seed in range(count):
        random.seed(seed)  # upstream draws from the global generator
        yield seed, random.Random(f"player {seed}")


MALFORMED = (
    "",
    "no box",
    "\\boxed{}",
    "\\boxed{ }",
    "\\boxed{?}",
    "\\boxed{1 2 3 4 5 6 7 8 9 10}",
    "boxed{1}",
    "\\boxed{1",
    "\\boxed{-1}",
)
"""Actions without a move, for most games."""
