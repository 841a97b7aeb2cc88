"""Episodes made by hand or at random, for tests without environments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from gem_core.episode import Episode, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids


class Said(NamedTuple):
    """A turn: its whole prompt, and the sampled response."""

    prompt: Sequence[int]
    response: Sequence[int]
    reward: float
    logprobs: Sequence[float] | None = None


def hand_made(*turns: Said, **fields: Any) -> Episode:
    """An episode of these turns; a prompt that does not continue the turn before starts a new token sequence."""
    episode = Episode(**{"env_id": "test:One-v0", "seed": 1, "stop_reason": StopReason.TERMINATED, **fields})
    for prompt, response, reward, logprobs in turns:
        before = episode.sequences[-1].ids.tolist() if episode.sequences else None
        if before is not None and [*prompt[: len(before)]] == before:
            sequence = episode.sequences[-1]
            sequence.add_prompt(as_token_ids(prompt[len(before) :]))
        else:
            sequence = TokenSequence.starting(as_token_ids(prompt))
            episode.sequences.append(sequence)
        sequence.add_response(as_token_ids(response), None if logprobs is None else as_logprobs(logprobs))
        number = len(episode.sequences) - 1
        episode.turns.append(Turn(number, len(prompt), len(prompt) + len(response), "", "", "", False, reward))
    return episode


def random_episodes(rng: random.Random, groups: int, size: int, *, breaks: float = 0.0) -> list[Episode]:
    """Episodes of 1 to 4 turns with responses of 1 to 5 tokens, sometimes without tokens in between.

    Args:
        rng: the source of randomness.
        groups, size: the number of groups and of episodes in each; episodes of a group follow each other.
        breaks: share of turns whose prompt does not continue the turn before.
    """

    def ids(low: int, high: int) -> list[int]:
        return [rng.randrange(3, 300) for _ in range(rng.randint(low, high))]

    def turns() -> list[Said]:
        found: list[Said] = []
        prompt = ids(1, 6)
        for _ in range(rng.randint(1, 4)):
            if rng.random() < breaks:
                prompt = ids(1, 6)
            response = ids(1, 5)
            found.append(Said(prompt, response, rng.uniform(-1, 1), [-rng.random() for _ in response]))
            prompt = prompt + response + ids(0, 3)
        return found

    return [
        hand_made(*turns(), env_id="test:Babble-v0", seed=rng.randrange(100), task_id=group, success=rng.random() < 0.5)
        for group in range(groups)
        for _ in range(size)
    ]


def without_turns(episode: Episode) -> Episode:
    """The episode as if it had ended before its first turn."""
    episode.turns, episode.sequences = [], []
    return episode
