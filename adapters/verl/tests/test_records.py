"""What the trainer reports of an update, without workers; `test_training.py` compares it with the loss of real runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics
from without_ray import MemoryQueue, batch_of, hand_over, trainer

from gem_support.hand_made import random_episodes, without_turns
from gem_support.listening import UpdateListener, registered
from gem_train.results import EpisodeResult
from gem_train.rollout import Episode
from gem_train.rollout._secrets import HIDDEN, without_secrets
from gem_verl._rows import TURNS, episode_rows, report_row
from gem_verl._trainer import _with_verls_own
from gem_verl.settings import VerlSettings

VERSIONS = {"min_global_steps": 0, "max_global_steps": 0}


@pytest.fixture
def listener() -> Iterator[UpdateListener]:
    yield from registered(UpdateListener())


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> MemoryQueue:
    return MemoryQueue().install(monkeypatch)


@pytest.fixture
def played() -> list[Episode]:
    """Ten episodes; the second and the fourth have no turns."""
    found = random_episodes(random.Random(3), 5, 2)
    for number, one in enumerate(found):
        one.run, one.slot, one.number = "run", one.task_id, number
    for one in found[1:4:2]:
        without_turns(one)
    return found


def trained(config: DictConfig, words: Any, queue: MemoryQueue, played: list[Episode], *, entropy: bool) -> list[str]:
    """Train once on a batch of these episodes and a dropped one. Returns the keys of its rows."""
    made = trainer(config, words, ranks=2)
    made.actor_rollout_wg.update_actor = lambda batch: {"metrics": {"mfu": [0.0]}}
    keys = hand_over(queue, [report_row(EpisodeResult(), VERSIONS)], "dropped", 0)
    for number, one in enumerate(played):
        rows = episode_rows([one], config.gem.row, VERSIONS, AgentLoopMetrics()) if one.turns else []
        rows = rows or [report_row(EpisodeResult(one.summary()), VERSIONS)]
        keys += hand_over(queue, rows, f"task{one.task_id}", number)
    batch = batch_of(made, queue, keys, random.Random(0))
    if entropy:
        for key in batch.keys:
            queue.rows[key]["entropy"] = torch.rand(len(queue.rows[key]["responses"]))
    made.global_steps = 7
    batch = made._compute_advantage(batch, {})
    made._update_actor(batch, {})
    return keys


@pytest.mark.parametrize("row", ["episode", "turn"])
@pytest.mark.parametrize("entropy", [True, False], ids=["", "bypass_mode"])
def test_an_update_has_the_numbers_of_each_turn(
    configure: Callable[..., DictConfig],
    words: Any,
    queue: MemoryQueue,
    listener: UpdateListener,
    played: list[Episode],
    row: str,
    entropy: bool,
):
    keys = trained(configure(f"gem.row={row}", "algorithm.gamma=0.9"), words, queue, played, entropy=entropy)
    (update,) = listener.updates
    assert (update.number, update.rank, update.ranks) == (7, 0, 1)
    assert {*update.episodes} == {one.id for one in played}
    assert len(update.episodes) == len(played)
    found = {
        (update.episodes[episode], position): index
        for index, (episode, position) in enumerate(zip(update.episode, update.position, strict=True))
    }
    assert {*found} == {(one.id, position) for one in played for position in range(len(one.turns))}
    assert (update.logprobs is not None, update.entropies is not None) == (entropy, entropy)
    for key in keys:
        stored = queue.rows[key]
        for span in stored["extra_fields"][TURNS]:
            name = next(one.id for one in played if key.split("_")[:2] == [f"task{one.task_id}", str(one.number)])
            index = found[name, span[0]]
            own = slice(span[1] - len(stored["prompts"]), span[2] - len(stored["prompts"]))
            assert stored["advantages"][own].tolist() == pytest.approx(
                [update.advantage[index]] * (own.stop - own.start)
            )
            assert stored["returns"][own][0].item() == pytest.approx(update.return_to_go[index])
            if update.logprobs is not None and update.entropies is not None:
                assert stored["old_log_probs"][own].tolist() == pytest.approx(update.logprobs[index])
                assert stored["entropy"][own].tolist() == pytest.approx(update.entropies[index])


def test_nothing_is_read_if_nobody_listens(
    configure: Callable[..., DictConfig],
    words: Any,
    queue: MemoryQueue,
    played: list[Episode],
    monkeypatch: pytest.MonkeyPatch,
):
    asked: list[str] = []
    get = queue.kv_batch_get

    def watched(keys: list[str], partition_id: str, select_fields: list[str] | None = None) -> Any:
        asked.extend(select_fields or [])
        return get(keys, partition_id, select_fields)

    monkeypatch.setattr("transfer_queue.kv_batch_get", watched)
    trained(configure(), words, queue, played, entropy=True)
    assert not {"entropy", "advantages", "returns"} & {*asked}


def test_settings_have_verls_own_without_secrets(configure: Callable[..., DictConfig]):
    config = configure("gem.row=turn", "data.train_batch_size=8", "+trainer.wandb_api_key=abc")
    settings = VerlSettings.of(config.gem)
    described = without_secrets(_with_verls_own(settings, config).described())
    assert described["row"] == "turn"
    assert described["verl"]["data"]["train_batch_size"] == 8
    assert described["verl"]["trainer"]["wandb_api_key"] == HIDDEN
    assert "gem" not in described["verl"]
    assert "verl" not in settings.described()
