"""Episodes of random tokens, for tests that need no engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from gem_core.episode import Episode, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_openrlhf._rows import EpisodeRows


def random_batch(rng: random.Random, kind: Any = "episode", *, empty: bool = True) -> list[EpisodeRows]:
    """Four groups of two episodes, of a few turns, or none; some prompts do not continue the turn before."""
    return [EpisodeRows.of(_episode(rng, group, empty), kind) for group in range(4) for _ in range(2)]


def add_turn(
    episode: Episode,
    prompt: Sequence[int],
    response: Sequence[int],
    reward: float,
    *,
    logprobs: Sequence[float] | None = None,
    truncated: bool = False,
    continues: bool = True,
) -> None:
    """Add a turn: `prompt` has the ids after those of the previous turn, or the first ids of a new sequence."""
    if not (continues and episode.sequences):
        episode.sequences.append(TokenSequence.starting(as_token_ids()))
    sequence = episode.sequences[-1]
    sequence.add_prompt(as_token_ids(prompt))
    start = len(sequence.ids)
    sequence.add_response(as_token_ids(response), None if logprobs is None else as_logprobs(logprobs))
    number = len(episode.sequences) - 1
    episode.turns.append(Turn(number, start, len(sequence.ids), "", "", "", truncated, reward))


def rewards_of(result: EpisodeRows) -> list[float]:
    """The reward of each turn, in order."""
    return [turn.reward for row in result.rows for turn in row.turns]


def _episode(rng: random.Random, group: int, empty: bool) -> Episode:
    episode = Episode("test:Babble-v0", 7, task_id=group, stop_reason=StopReason.TERMINATED)
    for turn in range(rng.randint(0 if empty else 1, 4)):
        continues = rng.random() >= 0.3
        response = _ids(rng, 1, 6)
        add_turn(
            episode,
            _ids(rng, 0 if turn and continues else 1, 5),
            response,
            rng.uniform(-2, 2),
            logprobs=[-rng.random() for _ in response],
            truncated=rng.random() < 0.3,
            continues=continues,
        )
    return episode


def _ids(rng: random.Random, least: int, most: int) -> list[int]:
    return [rng.randrange(1, 100) for _ in range(rng.randint(least, most))]
