"""What the records say of a token is what the loss used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gem_core.plugins import manager
from gem_core.records import RecordedEpisode, open_records, read_episodes
from gem_core.training import recording
from gem_trl import TurnGRPOTrainer


class LossSpy(TurnGRPOTrainer):
    """Computes the log-probabilities of each micro-batch once more, with nothing of TRL's or ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seen: list[dict[tuple[int, ...], list[list[tuple[float, float]]]]] = []
        super().__init__(*args, **kwargs)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if self._step % self.args.gradient_accumulation_steps == 0:
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


@pytest.fixture
def _end_of_recording():
    yield
    for plugin in list(manager._hooks.get_plugins()):
        if isinstance(plugin, recording.RunRecorder):
            manager.unregister(plugin)
    recording._recorder.cache_clear()


def numbers(one: RecordedEpisode) -> list[tuple[float, float]]:
    """Advantage and log-probability of each sampled token."""
    assert one.trained is not None
    pairs: list[tuple[float, float]] = []
    for advantage, logprobs in zip(one.trained.advantages, one.trained.logprobs, strict=True):
        assert logprobs is not None
        pairs += [(advantage, number) for number in logprobs]
    return pairs


@pytest.mark.usefixtures("_end_of_recording")
@pytest.mark.parametrize("accumulation", [1, 4])
def test_advantages_and_logprobs_are_those_of_the_loss(trainer, tmp_path: Path, accumulation: int):
    run = trainer(
        cls=LossSpy, record="full", record_folder=str(tmp_path), max_steps=3, gradient_accumulation_steps=accumulation,
        advantage="rebn", gamma=0.9, learning_rate=1e-2,
    )  # fmt: skip
    run.train()
    records = open_records(tmp_path)
    assert records.gaps == []
    assert records.settings["gamma"] == 0.9
    assert "trl" in records.versions
    episodes = [*read_episodes(tmp_path)]
    assert {one.summary.update for one in episodes} == {1, 2, 3}
    assert {one.summary.split for one in episodes} == {"train"}
    assert all(records.texts[token] for one in episodes for part in one.episode.sequences for token in part.ids)
    for one in episodes:
        assert one.trained is not None
        (sequence,) = one.episode.sequences
        seen = run.seen[one.trained.update - 1]
        same_tokens = seen[tuple(sequence.ids[: one.episode.turns[-1].end])]
        assert any(np.allclose(numbers(one), other, rtol=0, atol=1e-6) for other in same_tokens)
        sampled = [one.episode.response_logprobs(turn) for turn in one.episode.turns]
        assert all(part is None for part in sampled)
        assert all(entropy is not None for entropy in one.trained.entropies)
