"""ROLL's agentic pipeline with one advantage per turn."""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import replace
from numbers import Real
from operator import attrgetter
from typing import Any

import ray
import torch
from roll.distributed.scheduler.protocol import DataProto
from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline
from roll.utils.import_utils import safe_import_class

from gem_core.advantages import advantages_and_returns
from gem_core.errors import SettingsError
from gem_core.plugins import manager
from gem_roll._config import GemConfig
from gem_roll._recording import ENTROPIES, BatchRecord
from gem_roll._rows import METADATA, RowMetadata, turn_table
from gem_roll._worker import ACCUMULATION, TurnActorWorker
from gem_roll.settings import ROLLSettings
from gem_train.defaults import acting
from gem_train.metrics import announcement
from gem_train.recording import log_exceptions, needs_token_values, record
from gem_train.report import RunReport
from gem_train.results import result_metrics

Batch = Any
"""ROLL's `DataProto`, whose annotations do not match its content."""

ADVANTAGES = "gem_advantages"
"""Column of a batch: one number per token, kept apart until ROLL has computed its own advantages."""

_EVALUATED = "eval_"
"""Prefix of the names of evaluation metrics."""


class TurnPipeline(AgenticPipeline):
    """ROLL's pipeline, with its own clusters, rollout, weight transfer and loss.

    Advantages are computed as soon as a batch is complete, before rows are copied to fill the batch. In training they
    replace ROLL's advantages. Copies train nothing.

    Args:
        pipeline_config: as `gem_roll.train` completes it.

    Raises:
        SettingsError: a training worker that does not support turns.
    """

    def __init__(self, pipeline_config: GemConfig) -> None:
        _check_worker(pipeline_config.actor_train.worker_cls)
        self._settings = ROLLSettings.of(pipeline_config.gem)
        self._announced = False
        self._memory: dict[str, Any] = {}
        self._record: BatchRecord | None = None
        super().__init__(pipeline_config)
        # A resumed run logs all earlier steps again, but the report already has them.
        wait(self.resume_futures)
        self._train_step = self.actor_train.train_step
        self.actor_train.train_step = self._train_on_turns
        self._log_probs = self.actor_train.compute_log_probs
        self.actor_train.compute_log_probs = self._log_probs_with_entropies
        self._report = self._settings.open_report(pipeline_config.max_steps, self.state.step + 1)
        self.tracker = _Reporting(self.tracker, self._report)

    def run(self) -> None:
        """Train. The report is written at the end and after an error."""
        whole = self.pipeline_config.to_dict()
        record(replace(self._settings, roll={name: value for name, value in whole.items() if name != "gem"}))
        try:
            super().run()
        finally:
            self._report.save()

    def adjust_batch(self, data: Batch, mode: str = "copy") -> Batch:
        """Compute advantages, and fill the batch with copies that train nothing.

        Args:
            data: the rows of whole episodes.
            mode: always `copy`.
        """
        version = data.meta_info["global_step"] * self.pipeline_config.updates_per_batch
        metadata, metrics = _read(data, version)
        self._report.see(summary for one in metadata for summary in one.summaries)
        table = turn_table(metadata, data.non_tensor_batch["traj_id"])
        settings = self._settings
        advantages, returns, found = advantages_and_returns(
            settings.advantage, table.batch(), gamma=settings.gamma, lam=settings.lam, memory=self._memory
        )
        metrics |= found
        rows, length = data.batch["input_ids"].shape
        data.batch[ADVANTAGES] = torch.from_numpy(table.spread(advantages, [(rows, length - 1)])[0])
        data.meta_info["metrics"] = metrics
        filled: Batch = super().adjust_batch(data, mode)
        filled.batch["response_mask"][rows:] = False
        actor = self.pipeline_config.actor_train.training_args
        shares = self._settings.updates * self.actor_train.dp_size * actor.per_device_train_batch_size
        filled.meta_info[ACCUMULATION] = len(filled) // shares
        self._record = None
        if manager.listens("gem_update"):
            self._record = BatchRecord.begin(filled, table, metadata, returns, version)
        self._announce(metrics)
        return filled

    def val(self, global_step: int, trace_meta: Any) -> dict[str, float]:
        """Evaluate. Returns the metrics, with the prefix `eval_`."""
        batch = DataProto(meta_info={"is_offload_states": False, "global_step": global_step, **trace_meta})
        scheduler: Any = self.val_rollout_scheduler
        played: Batch = ray.get(scheduler.get_batch.remote(batch, self.pipeline_config.val_batch_size))
        _, metrics = _read(played)
        DataProto.drop(played)
        found = {f"{_EVALUATED}{name}": value for name, value in metrics.items()}
        self._report.amend(global_step, found)  # the number of updates so far; this step's update comes later
        return found

    def _log_probs_with_entropies(self, batch: Batch, *, blocking: bool, **options: Any) -> Any:
        found = self._log_probs(batch, blocking=blocking, **options)
        # ROLL does not wait for those of a reference model.
        if blocking and self._record is not None and needs_token_values():
            batch.batch[ENTROPIES] = found.batch["entropy"]
        return found

    def _train_on_turns(self, batch: Batch, **options: Any) -> Any:
        batch.batch["advantages"] = batch.batch.pop(ADVANTAGES)
        if self._record is not None:
            with log_exceptions():
                self._record.report(batch)
        return self._train_step(batch, **options)

    def _announce(self, metrics: dict[str, float]) -> None:
        if not self._announced:
            self._announced = True
            settings = self._settings
            shown = acting("gem_roll", lambda name: attrgetter(name)(self.pipeline_config))
            print(announcement(settings.advantage, settings.gamma, settings.row, metrics, shown), flush=True)


class _Reporting:
    """ROLL's tracker, with the report."""

    def __init__(self, tracker: Any, report: RunReport) -> None:
        self._tracker = tracker
        self._report = report

    def log(self, values: dict[str, Any], step: int, **options: Any) -> None:
        """Log the metrics of a step, counted from 0."""
        self._tracker.log(values=values, step=step, **options)
        # The part after `@` says how a metric was averaged; ROLL removes it, too.
        numbers = {name.partition("@")[0]: value for name, value in values.items() if isinstance(value, Real)}
        own = {name: float(value) for name, value in numbers.items() if not name.startswith(_EVALUATED)}
        self._report.update(step + 1, own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracker, name)


def _check_worker(path: Any) -> None:
    """Raise `SettingsError` for a worker that would choose its own number of updates."""
    kind = safe_import_class(path)
    if kind is None or not issubclass(kind, TurnActorWorker):
        raise SettingsError(
            f"actor_train.worker_cls={path} is not a {TurnActorWorker.__name__}. Derive from it, or leave it out."
        )


def _read(batch: Batch, version: int | None = None) -> tuple[list[RowMetadata], dict[str, float]]:
    """The metadata of each row, and the metrics of the episodes, each counted once.

    Args:
        batch: rows of whole episodes.
        version: updates of the policy before this batch.
    """
    metadata = [RowMetadata.decode(text) for text in batch.non_tensor_batch[METADATA]]
    by_episode = dict(zip(batch.non_tensor_batch["traj_id"], metadata, strict=True))
    return metadata, result_metrics(by_episode.values(), version)
