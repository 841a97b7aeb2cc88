"""The internals of verl that the adapter uses; a failure here shows what a new release changed."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transfer_queue
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.checkpoint_engine import CheckpointEngineManager
from verl.experimental.agent_loop import agent_loop
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, AgentLoopWorker
from verl.single_controller.ray import RayWorkerGroup
from verl.trainer import main_ppo
from verl.trainer.ppo import core_algos, padding_utils, ray_trainer
from verl.trainer.ppo.metric_utils import process_validation_metrics
from verl.trainer.ppo.utils import create_rl_dataset, need_critic
from verl.trainer.ppo.v1 import replay_buffer, trainer_base
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import get_dataset_class
from verl.utils.tokenizer import tokenizer
from verl.workers import engine_workers
from verl.workers.engine import base
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput
from verl.workers.utils import losses

from gem_support.sources import parameters, says, source
from gem_verl._images import NO_TEXT
from gem_verl._loop import EnvironmentLoop
from gem_verl._tasks import EnvTasks
from gem_verl._trainer import TurnTrainer

WORKER: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class


# -- starting: launch.py ----------------------------------------------------------------------------------------------


def test_a_task_runner_can_be_replaced():
    assert parameters(main_ppo.run_ppo) == ["config", "task_runner_class"]
    says(
        main_ppo.run_ppo,
        "if not ray.is_initialized()",
        "task_runner_class.remote()",
        "ray.get(runner.run.remote(config))",
    )


def test_the_class_under_ray_remote():
    cls = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class
    assert cls.__name__ == "TaskRunnerV1"
    assert parameters(cls.run)[:2] == ["self", "config"]  # and what Ray adds
    says(
        cls.run, "get_trainer_cls(config.trainer.v1.trainer_mode)", "trainer_cls(config=config)", "self.trainer.init()"
    )
    says(cls.run, "self.init_agent_loop_manager()", "self.trainer.fit(self.agent_loop_manager)")


def test_main_checks_in_this_order():
    says(
        main_ppo.main, "auto_set_device(config)", "validate_config(", "use_reference_policy=", "use_critic=", "run_ppo("
    )


def test_the_configuration_decides_whether_there_is_a_critic():
    for wish in (True, False):
        assert need_critic(SimpleNamespace(critic=SimpleNamespace(enable=wish))) is wish


# -- the data set: tasks.py -------------------------------------------------------------------------------------------


def test_data_set_is_made_with_these_arguments():
    says(create_rl_dataset, "dataset_cls( data_files=data_paths,", "config=data_config,")
    assert {"data_files", "config"} <= {*parameters(EnvTasks.__init__)}
    says(PPOTrainer._init_dataloader, "self.config.data.train_files,", "self.config.data.val_files,")


def test_agent_workers_import_the_data_set_before_they_look_up_a_loop():
    says(AgentLoopWorker.__init__, "self.dataset_cls = get_dataset_class(config.data)")
    says(get_dataset_class, "load_extern_object(data_config.custom_cls.path, data_config.custom_cls.name)")
    says(AgentLoopWorker._run_agent_loop, "assert agent_name in _agent_loop_registry")


def test_the_data_set_that_verl_loads_is_ours(configure):
    assert get_dataset_class(configure().data) is EnvTasks
    assert agent_loop._agent_loop_registry["gem"] == {"_target_": "gem_verl._loop.EnvironmentLoop"}


def test_columns_that_verl_reads():
    says(PPOTrainer._fetch_one_gen_batch, 'batch_dict["uid"]', 'len(batch_dict["raw_prompt"])')
    says(
        WORKER.generate_sequences,
        '"agent_name" not in batch',
        'get_trajectory_info(batch["global_steps"], batch["index"]',
    )
    says(PPOTrainer._validate, 'batch_dict.get("data_source"', 'item.get("ground_truth", None)')


def test_a_validation_before_training_has_the_number_of_the_step_before():
    says(
        PPOTrainer.fit,
        "val_metrics = self._validate()",
        "self.global_steps += 1",
        "val_metrics: dict = self._validate()",
    )


def test_epochs_and_steps():
    says(PPOTrainer._init_dataloader, "len(self.train_dataset) // self.config.data.train_batch_size")
    says(PPOTrainer._init_dataloader, "total_training_steps = self.config.trainer.total_training_steps")
    says(
        PPOTrainer.fit, "current_epoch < self.config.trainer.total_epochs and self.global_steps <= self.total_training"
    )


# -- the agent loop: loop.py, policy.py, runner.py --------------------------------------------------------------------


def test_a_loop_is_built_with_these_arguments():
    says(
        AgentLoopWorker._run_agent_loop, "hydra.utils.instantiate(", "trainer_config=DictConfigWrap(config=self.config)"
    )
    says(AgentLoopWorker._run_agent_loop, "server_manager=self.llm_client", "tokenizer=self.tokenizer")
    says(AgentLoopWorker._run_agent_loop, "agent_loop.run(sampling_params, **kwargs)", "self._agent_loop_postprocess(")
    own = inspect.signature(EnvironmentLoop.__init__).parameters
    assert {*parameters(AgentLoopBase.__init__)} & {*own} >= {"trainer_config", "server_manager", "tokenizer"}
    assert own["kwargs"].kind is inspect.Parameter.VAR_KEYWORD, "for the other arguments"
    assert not inspect.isabstract(EnvironmentLoop)
    assert AgentLoopBase.__abstractmethods__ == {"run"}


def test_a_processor_knows_the_configuration_of_its_model():
    says(AgentLoopWorker._run_agent_loop, "processor=self.processor")
    says(tokenizer.hf_processor, "processor.config = config")
    says(PPOTrainer._setup, "self._init_tokenizer()", "create_resource_pool()")
    says(PPOTrainer._init_tokenizer, "self.processor = model_config.processor")


def test_images_of_a_row_are_cut_by_the_processor_and_its_ids_stay():
    says(WORKER._agent_loop_postprocess, "self._compute_multi_modal_inputs(output, input_ids)", "output.as_dict()")
    cut = AgentLoopWorker._compute_multi_modal_inputs
    says(cut, 'images = multi_modal_data.get("images")', "text=[current_text]", "if output.mm_processor_kwargs is not")
    says(cut, 'multi_modal_inputs.pop("input_ids", None)')
    said = tokenizer.build_multimodal_processor_inputs(
        lambda **given: given, text=["decoded"], images=["image"], mm_processor_kwargs=NO_TEXT
    )
    assert said == {"text": [""], "images": ["image"], "videos": None, "return_tensors": "pt"}


def test_workers_have_a_function_for_positions_on_several_axes():
    for module in (base, engine_workers):
        assert module.maybe_fix_3d_position_ids is tensordict_utils.maybe_fix_3d_position_ids
    says(base.BaseEngine.infer_batch, "maybe_fix_3d_position_ids(data)", "self.forward_backward_batch(")
    says(PPOTrainer._setup, "self.ref_policy_wg = ")
    assert isinstance(RayWorkerGroup.workers, property)


def test_servers_take_images_and_biases():
    assert inspect.signature(LLMServerClient.generate).parameters["image_data"].default is None
    path = Path(inspect.getfile(LLMServerClient)).with_name("vllm_rollout") / "vllm_async_server.py"
    text = path.read_text()  # without vLLM it cannot be imported
    assert 'multi_modal_data["image"] = image_data' in text
    assert "SamplingParams(max_tokens=max_tokens, **sampling_params)" in text
    assert "prompt_ids = qwen2_5_vl_dedup_image_tokens(prompt_ids, self.model_config.processor)" in text


def test_a_loop_gets_session_and_step():
    says(WORKER._run_prompt, "for i in range(n)", "session_id=i, **prompt")
    says(PPOTrainer._next_train_batch, 'tu.assign_non_tensor_data(batch, "global_steps", self.global_steps)')
    says(PPOTrainer._validate, 'tu.assign_non_tensor_data(batch, "global_steps", self.global_steps)')


def test_an_exception_in_a_loop_would_not_stop_verl():
    says(
        WORKER._run_prompt, "session_errors = await _settle_session_tasks(tasks)", "logger.error(", 'status = "failure"'
    )


def test_requests_to_servers_and_their_answers():
    signature = inspect.signature(LLMServerClient.generate).parameters
    assert [*signature][:4] == ["self", "request_id", "prompt_ids", "sampling_params"]
    required = [name for name, one in signature.items() if one.default is one.empty and one.kind is one.KEYWORD_ONLY]
    assert required == ["prompt_ids", "sampling_params"]
    assert {"token_ids", "log_probs", "extra_fields"} <= {*TokenOutput.model_fields}
    says(LLMServerClient.generate, 'output.extra_fields.get("global_steps")')


def test_sampling_parameters():
    says(WORKER.generate_sequences, "temperature=config.temperature", "logprobs=config.calculate_log_probs")


def test_a_list_of_outputs_is_stored_row_by_row():
    says(WORKER._agent_loop_postprocess, "output if isinstance(output, list) else [output]", "enumerate(outputs)")
    says(WORKER._agent_loop_postprocess, 'keys.append(f"{uid}_{session_id}_{i}")', "field = output.as_dict()")
    says(WORKER._agent_loop_postprocess, 'field["loss_mask"] = field["response_mask"]')


def test_only_reward_and_reward_info_are_copied_from_the_last_row():
    text = source(WORKER._agent_loop_postprocess)
    copied = re.findall(r"output\.(\S+) = final_output\.(\S+)", text)
    assert copied == [
        ("reward_score", "reward_score"),
        ('extra_fields["reward_extra_info"]', 'extra_fields["reward_extra_info"]'),
    ]


def test_rewards_of_rows_are_not_computed_again():
    says(AgentLoopWorker._compute_score, "if final_output.reward_score is None and enable_async_reward")


def test_fields_of_a_stored_output():
    fields = {"prompt_ids", "response_ids", "response_mask", "response_logprobs", "reward_score", "num_turns"}
    assert fields | {"metrics", "extra_fields"} <= {*AgentLoopOutput.model_fields}
    made = AgentLoopOutput(
        prompt_ids=[1],
        response_ids=[2, 3],
        response_mask=[1, 0],
        response_logprobs=[-1.0, 0.0],
        reward_score=4.0,
        metrics=AgentLoopMetrics(generate_sequences=1.0),
        extra_fields={"turns": [(0, 0, 1)]},
    ).as_dict()
    assert {name: value.tolist() for name, value in made.items() if isinstance(value, torch.Tensor)} == {
        "prompts": [1],
        "responses": [2, 3],
        "response_mask": [1, 0],
        "rollout_log_probs": [-1.0, 0.0],
        "rm_scores": [0.0, 4.0],
    }
    assert made["extra_fields"] == {"turns": [(0, 0, 1)]}
    assert "num_turns" not in made, "what is not set is left out, so that rows without turns set it"


def test_versions_of_weights_are_read_from_the_rows():
    says(WORKER._agent_loop_postprocess, '"min_global_steps": field["extra_fields"].get("min_global_steps")')
    says(PPOTrainer._compute_metrics, 'tag["max_global_steps"] for tag in batch.tags', "num_turns")


def test_agent_workers_can_run_a_function():
    says(agent_loop.AgentLoopManager._init_agent_loop_workers, "self.agent_loop_workers.append(")
    says(AgentLoopManagerTQ, "self.agent_loop_workers_class = AgentLoopWorkerTQ")


# -- rows and their storage: storage.py -------------------------------------------------------------------------------


def test_transfer_queue():
    assert parameters(transfer_queue.kv_batch_get) == ["keys", "partition_id", "select_fields"]
    assert parameters(transfer_queue.kv_batch_put)[:4] == ["keys", "partition_id", "fields", "tags"]
    batch = KVBatchMeta(keys=["a", "b"], tags=[{"x": 1}, {}], partition_id="train")
    assert (len(batch), batch.extra_info, batch.tags[0]) == (2, {}, {"x": 1})
    batch.reorder([1, 0])
    assert batch.keys == ["b", "a"]


def test_padding_rows_copy_the_first_and_are_marked():
    row = {
        "prompts": torch.ones(2, dtype=torch.int64),
        "responses": torch.ones(3, dtype=torch.int64),
        "extra_fields": {"turns": [(0, 0, 3)]},
        "num_turns": 1,
    }
    copy, tag = padding_utils.construct_minimal_padding_template(row, {"seq_len": 5}, 7)
    assert copy["extra_fields"] == row["extra_fields"], "so that the adapter has to ignore it"
    assert tag["is_padding"] is True
    assert copy["response_mask"].tolist() == copy["loss_mask"].tolist() == [0]
    assert copy["rm_scores"].tolist() == [0.0]
    says(
        padding_utils.upsample_batch_to_divisible_size,
        'pad_keys.append(f"{pad_uid}_{local_idx}_0")',
        "batch.keys + pad_keys",
    )


# -- the trainer: trainer.py ------------------------------------------------------------------------------------------


def test_trainers_are_registered_by_name():
    assert trainer_base.get_trainer_cls("gem") is TurnTrainer
    assert trainer_base.get_trainer_cls("sync") is PPOTrainerSync


def test_servers_may_have_devices_of_their_own():
    says(trainer_base.get_trainer_cls, "TRAINER_REGISTRY[name]")
    says(PPOTrainer._setup, 'getattr(self, "_enable_hybrid_replicas", True)', "LLMServerManager.create_empty(")
    says(PPOTrainerSeparateAsync._setup, "super()._setup()", "self.standalone_server_manager")
    says(PPOTrainerSeparateAsync.on_init_end, "self.standalone_checkpoint_manager.update_weights(self.global_steps)")
    says(PPOTrainerSeparateAsync.on_step_end, "self.standalone_checkpoint_manager.update_weights(self.global_steps)")
    manager = CheckpointEngineManager.update_weights
    says(manager, "self.abort_replicas()", "self.build_process_group(rollout)", "self.resume_generation_replicas()")


def test_the_name_sync_decides_what_is_synchronous():
    for method in ("_build_replay_buffer", "_init_dataloader", "_load_checkpoint", "_save_checkpoint"):
        assert re.search(r'self\.trainer_mode [!=]= "sync"', source(getattr(PPOTrainer, method))), method
    says(PPOTrainer.__init__, "self.trainer_mode = self.config.trainer.v1.trainer_mode", "self._build_replay_buffer()")
    names = re.findall(r"trainer_mode [!=]= (\S+?)[\s:)]", inspect.getsource(trainer_base))
    assert {*names} == {'"sync"'}


def test_the_replay_buffer_polls():
    assert "poll_interval" in parameters(replay_buffer.ReplayBuffer.__init__)
    says(replay_buffer.ReplayBuffer._wait_for_next_poll, "time.sleep(self.poll_interval)")
    says(replay_buffer.ReplayBuffer.sample, "self._wait_for_next_poll(partition_id, last_debug_time)")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("init", ["self"]),
        ("fit", ["self", "agent_loop_manager"]),
        ("_compute_advantage", ["self", "batch", "metrics"]),
        ("_update_critic", ["self", "batch", "metrics"]),
        ("_update_actor", ["self", "batch", "metrics"]),
        ("_get_required_batch_multiple", ["self", "dp_size"]),
        ("_compute_metrics", ["self", "batch", "metrics", "timing_raw", "global_steps", "epoch"]),
        (
            "_val_metrics_update",
            ["self", "data_sources", "sample_uids", "reward_extra_infos_dict", "sample_turns", "expected_acc_counts"],
        ),
    ],
)
def test_methods_that_are_overridden(method, arguments):
    assert parameters(getattr(PPOTrainerSync, method)) == arguments
    assert method in vars(TurnTrainer)


def test_a_step_calls_them_in_this_order():
    says(
        PPOTrainer._step_once,
        "self.replay_buffer.sample(",
        "self._balance_batch(",
        "self._compute_old_log_prob(",
        "self._compute_values(",
        "batch = self._compute_advantage(batch, metrics=metrics)",
        "batch = self._update_critic(batch, metrics=metrics)",
        "batch = self._update_actor(batch, metrics=metrics)",
    )


def test_advantages_come_from_the_registry():
    says(PPOTrainer._compute_advantage, "compute_advantage_for_multi_trajectories(", "batch_keys=batch.keys")
    says(PPOTrainer._compute_advantage, "adv_estimator=self.config.algorithm.adv_estimator", '"advantages", "returns"')
    says(compute_advantage_for_multi_trajectories, "if adv_estimator != core_algos.AdvantageEstimator.GRPO: return")
    assert "gem" not in {one.value for one in core_algos.AdvantageEstimator}
    says(
        ray_trainer.compute_advantage,
        "core_algos.get_adv_estimator_fn(adv_estimator)",
        '"token_level_rewards"',
        '"response_mask"',
    )
    says(ray_trainer.compute_advantage, "advantages, returns = adv_estimator_fn(**adv_kwargs)")


def test_the_kl_penalty_is_subtracted_token_by_token():
    says(ray_trainer.apply_kl_penalty, "token_level_rewards = token_level_scores - beta * kld")


def test_rows_are_filled_up_to_the_multiple():
    says(
        PPOTrainer._balance_batch,
        "self._get_required_batch_multiple(dp_size)",
        "upsample_batch_to_divisible_size(batch,",
    )


def test_splitting_and_dividing_are_two_numbers():
    for method, call in (
        (PPOTrainer._update_actor, "self.actor_rollout_wg.update_actor(batch)"),
        (PPOTrainer._update_critic, "self.critic_wg.train_mini_batch(batch)"),
    ):
        says(method, "ppo_mini_batch_size * self.config.actor_rollout_ref.rollout.n", '"global_batch_size": ppo_mini')
        says(method, '"mini_batch_size": ppo_mini_batch_size', "batch.extra_info.update(extra_info)", call)
    worker = engine_workers.TrainingWorker.train_mini_batch
    says(worker, 'mini_batch_size = tu.pop(data, key="mini_batch_size"', "mini_batch_size=mini_batch_size_per_gpu")
    assert "global_batch_size" not in source(worker), "it reaches the loss as it is"
    says(engine_workers.ActorRolloutRefWorker.update_actor, "self.actor.train_mini_batch(data=data)")


def test_the_losses_divide_by_the_global_batch():
    says(
        losses.ppo_loss,
        '["global_batch_size"] = data["global_batch_size"]',
        '["loss_scale_factor"] = config.loss_scale',
    )
    says(losses.value_loss, 'global_batch_size = data["global_batch_size"]', '"response_mask"', "compute_value_loss(")
    says(transformer_impl.FSDPEngine.forward_backward_batch, 'batch_num_tokens = data["loss_mask"].sum()')


def test_aggregations():
    losses_, mask = torch.tensor([[1.0, 2.0, 4.0], [8.0, 0.0, 0.0]]), torch.tensor([[1, 1, 1], [1, 0, 0]])
    whole = {"global_batch_size": 5, "batch_num_tokens": 8, "loss_scale_factor": 10}

    def total(mode: str) -> float:
        return core_algos.agg_loss(losses_, mask, mode, **whole).item()

    assert total("token-mean") == pytest.approx(15 / 8)
    assert total("token-sum") == pytest.approx(15)
    assert total("seq-mean-token-sum") == pytest.approx(15 / 5)
    assert total("seq-mean-token-sum-norm") == pytest.approx(15 / 5 / 10)
    assert total("seq-mean-token-mean") == pytest.approx((7 / 3 + 8) / 5), "the one that counts long rows for less"
    # A separate micro-batch adds up to the same.
    parts = [
        core_algos.agg_loss(losses_[i : i + 1], mask[i : i + 1], "seq-mean-token-sum-norm", **whole) for i in (0, 1)
    ]
    assert sum(parts).item() == pytest.approx(15 / 5 / 10)


def test_values_are_at_the_token_that_they_estimate():
    from verl.workers.utils.padding import response_from_nested

    def jagged(*rows: list[float]) -> torch.Tensor:
        return torch.nested.as_nested_tensor([torch.tensor(row) for row in rows], layout=torch.jagged)

    # A prompt of two tokens and a response of three: the value before the first response token is the prompt's last.
    values = response_from_nested(jagged([0.0, 1.0, 2.0, 3.0, 4.0]), jagged([1.0, 1.0, 1.0]))
    assert values.unbind()[0].tolist() == [1.0, 2.0, 3.0]


def test_validation_makes_no_metric_of_texts_and_skips_missing_fields():
    infos = {"acc": [1.0, None, 0.0], "gem": ["{}", "{}", "{}"], "reward": [1.0, 2.0, 3.0]}
    found = process_validation_metrics(["env"] * 3, ["a", "b", "c"], infos)
    assert {*found["env"]} == {"acc", "reward"}
    assert found["env"]["acc"]["mean@1"] == 0.5
    says(PPOTrainer._validate, 'extra_field.get("reward_extra_info", {})', "return self._val_metrics_update(")


def test_nothing_else_decides_what_a_mode_is():
    """`trainer.v1.gem` is read while the mode has its own name; after that, `trainer.v1.sync`."""
    says(PPOTrainer.__init__, "self.config.trainer.v1.get(self.trainer_mode, {})")


def test_nested_rows_of_one_length_stay_nested():
    rows = torch.nested.as_nested_tensor([torch.ones(2), torch.ones(2)], layout=torch.jagged)
    table = TensorDict({"x": rows}, batch_size=2)["x"]
    assert table.is_nested
    assert np.array_equal(table.to_padded_tensor(0.0).numpy(), np.ones((2, 2)))
