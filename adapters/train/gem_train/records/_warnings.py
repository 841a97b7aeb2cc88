"""Warnings about a recorded run that cannot learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gem_train.records._content import RecordedSummary
from gem_train.rollout import Stall, StallDetector, StallWords, episode_metrics, stalls


def training_warnings(
    metrics: Sequence[Mapping[str, float]], summaries: Sequence[RecordedSummary], *, over: bool
) -> Iterator[str]:
    """Why a training cannot learn, a sentence each.

    Args:
        metrics: of each update, with its number as `step`.
        summaries: the episodes.
        over: the training has ended, so that a few episodes are all that there will be.
    """
    detector = StallDetector()
    found = [stall for line in metrics for stall in detector.add(int(line["step"]), line)]
    for stall in [*found, *(detector.end() if over else ())]:
        own = (one for one in summaries if (one.split == "eval") == stall.evaluation)
        # No update trains on episodes of an evaluation, nor on those without a turn.
        own = (one for one in own if one.update in (stall.first, None))
        yield _text(stall, own)


def evaluation_warnings(summaries: Sequence[RecordedSummary]) -> Iterator[str]:
    """Explanations of an evaluation's score, a sentence each."""
    by_entry = [msgspec.structs.replace(one.summary, env_id=one.entry or one.summary.env_id) for one in summaries]
    for stall in stalls(episode_metrics(by_entry)):
        yield _text(stall, iter(summaries))


def _text(stall: Stall, episodes: Iterator[RecordedSummary]) -> str:
    own = (one.summary for one in episodes if stall.env_id in ("", one.entry, one.summary.env_id))
    texts = (one.error if stall.kind == "env_error" else one.unread for one in own)
    return stall.text(StallWords(), next((text for text in texts if text is not None), None))
