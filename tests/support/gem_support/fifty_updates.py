"""What must hold in a run of 50 updates that samples ahead; used by staleness.py of each adapter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gem_support.training_run import TrainingRun
from gem_train.records import open_records

UPDATES = 50


def assert_bounded(run: TrainingRun, bound: int, batch: int) -> None:
    """As `assert_bounded_records`, of a framework's command. Its metrics have the same ages."""
    assert run.code == 0, run.output[-3000:]
    assert_bounded_records(run.folder / "records", bound, batch)
    assert max(line["staleness/max"] for line in run.metrics if "staleness/max" in line) == bound


def assert_bounded_records(folder: Path, bound: int, batch: int) -> None:
    """Assert that the bound holds and is reached, and that every episode that was played trains once.

    Args:
        folder: the records of a run of 50 updates.
        bound: its `max_staleness`.
        batch: episodes per update.
    """
    trained = [one for one in open_records(folder).summaries if one.split == "train"]
    assert Counter(one.update for one in trained) == dict.fromkeys(range(1, UPDATES + 1), batch)
    staleness = Counter(one.staleness for one in trained if one.summary.turns)
    print(f"episodes by the age of their oldest token: {dict(staleness.most_common())}")
    assert {*staleness} <= {*range(bound + 1)}
    assert bound in staleness
