"""The trainer's additions to verl's, without workers: mini-batches, the critic's turns, metrics, the end of a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from transfer_queue import KVBatchMeta
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics
from without_ray import MemoryQueue, batch_of, hand_over, trainer

from gem_core.errors import AdapterError
from gem_support.hand_made import random_episodes, without_turns
from gem_train.results import EpisodeResult
from gem_train.rollout import Episode
from gem_verl._rows import RESULT, TURNS, episode_rows, report_row
from gem_verl._trainer import TurnTrainer

VERSIONS = {"min_global_steps": 0, "max_global_steps": 0}
FIXED = ["actor_rollout_ref.actor.use_dynamic_bsz=False", "critic.use_dynamic_bsz=False"]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> MemoryQueue:
    return MemoryQueue().install(monkeypatch)


@pytest.fixture
def ready(configure: Callable[..., DictConfig], words: Any, queue: MemoryQueue) -> Callable[..., Any]:
    """A function that makes a trainer and a batch of these episodes or results."""

    def make(episodes: Sequence[Episode | EpisodeResult], *flags: str) -> tuple[TurnTrainer, KVBatchMeta]:
        config = configure("algorithm.gamma=0.9", *flags)
        made = trainer(config, words)
        keys: list[str] = []
        for number, one in enumerate(episodes):
            rows = [report_row(one, VERSIONS)] if isinstance(one, EpisodeResult) else None
            rows = rows or episode_rows([one], config.gem.row, VERSIONS, AgentLoopMetrics())
            keys += hand_over(queue, rows, f"task{number}", 0)
        return made, batch_of(made, queue, keys, random.Random(0))

    return make


def episodes(count: int = 8, seed: int = 0) -> list[Episode]:
    return random_episodes(random.Random(seed), count, 1)


class Group:
    """Stands in for verl's worker group: records the rows that it trains on."""

    def __init__(self, queue: MemoryQueue) -> None:
        self.queue = queue
        self.info: dict[str, Any] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def train_mini_batch(self, batch: KVBatchMeta) -> Any:
        self.info = dict(batch.extra_info or {})
        self.rows = {key: dict(self.queue.rows[key]) for key in batch.keys}
        return SimpleNamespace(get=lambda: {"metrics": {"mfu": [0.0]}})


@pytest.mark.parametrize(
    ("flags", "ranks", "wanted"),
    [
        ([], 1, 1),
        ([], 4, 4),
        (["actor_rollout_ref.actor.ppo_mini_batch_size=2"], 1, 4),
        (["actor_rollout_ref.actor.ppo_mini_batch_size=2"], 2, 8),
        ([*FIXED, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=3"], 2, 6),
        (["algorithm.adv_estimator=gae", "critic.ppo_mini_batch_size=4"], 1, 2),
        (["actor_rollout_ref.rollout.n=5"], 1, 1),
    ],
)
def test_rows_are_padded_only_to_whole_mini_batches(configure, words, flags, ranks, wanted):
    flags = ["actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True", *flags]
    assert trainer(configure(*flags), words)._get_required_batch_multiple(ranks) == wanted


def test_the_critic_learns_the_first_token_of_each_turn(ready, queue):
    flags = ["algorithm.adv_estimator=gae", "critic.ppo_mini_batch_size=4"]
    made, batch = ready([*episodes(7), EpisodeResult()], *flags)
    batch = made._compute_advantage(batch, {})
    before = {key: dict(queue.rows[key]) for key in batch.keys}
    made.critic_wg = group = Group(queue)
    group.train_mini_batch = made._split_evenly(group.train_mini_batch, "critic")
    made._update_critic(batch, {})
    for key, row in group.rows.items():
        first = [start - len(row["prompts"]) for _, start, *_ in row["extra_fields"][TURNS]]
        wanted = [int(at in first) for at in range(len(row["responses"]))]
        assert row["response_mask"].tolist() == row["loss_mask"].tolist() == wanted
        assert row["returns"].tolist() == before[key]["returns"].tolist()
    assert group.info["mini_batch_size"] == len(batch) // 2
    assert group.info["global_batch_size"] == 4, "the loss is divided by episodes"
    for key, row in before.items():
        for name in ("response_mask", "loss_mask"):
            assert torch.equal(queue.rows[key][name], row[name]), "as it was"


def test_the_masks_are_restored_if_the_critic_fails(ready, queue):
    made, batch = ready(episodes(), "algorithm.adv_estimator=gae")
    batch = made._compute_advantage(batch, {})
    before = {key: queue.rows[key]["response_mask"] for key in batch.keys}

    def fail(batch: KVBatchMeta) -> None:
        raise MemoryError

    made.critic_wg = SimpleNamespace(train_mini_batch=fail)
    with pytest.raises(MemoryError):
        made._update_critic(batch, {})
    assert all(torch.equal(queue.rows[key]["response_mask"], mask) for key, mask in before.items())


@pytest.mark.parametrize("name", ["rebn", "gae"])
def test_a_batch_without_turns_updates_nothing_and_does_not_stop_the_run(ready, queue, name):
    empty = episodes(3)
    for one in empty:
        without_turns(one)
    made, batch = ready(
        [*[EpisodeResult(one.summary()) for one in empty], EpisodeResult()], f"algorithm.adv_estimator={name}"
    )
    metrics: dict[str, Any] = {}
    batch = made._compute_advantage(batch, metrics)
    made.actor_rollout_wg = made.critic_wg = None
    batch = made._update_critic(batch, metrics)
    batch = made._update_actor(batch, metrics)
    finish(made, batch, metrics)
    assert (metrics["rollout/episodes"], metrics["rollout/turns"], metrics["rollout/dropped"]) == (3.0, 0.0, 1.0)


def test_metrics_of_a_step_with_an_episode_without_turns(ready):
    failed = without_turns(episodes(1)[0])
    failed.error = "OSError: gone"
    made, batch = ready([*episodes(5), EpisodeResult(failed.summary()), EpisodeResult()])
    metrics: dict[str, Any] = {}
    batch = made._compute_advantage(batch, metrics)
    finish(made, batch, metrics)
    assert (metrics["rollout/episodes"], metrics["rollout/dropped"]) == (6.0, 1.0)
    assert metrics["training/num_turns/min"] == 0


def finish(made: TurnTrainer, batch: KVBatchMeta, metrics: dict[str, Any]) -> None:
    """verl's own metrics."""
    made.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 1)
    made._compute_metrics(batch, metrics, {"step": 1.0, "gen": 0.5}, global_steps=1, epoch=0)


def test_a_fatal_result_stops_the_run(ready):
    made, batch = ready([*episodes(3), EpisodeResult(fatal="EnvFailure: no more\ntrace")])
    with pytest.raises(AdapterError, match="EnvFailure: no more\ntrace"):
        made._compute_advantage(batch, {})


def test_validation_has_the_same_numbers(ready):
    played = episodes(4)
    made, _ = ready(played)
    texts = [EpisodeResult(one.summary()).encode() for one in played]
    info = {"reward": [0.0] * 5, RESULT: [*texts, EpisodeResult().encode()], "acc": [1.0, 0.0, 1.0, 1.0, None]}
    found = made._val_metrics_update(["env"] * 5, [*"abcde"], info, [1] * 5, expected_acc_counts=None)
    assert found["eval_rollout/episodes"] == 4.0
    assert found["eval_rollout/dropped"] == 1.0
    assert found["eval_episode/return"] == pytest.approx(sum(one.total_reward for one in played) / 4)
    assert found["val-core/env/acc/mean@1"] == 0.75
    with pytest.raises(AdapterError, match="over"):
        made._val_metrics_update(["env"], ["a"], {"reward": [0.0], RESULT: [EpisodeResult(fatal="over").encode()]}, [1])
