"""Episodes of random tokens, for tests that need no engine."""

from __future__ import annotations

import random
from typing import Any

from gem_core.rollout import Episode, StopReason, Turn
from gem_openrlhf.rows import Played, played


def random_batch(rng: random.Random, view: Any = "episode", *, empty: bool = True) -> list[Played]:
    """Four groups of two episodes, of a few turns, or none; some prompts do not continue the turn before."""
    return [played(_episode(rng, group, empty), view) for group in range(4) for _ in range(2)]


def _episode(rng: random.Random, group: int, empty: bool) -> Episode:
    prompt = _ids(rng, 1, 5)
    turns: list[Turn] = []
    for _ in range(rng.randint(0 if empty else 1, 4)):
        response = _ids(rng, 1, 6)
        logprobs = [-rng.random() for _ in response]
        cut = rng.random() < 0.3
        turns.append(Turn("", prompt, response, logprobs, "", "", cut, rng.uniform(-2, 2)))
        prompt = _ids(rng, 1, 5) if rng.random() < 0.3 else prompt + response + _ids(rng, 0, 4)
    return Episode("test:Babble-v0", 7, group=group, turns=turns, stop_reason=StopReason.TERMINATED)


def _ids(rng: random.Random, least: int, most: int) -> list[int]:
    return [rng.randrange(1, 100) for _ in range(rng.randint(least, most))]
