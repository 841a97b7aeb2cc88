"""Episodes as rows to train on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from gem_core.episode import Episode, Logprobs, TokenIds, as_logprobs

RowKind = Literal["episode", "turn"]
"""What a row is: a token sequence of an episode, or one turn."""


class TurnSpan(NamedTuple):
    """A turn, and the positions of its response in a row: from `start` up to but not including `end`."""

    position: int
    """The position of the turn in its episode."""
    start: int
    end: int
    reward: float
    truncated: bool
    """The token limit cut the response off."""
    state: int = 0
    """A number for the observation: equal for equal observations, in all processes. See `state_of`."""


class RowImage(NamedTuple):
    """An image, and the positions of its ids in a row: from `start` up to but not including `end`."""

    start: int
    end: int
    uri: str
    """A PNG file as a data URI."""
    grid: tuple[int, int, int]
    """Frames, rows and columns of its patches."""


class Row(msgspec.Struct, frozen=True):
    """Token ids, and the turns that are trained on."""

    ids: TokenIds
    """The first prompt and everything after it, up to the end of the last response."""
    prompt_length: int
    """Number of ids before the first response."""
    logprobs: Logprobs | None
    """One for each id, 0 for ids that were not sampled; `None` if any sampled id has none (NaN), because no framework
    can weight a row of which it knows a part."""
    turns: list[TurnSpan]
    """The turns, in the order of their positions."""
    images: list[RowImage] = []
    """The images that the ids show, in the order of their places."""

    @property
    def prompt_ids(self) -> list[int]:
        """The ids before the first response."""
        return self.ids[: self.prompt_length].tolist()

    @property
    def completion_ids(self) -> list[int]:
        """The ids from the first response on."""
        return self.ids[self.prompt_length :].tolist()

    @property
    def completion_logprobs(self) -> list[float] | None:
        """Log-probabilities of `completion_ids`."""
        return None if self.logprobs is None else self.logprobs[self.prompt_length :].tolist()

    @property
    def mask(self) -> list[int]:
        """1 for each id that was sampled in one of the turns, 0 for all others."""
        mask = [0] * len(self.ids)
        for turn in self.turns:
            mask[turn.start : turn.end] = [1] * (turn.end - turn.start)
        return mask

    @property
    def completion_mask(self) -> list[int]:
        """The mask of `completion_ids`."""
        return self.mask[self.prompt_length :]


def rows_of(episode: Episode, kind: RowKind) -> list[Row]:
    """The rows of an episode, in the order of their turns; none for an episode without turns.

    Args:
        episode: a finished episode.
        kind: `episode` for a row per token sequence (one row if every prompt has the whole history), `turn` for a row
            per turn.
    """
    spans = [(turn.sequence, _span(episode, position)) for position, turn in enumerate(episode.turns)]
    if kind == "turn":
        return [_row(episode, number, [span]) for number, span in spans]
    return [
        _row(episode, number, [span for _, span in group]) for number, group in groupby(spans, lambda pair: pair[0])
    ]


def cut_rows(rows: Sequence[Row], multiple: int) -> list[tuple[int, Row]]:
    """Cut rows between turns until their number is a multiple, for frameworks that train on full batches only.

    The parts of a row divide its turns among them, and each part has all tokens up to the end of its last turn. A loss
    that sums over tokens does not change. If there are too few turns, rows without a turn are added.

    Args:
        rows: the rows of a batch.
        multiple: the number of rows becomes a multiple of this.

    Returns:
        The rows, each with the index of its original row.
    """
    parts = list(enumerate(rows))
    while len(parts) % multiple:
        longest = max(range(len(parts)), key=lambda index: len(parts[index][1].turns))
        source, row = parts[longest]
        middle = (len(row.turns) + 1) // 2
        if middle < len(row.turns):
            parts[longest] = source, _with_turns(row, row.turns[:middle])
        parts.append((source, _with_turns(row, row.turns[middle:])))
    return parts


def state_of(observation: str, images: Sequence[str] = ()) -> int:
    """A 64-bit number for an observation. Equal texts with equal images have equal numbers, on any machine."""
    digest = hashlib.blake2b("\0".join([observation, *images]).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)


def _span(episode: Episode, position: int) -> TurnSpan:
    turn = episode.turns[position]
    before = episode.turns[position - 1] if position else None
    first = before.end if before is not None and before.sequence == turn.sequence else 0
    shown = episode.sequences[turn.sequence].images
    new = [episode.images[one.index].uri for one in shown if first <= one.start and one.end <= turn.start]
    # The observation of a summary is a fixed request. What it sums up is its state.
    seen = repr(episode.prompt_ids(turn).tolist()) if turn.compaction else turn.observation
    return TurnSpan(position, turn.start, turn.end, turn.reward, turn.truncated, state_of(seen, new))


def _row(episode: Episode, number: int, turns: list[TurnSpan]) -> Row:
    sequence = episode.sequences[number]
    start, end = turns[0].start, turns[-1].end
    sampled = sequence.logprobs[start:end]
    # In a row of one turn, the responses before it are part of the prompt.
    logprobs = None if np.isnan(sampled).any() else as_logprobs([0.0]) * start + sampled
    images = [
        RowImage(one.start, one.end, episode.images[one.index].uri, one.grid)
        for one in sequence.images
        if one.end <= end
    ]
    return Row(sequence.ids[:end], start, logprobs, turns, images)


def _with_turns(row: Row, turns: list[TurnSpan]) -> Row:
    """A row with some of its turns. A row without turns keeps two tokens, the least from which one can be predicted."""
    end = turns[-1].end if turns else 2
    logprobs = None if row.logprobs is None else row.logprobs[:end]
    return Row(row.ids[:end], row.prompt_length, logprobs, turns, [one for one in row.images if one.end <= end])
