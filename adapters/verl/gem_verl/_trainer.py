"""verl's trainer with environments in place of prompts, and one advantage per turn."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import ray
import torch
from omegaconf import DictConfig, OmegaConf, open_dict
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.experimental.agent_loop import AgentLoopManager
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from gem_core.plugins import manager
from gem_core.registry import advantage_spec
from gem_train.defaults import acting
from gem_train.metrics import announcement
from gem_train.recording import log_exceptions, needs_token_values, record, report_update
from gem_train.report import RunReport
from gem_train.results import EpisodeResult, result_metrics
from gem_train.turn_table import TurnTable
from gem_verl._ahead import BatchesAhead
from gem_verl._estimator import ESTIMATOR, TURN_ESTIMATOR
from gem_verl._images import check_images, reader_of
from gem_verl._liveness import Liveness
from gem_verl._order import even_order
from gem_verl._positions import patch_workers
from gem_verl._rows import RESULT, TURNS, batch_episodes, batch_results, batch_table
from gem_verl._runner import RUNNERS, check_model
from gem_verl._storage import extra_fields, nested, padded, read, write
from gem_verl.checks import batches_ahead, check, updates_per_batch
from gem_verl.settings import VerlSettings

CLOSE_SECONDS = 30.0
"""Time limit in seconds for agent workers to close their environments at the end."""

POLL_SECONDS = 0.5
"""How often to check whether a batch is complete. verl's two seconds are most of a small model's step."""


@register_trainer("gem")
class TurnTrainer(PPOTrainerSync):
    """verl's synchronous trainer, with its own loop, workers and weight transfer.

    The number of rows differs from the number of episodes. So a batch is split into a fixed number of mini-batches
    (`train_batch_size / ppo_mini_batch_size`), not into mini-batches of a fixed size, and the loss is still divided by
    the number of episodes. The critic learns one value per turn, at its first token.

    With `gem.max_staleness`, episodes of later batches are played, too. Their requests are aborted while verl trains on
    the same device, and continued with the new weights.

    Args:
        config: verl's configuration with the section `gem`.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """

    def __init__(self, config: DictConfig) -> None:
        self._settings = check(config)
        self._advantage: str = config.algorithm.adv_estimator
        self._report: RunReport | None = None
        self._announced = False
        self._table = TurnTable.of([], [], [])
        self._episodes: list[str] = []
        self._ahead: BatchesAhead | None = None
        with open_dict(config):
            # verl compares this name to decide whether rollouts and updates alternate.
            config.trainer.v1.trainer_mode = "sync"
            config.critic.enable = advantage_spec(self._advantage).needs_values
        super().__init__(config)
        self.replay_buffer.poll_interval = POLL_SECONDS
        self._liveness = Liveness()
        self._wait: Callable[[str, float], float] = self.replay_buffer._wait_for_next_poll
        self.replay_buffer._wait_for_next_poll = self._wait_for_next_poll
        self._finished: Callable[..., set[str]] = self.replay_buffer._sampleable_terminal_keys
        self.replay_buffer._sampleable_terminal_keys = self._due_terminal_keys

    # -- verl's public methods --------------------------------------------------------------------------------------

    def init(self) -> None:
        """Load the models and start the workers."""
        super().init()
        if hasattr(self.processor, "get_rope_index"):
            groups = [self.actor_rollout_wg, *([self.ref_policy_wg] if self.use_reference_policy else [])]
            patch_workers({one for group in groups for one in group.workers})
        self.actor_rollout_wg.update_actor = self._split_evenly(self.actor_rollout_wg.update_actor, "actor")
        if self.use_critic:
            self.critic_wg.train_mini_batch = self._split_evenly(self.critic_wg.train_mini_batch, "critic")

    def fit(self, agent_loop_manager: AgentLoopManager) -> None:
        """Train. At the end or after an error, environments are closed and the report is written."""
        record(_with_verls_own(self._settings, self.config))
        if not self.config.trainer.get("val_only", False):
            self._report = self._settings.open_report(self.total_training_steps, self.global_steps)
        self._liveness = Liveness(agent_loop_manager.agent_loop_workers)
        try:
            super().fit(agent_loop_manager)
        finally:
            closing = [one.__ray_call__.remote(_close) for one in agent_loop_manager.agent_loop_workers]
            ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)  # a dead worker has none left to close
            if self._report is not None:
                self._report.save()

    def on_train_begin(self) -> None:
        """Prepare to sample ahead, if the settings say so."""
        if self._settings.max_staleness:
            rounds = self.total_training_steps - self.global_steps + 1
            self._ahead = BatchesAhead(batches_ahead(self._settings, self.config), rounds)

    def prepare_step(self) -> dict[str, Any]:
        """Begin the episodes of the batches that may be begun with these weights."""
        if self._ahead is None:
            return super().prepare_step()
        for _ in range(self._ahead.advance()):
            self._add_batch_to_generate()
        self._ahead.take()
        return {}

    def on_sample_end(self) -> None:
        """Stop sampling, because the device is needed for training."""
        if self._ahead is not None:
            engines: Any = self.checkpoint_manager
            engines.abort_replicas()
        super().on_sample_end()

    def on_step_end(self) -> None:
        """Publish the weights, and continue sampling."""
        super().on_step_end()
        if self._ahead is not None:
            engines: Any = self.checkpoint_manager
            engines.resume_generation_replicas()

    # -- overrides of private methods -------------------------------------------------------------------------------

    def _init_tokenizer(self) -> None:
        super()._init_tokenizer()
        # Here, because verl has loaded the model's tokenizer and processor, and nothing large yet.
        check_images(self._settings, self.processor, self.config.actor_rollout_ref.model.path)
        check_model(self.config, self.tokenizer, reader_of(self.processor))

    def _wait_for_next_poll(self, partition_id: str, last_debug_time: float) -> float:
        self._liveness.check()
        return self._wait(partition_id, last_debug_time)

    def _due_terminal_keys(self, partition_id: str, eviction_reasons: Any) -> set[str]:
        found = self._finished(partition_id, eviction_reasons)
        return found if self._ahead is None or partition_id == "val" else found & self._ahead.due

    def _submit_batch_to_rollout(self, batch: TensorDict) -> int:
        if self._ahead is not None:
            tasks: Any = batch["uid"]
            self._ahead.add(tasks, self.train_dataloader.state_dict())
        return super()._submit_batch_to_rollout(batch)

    def _save_checkpoint(self) -> None:
        # The tasks that are played ahead are not trained on yet, so a resumed run plays them.
        loader = self.train_dataloader
        if self._ahead is not None:
            self.train_dataloader = self._ahead
        try:
            super()._save_checkpoint()
        finally:
            self.train_dataloader = loader

    def _balance_batch(self, batch: KVBatchMeta, *args: Any, **kwargs: Any) -> KVBatchMeta:
        batch = super()._balance_batch(batch, *args, **kwargs)
        ranks = max(self.actor_rollout_wg._dispatch_info["actor"]) + 1
        updates = math.lcm(*map(self._updates, self._roles()))
        batch.reorder(even_order([bool(one.get(TURNS)) for one in extra_fields(batch)], ranks, updates))
        return batch

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        extra = extra_fields(batch)
        self._table = table = batch_table(batch, extra)
        self._episodes = batch_episodes(extra) if manager.listens("gem_update") else []
        results = batch_results(batch, extra)
        metrics.update(result_metrics(results, self._version))
        if self._report is not None:
            self._report.see(summary for one in results for summary in one.summaries)
        metrics["rollout/padding_rows"] = float(sum(not one.get(TURNS) for one in extra))
        if not len(table):
            # verl's rollout correction refuses a batch without sampled tokens. The masks are all zeros, as needed.
            zeros = read(batch, "response_mask")["response_mask"].float()
            write(batch, TensorDict({"advantages": zeros, "returns": zeros}, batch_size=len(batch)))
            return batch
        algorithm = self.config.algorithm
        values = None
        if self.use_critic:
            values = table.firsts([padded(read(batch, "values")["values"])])
        # verl looks the estimator up in its registry, and passes only rewards and masks.
        TURN_ESTIMATOR.expect(table, self._advantage, gamma=algorithm.gamma, lam=algorithm.lam, values=values)
        algorithm.adv_estimator = ESTIMATOR
        try:
            batch = super()._compute_advantage(batch, metrics)
        finally:
            algorithm.adv_estimator = self._advantage
        metrics.update(TURN_ESTIMATOR.metrics)
        self._announce(metrics)
        return batch

    def _update_critic(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        if not len(self._table):
            return batch
        # Both masks: the loss uses one, and its divisor, a number of tokens, comes from the other.
        masks = read(batch, "response_mask", "loss_mask")
        whole: Any = masks["response_mask"].to_padded_tensor(0)
        [marks] = self._table.spread(np.ones(len(self._table)), [whole.shape], first_only=True)
        firsts = whole * torch.from_numpy(marks).to(whole.dtype)
        rows = zip(firsts, masks["response_mask"].unbind(), strict=True)
        first = nested([row[: len(mask)] for row, mask in rows])
        write(batch, TensorDict({"response_mask": first, "loss_mask": first}, batch_size=len(batch)))
        try:
            return super()._update_critic(batch, metrics)
        finally:
            write(batch, masks)

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        if not len(self._table):  # without sampled tokens, a mean over tokens is NaN
            return batch
        if manager.listens("gem_update"):
            with log_exceptions():
                self._record_update(batch)
        return super()._update_actor(batch, metrics)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        log_probs = [self.config.actor_rollout_ref.rollout]
        if self.use_reference_policy:
            log_probs.append(self.config.actor_rollout_ref.ref)
        multiples = [
            _micro_batch(one.log_prob_use_dynamic_bsz, one.log_prob_micro_batch_size_per_gpu) for one in log_probs
        ]
        for role in self._roles():
            section = self._section(role)
            size = _micro_batch(section.use_dynamic_bsz, section.ppo_micro_batch_size_per_gpu)
            multiples.append(self._updates(role) * size)
        return dp_size * math.lcm(*multiples)

    def _val_metrics_update(
        self,
        data_sources: Any,
        sample_uids: Any,
        reward_extra_infos_dict: dict[str, list[Any]],
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, float]:
        results = [EpisodeResult.decode(text) for text in reward_extra_infos_dict.pop(RESULT, []) if text]
        own = {f"eval_{name}": value for name, value in result_metrics(results).items()}
        found = super()._val_metrics_update(data_sources, sample_uids, reward_extra_infos_dict, *args, **kwargs)
        if self._report is not None:  # an evaluation before the first step is in no step's metrics
            self._report.amend(self.global_steps, {name: float(value) for name, value in {**found, **own}.items()})
        return {**found, **own}

    def _compute_metrics(self, batch: KVBatchMeta, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super()._compute_metrics(batch, metrics, *args, **kwargs)
        if self._report is not None:
            numbers = {name: float(value) for name, value in metrics.items() if not isinstance(value, dict)}
            self._report.update(self.global_steps, numbers)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _record_update(self, batch: KVBatchMeta) -> None:
        """Report what the actor is about to train on."""
        per_token = ["old_log_probs", "entropy"] if needs_token_values() else []
        found = read(batch, "advantages", "returns", *per_token)
        # In verl's bypass mode, it takes the sampler's log-probabilities for the trainer's, and computes no entropy.
        own = "entropy" in found
        report_update(
            self.global_steps,
            self._table,
            self._episodes,
            advantages=[padded(found["advantages"])],
            returns=self._table.firsts([padded(found["returns"])]),
            logprobs=[padded(found["old_log_probs"])] if own else None,
            entropies=[padded(found["entropy"])] if own else None,
            version=self._version,
        )

    @property
    def _version(self) -> int:
        """Updates of the policy before this step."""
        return (self.global_steps - 1) * updates_per_batch(self.config)

    def _roles(self) -> list[str]:
        return ["actor", "critic"] if self.use_critic else ["actor"]

    def _section(self, role: str) -> DictConfig:
        return self.config.critic if role == "critic" else self.config.actor_rollout_ref.actor

    def _updates(self, role: str) -> int:
        return self.config.data.train_batch_size // self._section(role).ppo_mini_batch_size

    def _split_evenly(self, update: Callable[[KVBatchMeta], Any], role: str) -> Callable[[KVBatchMeta], Any]:
        def split(batch: KVBatchMeta) -> Any:
            batch.extra_info = {**(batch.extra_info or {}), "mini_batch_size": len(batch) // self._updates(role)}
            return update(batch)

        return split

    def _announce(self, metrics: dict[str, Any]) -> None:
        if self._announced:
            return
        self._announced = True
        gamma = self.config.algorithm.gamma
        shown = acting("gem_verl", functools.partial(OmegaConf.select, self.config))
        print(announcement(self._advantage, gamma, self._settings.row, metrics, shown), flush=True)


def _with_verls_own(settings: VerlSettings, config: DictConfig) -> VerlSettings:
    whole: Any = OmegaConf.to_container(config, resolve=True)
    return replace(settings, verl={name: section for name, section in whole.items() if name != "gem"})


def _micro_batch(dynamic: bool, size: int | None) -> int:
    return 1 if dynamic or not size else size


def _close(worker: Any) -> None:
    """Runs in an agent worker."""
    RUNNERS.close()
