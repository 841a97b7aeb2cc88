"""What the records say of a token is what the loss used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gem_train import recording
from gem_train.records import Trained, open_records, read_episodes
from gem_train.rollout import Episode
from gem_trl import TurnGRPOTrainer


class LossSpy(TurnGRPOTrainer):
    """Computes the log-probabilities of each micro-batch once more, with nothing of TRL's or ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seen: list[dict[tuple[int, ...], list[list[tuple[float, float]]]]] = []
        super().__init__(*args, **kwargs)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        while len(self.seen) <= self.state.global_step:
            self.seen.append({})
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        present = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        width = inputs["completion_ids"].shape[1]
        with torch.no_grad():
            logits = self.model(input_ids=ids, attention_mask=present).logits[:, -width - 1 : -1] / self.temperature
        logprobs = logits.log_softmax(-1).gather(-1, inputs["completion_ids"][..., None]).squeeze(-1)
        sampled = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        for row in range(len(ids)):
            key = tuple(ids[row][present[row].bool()].tolist())
            pairs = zip(inputs["advantages"][row][sampled[row]], logprobs[row][sampled[row]], strict=True)
            self.seen[-1].setdefault(key, []).append([(float(one), float(two)) for one, two in pairs])
        return super().compute_loss(model, inputs, *args, **kwargs)


@pytest.fixture(autouse=True)
def _end_of_recording():
    yield
    recording.stop_recording()


SEVERAL_UPDATES = {"gradient_accumulation_steps": 1, "steps_per_generation": 2}


@pytest.mark.parametrize(
    "batches",
    [{}, {"gradient_accumulation_steps": 4}, SEVERAL_UPDATES, {"num_iterations": 2}, {"row": "turn"}],
    ids=["one", "micro-batches", "updates", "passes", "turns"],
)
def test_advantages_and_logprobs_are_those_of_the_loss(trainer, tmp_path: Path, batches: dict[str, Any]):
    options: dict[str, Any] = {"max_steps": 4, "advantage": "rebn", "gamma": 0.9, "learning_rate": 1e-2}
    run = trainer(cls=LossSpy, record="full", record_folder=str(tmp_path), **options, **batches)
    run.train()
    records = open_records(tmp_path)
    assert records.gaps == []
    assert records.settings["gamma"] == 0.9
    assert "trl" in records.versions
    episodes = [*read_episodes(tmp_path)]
    assert {update.update for one in episodes for update in one.updates} == {1, 2, 3, 4}
    assert {one.summary.split for one in episodes} == {"train"}
    assert all(records.texts[token] for one in episodes for part in one.episode.sequences for token in part.ids)
    for one in episodes:
        assert one.updates
        for update in one.updates:
            assert_of_the_loss(one.episode, update, run.seen[update.update - 1])


def assert_of_the_loss(episode: Episode, update: Trained, seen: dict[tuple[int, ...], list[Any]]) -> None:
    """Each turn's numbers were in a row of the loss, behind the same tokens."""
    trained = [position for position, one in enumerate(update.advantages) if one is not None]
    for position in trained:
        turn = episode.turns[position]
        before = tuple(episode.sequences[turn.sequence].ids[: turn.end])
        rows = [pairs for key, many in seen.items() if key[: len(before)] == before for pairs in many]
        logprobs = update.logprobs[position]
        assert logprobs is not None
        assert update.entropies[position] is not None
        numbers = [(update.advantages[position], number) for number in logprobs]
        assert any(is_within(numbers, pairs) for pairs in rows)


def is_within(numbers: list[Any], pairs: list[Any]) -> bool:
    starts = range(len(pairs) - len(numbers) + 1)
    # A log-probability is rounded otherwise where other rows are computed with it.
    near = [1e-6, 1e-5]
    return any(np.allclose(numbers, pairs[start : start + len(numbers)], rtol=0, atol=near) for start in starts)


def test_each_run_of_a_process_has_its_own_records(trainer, tmp_path: Path):
    for folder, rate in (("a", 0.1), ("b", 0.2), ("b", 0.3)):
        trainer(record="full", record_folder=str(tmp_path / folder), learning_rate=rate, max_steps=1).train()
    trainer(max_steps=1).train()
    assert [len([*read_episodes(tmp_path / folder)]) for folder in ("a", "b")] == [8, 16]
    assert [open_records(tmp_path / folder).settings["learning_rate"] for folder in ("a", "b")] == [0.1, 0.3]


def test_an_update_that_was_not_made_is_not_recorded(trainer, tmp_path: Path):
    class Failing(TurnGRPOTrainer):
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            if self.state.global_step == 1:
                raise RuntimeError("it broke")
            return super().compute_loss(*args, **kwargs)

    with pytest.raises(RuntimeError, match="it broke"):
        trainer(cls=Failing, record="full", record_folder=str(tmp_path), max_steps=3).train()
    assert [one.update for one in open_records(tmp_path).summaries] == [1] * 8 + [None] * 8


def test_what_recording_raises_costs_no_run(trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(recording.TurnTable, "tokens", broken)
    run = trainer(record="full", record_folder=str(tmp_path), max_steps=2)
    run.train()
    assert run.state.global_step == 2


def test_without_tokens_nothing_is_kept_of_the_loss(trainer, tmp_path: Path):
    run = trainer(record="summary", record_folder=str(tmp_path), max_steps=1)
    run.train()
    (first, *_) = read_episodes(tmp_path)
    assert first.trained is not None
    assert first.trained.logprobs == [None] * len(first.episode.turns)
    assert run._scored == (None, None)


def test_episodes_without_turns_are_read_too(trainer, tmp_path: Path):
    options = {"env_failure": "truncate", "max_env_failure_share": None, "per_device_train_batch_size": 16}
    trainer(env="test:Fragile-v0", record="full", record_folder=str(tmp_path), max_steps=2, **options).train()
    records = open_records(tmp_path)
    episodes = [records.episode(index) for index in range(len(records.summaries))]
    assert len(episodes) == 64
    assert any(not one.episode.turns for one in episodes)
    assert {one.summary.update for one in episodes} == {1, 2}
    assert all(one.trained.advantages for one in episodes if one.trained and one.episode.turns)
