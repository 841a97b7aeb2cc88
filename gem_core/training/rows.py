"""Episodes as sequences to train on, and where turns stand in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from gem_core.rollout import NOT_SAMPLED, Turn, merge_turns
from gem_core.rollout import Sequence as TokenSequence
from gem_core.training.settings import RowKind


class TurnSpan(NamedTuple):
    """Where a turn's response stands among the tokens of a row: from `start` to before `end`."""

    turn: int
    start: int
    end: int


def view_sequences(turns: Sequence[Turn], row: RowKind) -> list[TokenSequence]:
    """An episode's turns as sequences.

    Args:
        turns: of one episode.
        row: `episode` for as few as exact prefixes allow, as a rule one; `turn` for one per turn.
    """
    if row == "episode":
        return merge_turns(turns)
    return [
        TokenSequence(turn.prompt_ids, turn.response_ids, [index] * len(turn.response_ids), turn.logprobs)
        for index, turn in enumerate(turns)
    ]


def turn_spans(turn_of: Sequence[int], start: int = 0) -> Iterator[TurnSpan]:
    """Where turns stand.

    Args:
        turn_of: of each token the turn, or `NOT_SAMPLED`.
        start: the position of the first of these tokens.
    """
    for turn, tokens in groupby(turn_of):
        end = start + len([*tokens])
        if turn != NOT_SAMPLED:
            yield TurnSpan(turn, start, end)
        start = end
