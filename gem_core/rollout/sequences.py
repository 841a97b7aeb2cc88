"""Turns merged into one training sequence, where the ids allow it."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

from gem_core.episode import Turn

NOT_SAMPLED = -1
"""Turn index of a completion token that the environment wrote."""


@dataclass(frozen=True)
class Sequence:
    """Several turns as one row: a prompt, and after it everything that followed."""

    prompt_ids: list[int]
    """Token ids before the first response."""
    completion_ids: list[int]
    """Responses, and the glue and observations between them."""
    turn_of: list[int]
    """For each completion token the index of its turn in the episode, or `NOT_SAMPLED`."""
    logprobs: list[float] | None
    """For each completion token its log-probability (0 where not sampled); `None` if any turn has none."""

    @property
    def mask(self) -> list[int]:
        """1 for each completion token that was sampled, 0 for the rest."""
        return [int(turn != NOT_SAMPLED) for turn in self.turn_of]


def merge_turns(turns: Seq[Turn]) -> list[Sequence]:
    """Merge turns whose prompts continue the turn before exactly, id by id.

    A turn whose prompt does not start with the previous prompt and response begins a new sequence, so what is
    trained on is always what was sampled from.

    Returns:
        One sequence for an episode with full history; up to one per turn otherwise.
    """
    sequences: list[Sequence] = []
    run: list[int] = []
    for index in range(len(turns)):
        if run and not _continues(turns[index - 1], turns[index]):
            sequences.append(_merge(turns, run))
            run = []
        run.append(index)
    return [*sequences, _merge(turns, run)] if run else sequences


def _continues(before: Turn, after: Turn) -> bool:
    head = before.prompt_ids + before.response_ids
    return after.prompt_ids[: len(head)] == head


def _merge(turns: Seq[Turn], run: list[int]) -> Sequence:
    prompt = turns[run[0]].prompt_ids
    ids: list[int] = []
    turn_of: list[int] = []
    logprobs: list[float] = []
    for index in run:
        turn = turns[index]
        glue = turn.prompt_ids[len(prompt) + len(ids) :]
        ids += glue + turn.response_ids
        turn_of += [NOT_SAMPLED] * len(glue) + [index] * len(turn.response_ids)
        logprobs += [0.0] * len(glue) + (turn.logprobs or [])
    return Sequence(prompt, ids, turn_of, logprobs if all(turns[index].logprobs for index in run) else None)
