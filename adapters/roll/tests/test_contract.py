"""The internals of ROLL that the adapter uses; a failure here shows what a new commit changed."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recorded import AGGREGATIONS, COLUMNS, DEFAULTS, ESTIMATORS, GENERATING, LENGTH, TENSORS

from gem_roll._completion import ALGORITHM, SAMPLING
from gem_roll.checks import FIXED, OF_MANAGERS
from gem_roll.plugin import ROLL
from gem_support.sources import parameters, says
from gem_train import installed_version, require

pytestmark = pytest.mark.needs_roll

HOME = Path(os.environ.get("ROLL_HOME", "."))
YAML = Path(__file__).parents[3] / "examples" / "roll_guess_the_number_gpu.yaml"


def test_the_clone_has_the_tested_commit():
    require(ROLL)
    assert installed_version(ROLL) == "0.3.0"
    head = subprocess.run(["git", "-C", str(HOME), "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode == 0:  # unknown for a clone without history
        assert head.stdout.strip() == "8eb27cc2dc34c4d1310b169d9b86d339004d811a"


# -- the configuration: config.py, completion.py, checks.py ----------------------------------------------------------


def hint(name: str) -> Any:
    from roll.configs.base_config import PPOConfig

    return typing.get_type_hints(PPOConfig)[name]


def test_defaults_and_choices_are_as_recorded():
    from roll.configs.generating_args import GeneratingArguments
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    defaults = {one.name: one.default for one in dataclasses.fields(AgenticConfig)}
    assert {name: defaults[name] for name in DEFAULTS} == DEFAULTS
    sampling = {one.name: one.default for one in dataclasses.fields(GeneratingArguments)}
    assert {name: sampling[name] for name in GENERATING} == GENERATING
    assert typing.get_args(hint("adv_estimator")) == ESTIMATORS
    assert "rebn" not in ESTIMATORS  # ROLL refuses unknown names
    assert typing.get_args(hint("loss_agg_mode")) == AGGREGATIONS


def test_every_setting_in_the_checks_exists():
    from roll.pipeline.agentic.agentic_config import AgenticConfig, EnvManagerConfig

    def check(kind: Any, name: str) -> None:
        first, _, rest = name.partition(".")
        hints = typing.get_type_hints(kind)
        assert first in hints, f"{kind.__name__} has no {first}"
        if rest:
            options = [one for one in (*typing.get_args(hints[first]), hints[first]) if dataclasses.is_dataclass(one)]
            check(options[0], rest)

    for name in (
        *FIXED,
        *ALGORITHM,
        "step_reward_gamma",
        "loss_agg_mode",
        "train_infer_correction.is_weight.weight_type",
    ):
        check(AgenticConfig, name)
    for name in (*OF_MANAGERS, *(f"generating_args.{one}" for one in SAMPLING), "num_env_groups", "group_size"):
        check(EnvManagerConfig, name)


def test_roll_drops_unknown_sections_and_we_do_not():
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    from gem_roll._config import GemConfig

    assert {*GemConfig.__dataclass_fields__} - {*AgenticConfig.__dataclass_fields__} == {"gem"}


def test_roll_accepts_completed_configurations_and_schedules_over_updates():
    from dacite import from_dict
    from omegaconf import OmegaConf
    from roll.configs.base_config import BaseConfig
    from roll.distributed.strategy.fsdp2_strategy import FSDP2TrainStrategy

    from gem_cpu import roll as cpu
    from gem_roll import compose
    from gem_roll._completion import completed
    from gem_roll._config import GemConfig
    from gem_roll.checks import check

    # ROLL divides the steps of a run by its ranks, and counts an update for each.
    says(BaseConfig.set_max_steps, 'setattr(attribute.training_args, "max_steps", max_steps)')
    says(FSDP2TrainStrategy, "self.worker_config.training_args.max_steps // self.worker.rank_info.dp_size")
    flags = [
        *cpu.overrides(ranks=3),
        "pretrain=none",
        "+gem.updates=2",
        f"logging_dir={os.environ['ROLL_LOG_DIR']}",
    ]
    given: Any = OmegaConf.to_container(compose(YAML, flags), resolve=True)
    config = from_dict(data_class=GemConfig, data=completed(given, check(given)))
    config.set_max_steps(10)
    assert config.actor_train.training_args.max_steps // 3 == 20
    assert config.gem["updates"] == 2
    assert config.train_env_manager.max_traj_per_env == 1
    assert not config.enable_reference
    assert config.enable_old_logprobs_recompute


# -- starting: launch.py ----------------------------------------------------------------------------------------------


def test_rolls_own_start_does_the_same_steps():
    text = re.sub(r"\s+", " ", (HOME / "examples" / "start_agentic_pipeline.py").read_text())
    steps = [
        "from_dict(data_class=AgenticConfig",
        "init()",
        "pipeline_cls(pipeline_config=ppo_config)",
        "pipeline.run()",
    ]
    at = [text.index(step) for step in steps]
    assert at == sorted(at)


# -- the pipeline: pipeline.py ----------------------------------------------------------------------------------------


def test_a_batch_is_adjusted_between_its_rollout_and_its_advantages():
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline

    assert parameters(AgenticPipeline.adjust_batch) == ["self", "data", "mode"]
    assert parameters(AgenticPipeline.val) == ["self", "global_step", "trace_meta"]
    says(
        AgenticPipeline.run,
        "self.executor.submit(self.val, global_step,",
        "self.train_rollout_scheduler.get_batch.remote(batch, self.pipeline_config.rollout_batch_size)",
        "metrics.update(val_metrics)",
        "batch = compute_discounted_returns(",
        "batch = self.adjust_batch(batch, mode=self.pipeline_config.batch_adjust_mode)",
        'metrics.update(reduce_metrics(batch.meta_info.pop("metrics", {})))',
        "compute_response_level_rewards(",
        "compute_token_reward(",
        "batch = agentic_compute_advantage(",
        "self.actor_train.train_step(batch, blocking=False)",
        "compute_train_data_metrics(batch=batch)",
        "self.tracker.log(values=metrics, step=global_step)",
    )


def test_a_resumed_run_logs_earlier_steps_again():
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline
    from roll.pipeline.base_pipeline import BasePipeline

    says(BasePipeline.__init__, "for metrics in self.state.log_history: self.tracker.log(")
    says(BasePipeline.__init__, "self.resume_futures.append(self.executor.submit(resume_metrics))")
    says(AgenticPipeline.run, "if global_step <= self.state.step")


def test_copies_come_after_the_batch():
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline

    says(
        AgenticPipeline.adjust_batch,
        "training_args.per_device_train_batch_size * self.pipeline_config.actor_train.training_args."
        "gradient_accumulation_steps * self.actor_train.dp_size",
        "if threshold == 0: return data",
        'metrics = data.meta_info.get("metrics", {})',
        "adjusted_batch = DataProto.concat([data, dup_proto])",
        'adjusted_batch.meta_info["metrics"] = metrics',
    )


# -- the worker: worker.py --------------------------------------------------------------------------------------------


def test_an_update_has_the_set_number_of_micro_batches():
    from roll.distributed.scheduler.decorator import BIND_WORKER_METHOD_FLAG
    from roll.distributed.strategy.fsdp2_strategy import FSDP2TrainStrategy
    from roll.pipeline.base_worker import ActorWorker

    from gem_roll._worker import TurnActorWorker

    says(
        ActorWorker.train_step,
        "per_device_train_batch_size * self.worker_config.training_args.gradient_accumulation_steps",
        "mini_batch_size=backward_batch_size",
        "self.strategy.train_step(batch=backward_batch, loss_func=self.loss_func)",
    )
    says(
        FSDP2TrainStrategy.train_step,
        "loss_scale = mini_steps * self.worker.rank_info.dp_size",
        "gradient_accumulation_steps = self.worker_config.training_args.gradient_accumulation_steps",
        "loss *= loss_scale",
        "loss = loss / gradient_accumulation_steps",
    )
    # ROLL still decides how a cluster distributes the batch.
    flags = [getattr(one.train_step, BIND_WORKER_METHOD_FLAG) for one in (TurnActorWorker, ActorWorker)]
    assert flags[0] == flags[1]


def test_only_these_modes_weight_all_tokens_equally():
    import torch
    from roll.utils.functionals import agg_loss

    from gem_roll.checks import AGGREGATIONS as ALLOWED

    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]])
    for mode in AGGREGATIONS:
        loss = torch.where(mask > 0, 1.0, 0.0).requires_grad_()
        agg_loss(loss, mask, mode).backward()
        weights = loss.grad[mask > 0] if loss.grad is not None else torch.zeros(0)
        assert (weights.max() - weights.min() < 1e-7) == (mode in ALLOWED)


# -- the rollout: env_manager.py, policy.py, rows.py -----------------------------------------------------------------


def test_a_manager_has_our_arguments_and_methods():
    from roll.pipeline.agentic.env_manager.base_env_manager import BaseEnvManager
    from roll.pipeline.agentic.env_manager.traj_env_manager import TrajEnvManager
    from roll.pipeline.agentic.environment_worker import EnvironmentWorker

    from gem_roll._env_manager import TurnEnvManager

    given = [
        "worker_config",
        "pipeline_config",
        "env_config",
        "tokenizer",
        "generate_scheduler",
        "output_queue",
        "thread_lock",
        "mode",
    ]
    assert parameters(TrajEnvManager.__init__)[1:9] == given == parameters(TurnEnvManager.__init__)[1:9]
    says(
        EnvironmentWorker.initialize,
        'safe_import_class(env_config["env_manager_cls"])',
        *(f"{one}=" for one in given[:4]),
    )
    says(EnvironmentWorker.run_rollout_loop, "env_manager.run_rollout_loop(data_proto)")
    assert {"current_step", "running"} <= {*vars(BaseEnvManager())}
    says(BaseEnvManager.stop, "self.running = False")


def test_the_queue_is_called_as_by_rolls_managers():
    from roll.distributed.scheduler.rollout_scheduler import GroupQueueManager
    from roll.pipeline.agentic.env_manager.traj_env_manager import TrajEnvManager

    kind = GroupQueueManager.__ray_metadata__.modified_class
    assert parameters(kind.get_episode_id)[:3] == ["self", "group_id", "env_id"]
    assert parameters(kind.put)[:6] == ["self", "group_id", "episode_id", "start_step", "rollout", "env_id"]
    says(
        TrajEnvManager.run_rollout_loop, "self.output_queue.put.remote(", "start_step, None, self.env_config['env_id']"
    )
    # For ROLL's manager, a truncated episode is not over.
    says(TrajEnvManager.run_rollout_loop, "if self.running and (rollout_cache.terminated or stop_reason ==")


def test_a_batch_has_whole_steps():
    """Task numbers rely on this: all managers play equally many episodes per step, and older ones are discarded."""
    from roll.distributed.scheduler.rollout_scheduler import GroupQueue
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    says(AgenticConfig.__post_init__, "traj_per_env = (self.rollout_batch_size + train_env_num - 1) // train_env_num")
    says(
        GroupQueue.advance_step, "if step - group.create_step > self.async_generation_ratio", "self._advance_step(step)"
    )


def test_a_batch_takes_the_oldest_group_of_each_queue():
    """So no group expires before it is trained on, and `async_generation_ratio` bounds the age of its tokens."""
    from roll.distributed.scheduler.rollout_scheduler import GroupQueue, GroupQueueManager
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    says(GroupQueue.advance_step, "for _ in range(self.async_generation_ratio): self._advance_step(step)")
    says(GroupQueue.get, "episode_id = next(iter(self.groups))", "len(group.rollouts) >= self.group_size")
    manager = GroupQueueManager.__ray_metadata__.modified_class
    says(manager.get_batch, "if not self.pending_gets:", "for group_id in self.group_queue if", "return ret")
    says(AgenticConfig.__post_init__, "self.train_env_manager.max_traj_per_env = traj_per_env")


def test_the_step_of_a_request_is_the_version_of_its_weights():
    """Weights change when no request is under way; managers know the step before requests are admitted again."""
    from roll.distributed.scheduler.rollout_scheduler import RolloutScheduler
    from roll.distributed.scheduler.router import RouterClient, RouterManager
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline

    says(
        AgenticPipeline.run,
        "self.train_rollout_scheduler.suspend.remote()",
        "self.model_update(global_step)",
        "self.train_rollout_scheduler.get_batch.remote(",
    )
    says(
        RolloutScheduler.suspend,
        "self.router_manager.suspend.remote()",
        "self.router_manager.abort_all.remote()",
        "self.router_manager.wait_complete.remote()",
    )
    says(
        RolloutScheduler._get_batch_impl,
        "self.es_manager.update_step(global_step",
        "self.env_output_queue.advance_step.remote(global_step)",
        "self.router_manager.resume.remote()",
    )
    says(RouterManager.on_send_request, "while self.need_suspend: await self.suspend_notifier.wait()")
    says(RouterManager.wait_complete, "while len(self.inflight_requests) > 0")
    says(
        RouterClient.generate_request,
        "await self.proxy.on_send_request(request_id)",
        "await self.proxy.generate_request(payload=payload, request_id=request_id, uid=uid)",
        "await self.proxy.on_request_routed(request_id)",
    )
    says(RouterClient._postprocess_generate, 'setdefault("metrics", {}).update(response["metrics"])')


def test_the_router_answers_with_ids():
    from roll.distributed.scheduler.router import RouterClient, RouterManager, is_report_data_finished

    assert parameters(RouterClient.generate_request) == ["self", "req", "request_id", "uid"]
    assert parameters(RouterManager.create_client_sync) == ["self"]
    says(
        RouterClient._preprocess_generate,
        'generation_config["eos_token_id"] = [self.eos_token_id, self.pad_token_id]',
        'payload["input_ids"] = input_ids[0]',
    )
    names = ["finish_reasons", "output_token_ids", "output_logprobs"]
    says(RouterClient._postprocess_generate, *(f'output_data.meta_info["{name}"]' for name in names))
    says(is_report_data_finished, 'finish_reason == "abort"')


def test_rows_are_as_recorded():
    """From ROLL's own managers: one turn, with log-probabilities."""
    from roll.pipeline.agentic.env_manager.base_env_manager import RolloutCache
    from roll.pipeline.agentic.env_manager.step_env_manager import StepEnvManager

    manager: Any = StepEnvManager.__new__(StepEnvManager)
    manager.pipeline_config = SimpleNamespace(sequence_length=LENGTH)
    manager.tokenizer = SimpleNamespace(pad_token_id=0)
    manager.rollout_cache = RolloutCache(env_id=0, group_id=0, tag="one", step=1)
    manager.rollout_cache.history = [
        {"prompt_ids": [1, 2], "response_ids": [3], "infer_logprobs": [-1.0], "reward": 1.0, "state_hash": "x"}
    ]
    rows = manager.formulate_rollouts(manager.rollout_cache)
    assert {name: (str(one.dtype), one.shape[1]) for name, one in rows.batch.items()} == TENSORS
    assert {*rows.non_tensor_batch.keys()} == COLUMNS
    # The token after each position, as in our rows.
    assert rows.batch["infer_logprobs"][0, :3].tolist() == [0.0, -1.0, 0.0]
