"""Whoever listens hears each update and evaluation of a training once, with or without a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gem_core.errors import PluginError
from gem_support.listening import Listener, registered
from gem_train.rollout._reporter import MAX_SAMPLES
from gem_trl import ProgressCallback


@pytest.fixture
def listener() -> Iterator[Listener]:
    yield from registered(Listener())


def told(listener: Listener) -> list[tuple[int, bool, bool]]:
    return [(step, "episode/return" in one, "eval_episode/return" in one) for step, one in listener.of("metrics")]


EVALUATED = {"eval_strategy": "steps", "eval_steps": 2, "eval_episodes": 8, "per_device_eval_batch_size": 8}


@pytest.mark.parametrize("shown", [False, True])
def test_updates_and_evaluations_are_heard_once(trainer: Any, listener: Listener, tmp_path: Path, shown: bool) -> None:
    extra = {"callbacks": [ProgressCallback("babble")]} if shown else {}
    run = trainer(extra=extra, max_steps=2, **EVALUATED)
    run.train()
    assert told(listener) == [(1, True, False), (2, True, False), (2, False, True)]
    assert (tmp_path / "metrics.jsonl").exists() == shown
    [source] = listener.sources
    assert (source.kind, source.name, source.folder) == ("training", "test:Babble-v0", str(tmp_path))
    assert source.settings["gamma"] == 0.9
    assert listener.heard[-1] == ("end", True)
    assert listener.of("samples") == []
    assert not (tmp_path / "run_id").exists()
    run.evaluate()
    assert told(listener)[-1] == (2, False, True)


def test_a_tracked_run_has_samples_and_keeps_its_id(trainer: Any, listener: Listener, tmp_path: Path) -> None:
    trainer(track="game", max_steps=2, save_strategy="steps", save_steps=2).train()
    again = trainer(track="game", max_steps=3)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert [step for step, _, _ in told(listener)] == [1, 2, 3]
    first, second = listener.sources
    assert first.id == second.id == (tmp_path / "run_id").read_text().strip()
    assert (first.resumed, second.resumed) == (False, True)
    samples = listener.of("samples")
    assert [step for step, _ in samples] == [1, 2, 3]
    assert all(0 < len(episodes) <= MAX_SAMPLES for _, episodes in samples)
    assert all(one.turns and not one.sequences for _, episodes in samples for one in episodes)
    assert not (tmp_path / "samples").exists()


def test_an_unknown_tracker_is_refused(trainer: Any) -> None:
    with pytest.raises(PluginError, match="no plugin named 'wnadb'"):
        trainer(track=["wnadb"])
