"""OpenRLHF's trainers, synchronous and asynchronous, on turns of environments."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import ray
from openrlhf.trainer import ppo_trainer, ppo_trainer_async
from openrlhf.trainer.ppo_utils.experience import Experience

from gem_openrlhf._actors import plain_class
from gem_openrlhf._ahead import Batch, BatchesAhead, HeldSlots, together
from gem_openrlhf._experience import TurnExperienceMaker, batch_episodes, row_experience, training_rows
from gem_openrlhf._images import ImageIds
from gem_openrlhf._rows import RESULT
from gem_openrlhf._samples import TurnSamplesGenerator
from gem_openrlhf.settings import TrainerSettings, updates_per_batch, updates_per_pass
from gem_train.defaults import acting
from gem_train.metrics import announcement
from gem_train.playing import prepare_process
from gem_train.report import RunReport
from gem_train.results import result_metrics

_PPOTrainer = plain_class(ppo_trainer.PPOTrainer)
_TrainingActor = plain_class(ppo_trainer_async.TrainingActor)
_GenerateSamplesActor = plain_class(ppo_trainer_async.GenerateSamplesActor)


CLOSE_SECONDS = 30.0
"""Time limit in seconds for engines to close their environments at the end."""


class _TurnTraining(ppo_trainer.BasePPOTrainer):
    """The common part of the synchronous and the asynchronous trainer."""

    args: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.experience_maker = TurnExperienceMaker(
            self.actor_model_group,
            self.critic_model_group,
            self.reward_model_group,
            self.reference_model_group,
            self.kl_ctl,
            self.strategy,
            self.tokenizer,
        )
        settings = self.args.gem
        # This process runs estimators and listeners, too.
        prepare_process(TrainerSettings(**vars(settings), arguments=self.args))
        self._report: RunReport | None = None
        self._announced = False
        self._version = 0
        shown = ImageIds.of_run(self.args)
        self._images = shown.reader(self.tokenizer) if shown else None

    def init_checkpoint_states(self) -> dict[str, Any]:
        """OpenRLHF's method, which both trainers call first. It has the step at which a resumed run continues."""
        states: dict[str, Any] = super().init_checkpoint_states()
        self._report = self.args.gem.open_report(self.args.gem.steps, states["global_step"])
        self._version = states["global_step"] * updates_per_batch(self.args)
        return states

    def fit(self, global_step: int = 0) -> None:
        """Train. The report gets each step's metrics at once, and its curve at the end or after an error here."""
        try:
            super().fit(global_step)
        finally:
            if self._report is not None:
                self._report.save()

    def train_step(self, rollout_samples: list[Experience], global_step: int) -> tuple[dict[str, Any], int]:
        """Train on the rows of the episodes; a batch without turns changes nothing."""
        results = [one for sample in rollout_samples for one in sample.info[RESULT][0].each]
        rows, turns = training_rows(results, self._multiple(), self._ranks())
        status: dict[str, Any] = {}
        updates = updates_per_batch(self.args)
        before = global_step * updates
        if rows:
            self.experience_maker.expect(turns, global_step + 1, before, batch_episodes(results, turns))
            self._version = before + updates
            status, _ = super().train_step([row_experience(row, self._images) for row in rows], global_step)
            status.update(self.experience_maker.metrics)
        status.update(result_metrics(results, before))
        if self._report is not None:
            self._report.see(summary for one in results for summary in one.summaries)
        self._announce(status)
        return status, global_step + 1

    def save_logs_and_checkpoints(
        self, global_step: int, logs_dict: dict[str, Any] | None = None, client_states: Any = None
    ) -> None:
        """OpenRLHF's method, which both trainers call with all metrics of a step."""
        if self._report is not None:
            numbers = {
                name: float(value) for name, value in (logs_dict or {}).items() if isinstance(value, int | float)
            }
            self._report.update(global_step, numbers)
        super().save_logs_and_checkpoints(global_step, logs_dict, client_states)

    def save_best_checkpoint(self, eval_metrics: dict[str, float], global_step: int, client_states: Any = None) -> None:
        """OpenRLHF's method, which both trainers call with the metrics of an evaluation."""
        if self._report is not None:
            self._report.amend(global_step, eval_metrics)
        super().save_best_checkpoint(eval_metrics, global_step, client_states)

    def _send_version(self) -> None:
        """Tell the engines the version of the weights that they have got."""
        ray.get([engine.__ray_call__.remote(_set_version, self._version) for engine in self.vllm_engines])

    def _ranks(self) -> int:
        """The number of equal parts into which OpenRLHF divides rows; a common multiple if its models differ."""
        args = self.args
        models = {"actor": self.actor_model_group, "critic": self.critic_model_group, "ref": self.reference_model_group}
        groups = [getattr(args, name) for name, group in models.items() if group is not None]
        shared = args.ds.ring_attn_size * args.ds.tensor_parallel_size
        return math.lcm(*(group.num_nodes * group.num_gpus_per_node // shared for group in groups))

    def _multiple(self) -> int:
        """The number of rows must be a multiple of this."""
        args = self.args
        # Batches for log-probabilities and batches for training must both be full.
        return self._ranks() * math.lcm(
            args.rollout.micro_batch_size, updates_per_pass(args) * args.train.micro_batch_size
        )

    def _announce(self, status: dict[str, Any]) -> None:
        if not self._announced and "advantage/turns" in status:
            self._announced = True
            settings = self.args.gem
            shown = acting("gem_openrlhf", lambda name: attrgetter(name)(self.args))
            print(announcement(settings.advantage, settings.gamma, settings.row, status, shown), flush=True)


@ray.remote
class TurnPPOTrainer(_TurnTraining, _PPOTrainer):
    """Synchronous training: OpenRLHF's `PPOTrainer`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.samples_generator = TurnSamplesGenerator.instead_of(self.samples_generator)
        self.prompts_dataloader = self.samples_generator.prompts_dataloader

    def broadcast_to_vllm(self) -> None:
        """Send the weights to the engines, and their version."""
        super().broadcast_to_vllm()
        self._send_version()

    def fit(self, global_step: int = 0) -> None:
        """Train, and close the environments."""
        try:
            super().fit(global_step)
        finally:
            _close_environments(self.vllm_engines)

    def evaluate(self, global_step: int, **generate_kwargs: Any) -> dict[str, float]:
        """OpenRLHF's metrics of an evaluation, and the metrics of its episodes."""
        logs = super().evaluate(global_step, **generate_kwargs)
        own = self.samples_generator.eval_metrics
        for logger in (self.wandb_logger, self.tensorboard_logger):
            if logger:
                logger.log_eval(global_step, own)
        return {**logs, **own}


class _Broadcast(ppo_trainer.BasePPOTrainer):
    """What OpenRLHF's `TrainingActor` calls while no engine begins a batch."""

    _send_version: Callable[[], None]

    def broadcast_to_vllm(self) -> None:
        """Send the weights to the engines, and their version."""
        super().broadcast_to_vllm()
        self._send_version()


@ray.remote
class TurnTrainingActor(_TurnTraining, _TrainingActor, _Broadcast):
    """The training half of asynchronous training: OpenRLHF's `TrainingActor`."""

    _held: HeldSlots | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.args.gem.max_staleness and together(self.args):
            self.rollout_slots = self._held = HeldSlots(self.rollout_slots)

    def train_step(self, rollout_samples: list[Experience], global_step: int) -> tuple[dict[str, Any], int]:
        """Train on a batch, and free its slot."""
        status, step = super().train_step(rollout_samples, global_step)
        self._free_slots(step - global_step)
        return status, step

    def save_best_checkpoint(self, eval_metrics: dict[str, float], global_step: int, client_states: Any = None) -> None:
        """OpenRLHF's method for the metrics of an evaluation. Frees its slot, which no update follows."""
        super().save_best_checkpoint(eval_metrics, global_step, client_states)
        self._free_slots()

    def _free_slots(self, updates: int = 0) -> None:
        if self._held is not None:
            self._held.free(updates)


@ray.remote
class TurnSamplesActor(_GenerateSamplesActor):
    """The sampling half of asynchronous training: OpenRLHF's `GenerateSamplesActor`.

    With partial rollouts, a batch begins as soon as there is a slot for it, while the slowest episodes of those before
    are under way. OpenRLHF's own loop waits for them. It remains where weights cannot change within an episode.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.samples_generator = TurnSamplesGenerator.instead_of(self.samples_generator)
        self.prompts_dataloader = self.samples_generator.prompts_dataloader

    def fit(self, episode: int, total_consumed_prompts: int) -> None:
        """Sample until no task is left, and close the environments."""
        try:
            if together(self.args):
                self._fit_ahead(episode, total_consumed_prompts)
            else:
                super().fit(episode, total_consumed_prompts)
        finally:
            _close_environments(self.samples_generator.vllm_engines)

    def _fit_ahead(self, episode: int, consumed: int) -> None:
        """As OpenRLHF's `fit`, with as many batches under way as there are slots. Each holds its slot, so the queue,
        which has as many places, never blocks a delivery."""
        read = functools.partial(self.samples_generator.read, **self.generate_kwargs)
        ahead = BatchesAhead(read, self._deliver)
        while True:
            slot = self.rollout_slots.actor.get.remote()
            ahead.play(until=slot)
            step: Any = ray.get(slot)
            if self._should_eval(step) and not self._eval_just_done:
                self._evaluate(step, ahead)
                continue
            self._eval_just_done = False
            if responses := self.samples_generator.begin(**self.generate_kwargs):
                consumed += len(responses)
                ahead.add(Batch({*responses}, self._states(episode, consumed)))
            else:  # no task is left; there is one pass over them
                self.rollout_slots.put(step)
                break
        ahead.play()
        self.rollout_queue.put("done")

    def _evaluate(self, step: int, ahead: BatchesAhead) -> None:
        """Evaluate while nothing else is under way and no weights change."""
        self._last_eval_step, self._eval_just_done = step, True
        ray.get(self.vllm_lock.acquire.remote())
        try:
            ahead.play(deliver=False)  # what is over now would train before the result is known
            metrics = self._run_eval()
        finally:
            ray.get(self.vllm_lock.release.remote())
        self.rollout_queue.put(("eval", step, metrics))
        ahead.deliver()

    def _states(self, episode: int, consumed: int) -> dict[str, Any]:
        """What OpenRLHF needs to continue after the tasks that have been drawn."""
        state = self.prompts_dataloader.state_dict()
        return {"episode": episode, "total_consumed_prompts": consumed, "data_loader_state_dict": state}

    def _deliver(self, batch: Batch) -> None:
        seconds = time.monotonic() - batch.began
        self.rollout_queue.put((batch.samples, batch.states, None, seconds))

    def _run_eval(self) -> dict[str, float]:
        return {**super()._run_eval(), **self.samples_generator.eval_metrics}


def _close_environments(engines: list[Any]) -> None:
    closing = [engine.__ray_call__.remote(_close) for engine in engines]
    ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)  # a dead engine has none left to close


def _set_version(engine: Any, version: int) -> None:
    """Runs in an engine."""
    engine.executor.version = version


def _close(engine: Any) -> None:
    """Runs in an engine."""
    engine.executor.close()
