"""The internals of Oat and DeepSpeed that the adapter uses; a failure here shows what a new release changed."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version

import pytest
from deepspeed.runtime.engine import DeepSpeedEngine
from oat import interface
from oat.actors.base import ActorBase
from oat.algorithms.ppo import PPOActor, PPOArgs, PPOLearner
from oat.args import default_args_validation
from oat.collectors.base import FeedbackCollector
from oat.learners.base import LearnerBase
from oat.learners.rl import RLLearner
from oat.types import TransitionData
from oat.utils import ipc
from oat.utils.data import TransitionDataset
from oat.utils.ops import masked_sum

import gem_oat
from gem_core.errors import FrameworkVersionError
from gem_oat.plugin import OAT
from gem_support.sources import parameters, says
from gem_train import is_supported


def test_the_installed_release_is_supported():
    assert is_supported(OAT, version("oat-llm"))
    assert not is_supported(OAT, "0.3.0")
    assert not is_supported(OAT, "0.2.2")


def test_another_release_is_refused_at_load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gem_train.versions.installed_version", lambda spec: "0.3.1")
    with pytest.raises(FrameworkVersionError, match=r"0\.3\.1"):
        _ = gem_oat.run


# -- the program -------------------------------------------------------------------------------------------------------


def test_the_program_takes_classes_and_calls_them():
    assert parameters(interface.get_program) == ["args", "learner_cls", "actor_cls"]
    says(
        interface.get_program,
        "actor_gpus = learner_gpus = available_gpus",
        "learner_world_size = len(learner_gpus) * args.num_groups",
        "num_actors = len(actor_gpus) // args.num_gpus_per_actor",
        "lp.CourierNode(actor_cls, ipc_server, vllm_args, args)",
    )
    says(default_args_validation, "args.max_queries = args.max_train")


def test_the_loop_of_the_learner():
    says(
        LearnerBase.run,
        "self._init(self.args, self.actors)",
        "for processed_prompts, raw_prompts, refs in self.prompts_dataloader",
        "self.collector.collect_feedback(",
        "self.process_feedback_data(feedback_data)",
        "if self.steps % self.update_interval == 0",
        "train_info = self.learn(self.steps // self.update_interval)",
        "self.sync_params_to_actors()",
        "self.eval_and_log(train_info)",
        "self.eval_and_log(train_info, eval=True, save=True)",
        "lp.stop()",
    )
    assert parameters(LearnerBase.eval_and_log) == ["self", "train_info", "eval", "save"]
    assert parameters(LearnerBase.evaluate) == ["self", "dataloader", "steps"]
    assert parameters(LearnerBase.prepare_data) == ["self", "strategy", "tokenizer"]
    assert parameters(RLLearner.process_feedback_data) == ["self", "data_list"]
    says(LearnerBase._init, "self.pi_buffer = deque(maxlen=args.pi_buffer_maxlen_per_device)", "self.prepare_data(")
    says(LearnerBase.eval_and_log, "{**train_info, **eval_info, **self.actor_info, **misc_info}")


def test_the_collectors_calls_to_an_actor():
    says(
        FeedbackCollector.collect_feedback,
        "handle = actor.step(prompts, formatted_prompts)",
        "self.ipc_client.deserialize_ipc(handle)",
        "assert len(feedback_data) % len(prompts) == 0",
        "scatter_object_list(",
    )
    says(FeedbackCollector.get_metrics, "TransitionData", "tree.map_structure", "[p.info for p in feedback_data]")
    assert [one.name for one in dataclasses.fields(TransitionData)] == [
        "prompt",
        "prompt_ids",
        "response",
        "response_ids",
        "response_logprobs",
        "rewards",
        "loss_mask",
        "info",
    ]
    assert parameters(ipc.PlasmaShmClient.serialize_ipc) == ["self", "data"]


def test_an_actor_generates_from_token_ids():
    assert parameters(PPOActor.step) == ["self", "prompts", "formatted_prompts", "references"]
    assert parameters(ActorBase.init) == ["self", "actor_id", "save_path"]
    says(ActorBase.generate, "self.llm.generate( prompt_token_ids=prompts, sampling_params=sampling_params,")
    says(ActorBase.init, "self.eval_sampling_params = vllm.SamplingParams(", "self.llm = vllm.LLM(**self.vllm_args)")


# -- the learning step -------------------------------------------------------------------------------------------------


def test_all_rows_of_a_batch_are_trained_on_together():
    says(
        PPOLearner.learn,
        "dataset = self.dataset_builder( self.pi_buffer, self.tokenizer, self.strategy, )",
        "batch_size=len(dataset)",
        "collate_fn=dataset.collate_fn",
        "infos = self.learning_step(data)",
    )
    says(TransitionDataset.__init__, "self.transitions.append(", '"loss_mask": buffer[i].loss_mask')


def test_a_column_of_oats_tables_is_a_predicted_token():
    """Column 0 is the second token of a row, so `turn_rows` shifts its spans by one."""
    says(TransitionDataset.collate_fn, 'padding_side = "right"')
    says(PPOLearner.learning_step, "response_masks = completion_masks[:, 1:]")


def test_where_advantages_are_computed():
    says(
        PPOLearner.learning_step,
        'final_rewards = ( torch.tensor([r[-1] for r in trajectory["rewards"]])',
        "kl_rewards = -args.kl_penalty_coef",
        "rewards[torch.arange(len(rewards)), eos_indices] += final_rewards.squeeze()",
        "self.compute_ppo_advantages( rewards, input_ids, att_mask, response_masks )",
        "self.compute_monte_carlo_advantages(rewards, response_masks)[ :, None ]",
    )
    says(PPOLearner.compute_ppo_advantages, "return advantages, returns, values")


def test_the_policys_log_probabilities_come_first_and_in_order():
    says(
        PPOLearner.learning_step,
        "batch_logps, _ = self.get_batch_logps( model=self.model,",
        "compute_entropy=False, ) logps[mini_batch_inds, : mb_last_valid_token_pos - 1] = batch_logps",
        "batch_ref_logps, _ = self.get_batch_logps( model=self.ref_model,",
        "self.compute_ppo_advantages(",
        "batch_inds = np.random.permutation(len(input_ids))",
        "mb_logps = logps[mini_batch_inds]",
        "logprobs_diff = new_logps - mb_logps",
    )
    assert parameters(PPOLearner.get_batch_logps) == [
        *("self", "model", "input_ids", "att_mask", "temperature", "compute_entropy"),
    ]


def test_the_loss_matches_the_divisor():
    says(
        PPOLearner.learning_step,
        "pg_losses = -mb_advantage * ratio",
        "pg_loss = self.masked_aggregator(pg_loss_max, mb_response_masks, axis=1)",
        "pg_loss = (pg_loss * mb_loss_masks).mean()",
        "if local_grad_step % self.strategy.grad_acc_step == 0",
        "vf_loss = 0.5 * self.masked_aggregator(",
    )
    assert parameters(masked_sum) == ["values", "mask", "axis", "constant_normalizer"]


def test_an_update_without_a_ratio_still_divides_by_zero():
    """The reason why `reinforce_update` is refused; if this test fails, it can be allowed."""
    says(PPOLearner.learning_step, "kl_v1_sum = 0", "act_num_token = 0", "kl_v1_sum / act_num_token")
    assert PPOArgs().reinforce_update is False


def test_deepspeed_accumulates_the_set_number_of_micro_batches():
    says(
        DeepSpeedEngine.set_train_batch_size,
        "new_gas = train_batch_size // (self.train_micro_batch_size_per_gpu() * self.dp_world_size)",
        "self._config.gradient_accumulation_steps = new_gas",
    )
    says(
        DeepSpeedEngine.is_gradient_accumulation_boundary,
        "(self.micro_steps + 1) %",
        "self.gradient_accumulation_steps() == 0",
    )
