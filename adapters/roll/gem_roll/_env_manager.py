"""ROLL's environment manager: one thread per environment, each playing episode after episode."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import ray
from roll.distributed.scheduler.protocol import DataProto
from roll.distributed.scheduler.router import RouterManager
from roll.pipeline.agentic.env_manager.base_env_manager import BaseEnvManager
from tensordict import TensorDict

from gem_core.vector import TaskTable
from gem_roll._config import GemConfig
from gem_roll._policy import EngineProxy, RouterPolicy, Stopped
from gem_roll._rows import columns, tensors, training_rows
from gem_roll._shared_runner import SharedRunner, shared_runner
from gem_roll.settings import Mode, ROLLSettings, split_of
from gem_train.playing import build_runner
from gem_train.results import EpisodeResult
from gem_train.rollout import Episode, EpisodeRunner, end_token_ids
from gem_train.settings import Split


class TurnEnvManager(BaseEnvManager):
    """Plays through gem-core. The trained ids are the sampled ids. An environment that fails, hangs or truncates ends
    only its own episode.

    ROLL's environment worker gives the arguments.
    """

    def __init__(
        self,
        worker_config: Any,
        pipeline_config: GemConfig,
        env_config: dict[str, Any],
        tokenizer: Any,
        generate_scheduler: Any,
        output_queue: Any,
        thread_lock: Any,
        mode: Mode = "train",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self._worker = worker_config
        self._config: Any = pipeline_config
        self._settings = ROLLSettings.of(pipeline_config.gem)
        self._split: Split = split_of(mode)
        self._env: int = env_config["env_id"]
        self._group: int = env_config["group_id"]
        self._tokenizer = tokenizer
        self._router = generate_scheduler
        self._queue = output_queue
        episodes = pipeline_config.rollout_batch_size if mode == "train" else pipeline_config.val_batch_size
        self._tasks = episodes // worker_config.group_size
        self._played = 0

    def run_rollout_loop(self, data: DataProto) -> None:
        """Play until ROLL ends the rollout.

        Args:
            data: ROLL's request. Its seed is not used, because `gem.seed` decides the tasks.

        Raises:
            EnvFailure: a failure that must stop the run; see `FailurePolicy`.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError, TemplateError: as `build_runner`.
        """
        self.running = True
        first: int | None = None
        with shared_runner(self._split, self._build) as runner:
            policy = self._policy(end_token_ids(runner.template, self._tokenizer))
            while (number := self._next()) is not None:
                started = self.current_step
                if first is None:  # ROLL tells the step before the first number, and maybe after this loop began
                    first = started * self._tasks if self._split == "train" else 0
                task_id = first + number * self._worker.num_env_groups + self._group
                if self._split == "train" and task_id >= self._config.max_steps * self._tasks:
                    continue  # with an asynchronous queue, ROLL asks for batches after the last one
                try:
                    rollout = self._play(runner, policy, task_id)
                except Stopped:
                    break
                self._put(number, started, rollout)
        self._put(number, self.current_step, None)

    def _policy(self, ends: Collection[int]) -> RouterPolicy:
        client, updates = RouterManager.create_client_sync(self._router), self._config.updates_per_batch
        client.proxy = EngineProxy(client.proxy, ends, lambda: self.current_step * updates)
        return RouterPolicy(client, self._worker.generating_args.to_dict(), self._env, lambda: self.running)

    def _next(self) -> int | None:
        number: Any = ray.get(self._queue.get_episode_id.remote(self._group, self._env))
        return number

    @functools.cached_property
    def _table(self) -> TaskTable:
        return TaskTable(self._settings.weights(self._split), self._tasks)

    def _build(self) -> EpisodeRunner:
        settings, config = self._settings, self._config
        rollout = settings.rollout(self._worker.generating_args.max_new_tokens, config.sequence_length)
        managers = min(self._worker.max_env_num_per_worker, self._worker.num_env_groups * self._worker.group_size)
        return build_runner(settings, self._split, self._tokenizer, rollout, settings.concurrent(self._split, managers))

    def _play(self, runner: SharedRunner, policy: RouterPolicy, task_id: int) -> DataProto:
        if self._split == "eval":
            task_id %= self._tasks  # every evaluation plays the same tasks
        return self._rollout(runner.play(policy, self._table[task_id]), task_id)

    def _rollout(self, episodes: Sequence[Episode], task_id: int) -> DataProto:
        played = [
            (EpisodeResult(None if one is None else one.summary()), training_rows(one, self._settings.row))
            for one in episodes or [None]
        ]
        rows = [row for _, own in played for row in own]
        # A manager that is faster than the others may play several episodes of a task.
        self._played += 1
        name = f"{self._split}-{task_id}"
        numbered = f"{name}-{self._env}-{self._played}"
        return DataProto(
            batch=TensorDict(
                tensors(rows, self._config.sequence_length, self._tokenizer.pad_token_id), batch_size=len(rows)
            ),
            non_tensor_batch=columns(
                played,
                env_id=self._table[task_id].env_id,
                env=self._env,
                group=self._group,
                episode=numbered,
                task_name=name,
            ),
            meta_info={"metrics": {}},
        )

    def _put(self, number: int | None, started: int, rollout: DataProto | None) -> None:
        ray.get(self._queue.put.remote(self._group, number, started, rollout, self._env))
