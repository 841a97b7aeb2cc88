"""What a trainer gets of an episode, against what its policy was asked and said."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.episode import Episode, Logprobs, TokenIds
from gem_train.rows import Row, RowKind, rows_of


def rows_as_sampled(
    episode: Episode, kind: RowKind, said: Sequence[tuple[TokenIds, TokenIds, Logprobs]]
) -> Sequence[Row]:
    """The rows of an episode, of which each turn is one call of the policy, with the prompt that it saw.

    Args:
        episode, kind: as for `rows_of`.
        said: prompt, ids and log-probabilities of each call, in order.
    """
    rows = rows_of(episode, kind)
    spans = [(row, turn) for row in rows for turn in row.turns]
    assert len(spans) == len(said)
    for (row, turn), (prompt, ids, logprobs) in zip(spans, said, strict=True):
        assert row.logprobs is not None
        assert row.ids[: turn.start] == prompt
        assert row.ids[turn.start : turn.end] == ids
        assert row.logprobs[turn.start : turn.end] == logprobs
    return rows
