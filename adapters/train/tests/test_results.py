"""What became of episodes: nothing is lost on the way through a framework, and a batch has one set of metrics."""

from __future__ import annotations

import msgspec
import pytest

from gem_core.episode import EpisodeSummary, StopReason
from gem_core.errors import AdapterError
from gem_train.results import EpisodeResult, episode_ids, result_metrics
from gem_train.rows import TurnSpan
from gem_train.turn_table import TurnTable


def summary(total_reward: float = 1.0, error: str | None = None) -> EpisodeSummary:
    reason = StopReason.TERMINATED if error is None else StopReason.ENV_ERROR
    return EpisodeSummary("demo:A-v0", 3, 1, reason, total_reward > 0, error, 2, total_reward, 9, 0, 1)


class RowMetadata(EpisodeResult, frozen=True, kw_only=True):
    turns: list[TurnSpan]


@pytest.mark.parametrize(
    "result",
    [
        EpisodeResult(),
        EpisodeResult(fatal="EnvFailure: Prüfung"),
        EpisodeResult(summary(0.1)),
        # A file name on Linux may hold bytes that are no Unicode, and an error may name it.
        EpisodeResult(summary(error="FileNotFoundError: \udcff")),
        RowMetadata(summary(1 / 3), turns=[TurnSpan(4, 7, 9, 1 / 3, True), TurnSpan(5, 12, 13, -1e300, False)]),
    ],
)
def test_a_result_travels_as_ascii_text(result: EpisodeResult) -> None:
    text = result.encode()
    assert text.isascii()
    assert type(result).decode(text) == result


def test_the_task_is_that_of_the_summary() -> None:
    assert [EpisodeResult(summary()).task_id, EpisodeResult().task_id] == [1, -1]


def test_a_text_of_something_else_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        EpisodeResult.decode('{"summary": 3}')


def test_metrics_are_over_the_episodes_that_were_not_dropped() -> None:
    found = result_metrics([EpisodeResult(summary(1.0)), EpisodeResult(), EpisodeResult(summary(0.0))])
    assert found["episode/return"] == found["episode/success"] == 0.5
    assert (found["rollout/episodes"], found["rollout/turns"], found["rollout/dropped"]) == (2.0, 4.0, 1.0)
    assert result_metrics([EpisodeResult()])["rollout/dropped"] == 1.0


def test_episodes_are_named_as_the_table_of_turns_counts_them() -> None:
    spans = [TurnSpan(position, 1, 2, 0.0, False) for position in range(3)]
    rows = [("a", []), ("b", spans[:1]), ("c", spans[:2]), ("b", spans[1:2]), (None, []), ("d", [])]
    results = [EpisodeResult(name and msgspec.structs.replace(summary(), id=name)) for name, _ in rows]
    names = episode_ids(results, [bool(turns) for _, turns in rows])
    table = TurnTable.of([turns for _, turns in rows], [name for name, _ in rows], [0] * len(rows))
    assert [names[episode] for episode in table.episode] == ["b", "c", "c", "b"]
    assert names == ["b", "c", "a", "d"], "those without turns belong to the batch, those that were dropped do not"


def test_a_fatal_error_stops_the_run() -> None:
    with pytest.raises(AdapterError, match="test:Fragile-v0 failed"):
        result_metrics([EpisodeResult(summary()), EpisodeResult(fatal="test:Fragile-v0 failed")])
