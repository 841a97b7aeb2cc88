"""The internals of OpenRLHF and DeepSpeed that the adapter uses; a failure here shows what a new release changed."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from deepspeed.runtime.engine import DeepSpeedEngine
from openrlhf.models import PolicyLoss, aggregate_loss
from openrlhf.trainer import ppo_trainer, ppo_trainer_async
from openrlhf.trainer.ppo_trainer import BasePPOTrainer, compute_eval_metrics, prepare_datasets
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.length_penalty import apply_length_penalties
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator, _collect_prompt_batch
from openrlhf.trainer.ray import launcher, ppo_actor, ppo_critic, vllm_engine
from openrlhf.utils import agent, loss_utils
from openrlhf.utils.config import hierarchize
from openrlhf.utils.deepspeed import DeepspeedStrategy

from gem_openrlhf import GemAgentExecutor
from gem_openrlhf._actors import plain_class
from gem_openrlhf._checks import AT_LEAST_ONE, FIXED, OURS
from gem_openrlhf._launcher import COMMAND
from gem_support.sources import parameters, says

ENGINE = plain_class(vllm_engine.RolloutRayActor)
TRAINER = plain_class(ppo_trainer.PPOTrainer)
ASYNCHRONOUS = plain_class(ppo_trainer_async.PPOTrainerAsync)
TRAINING = plain_class(ppo_trainer_async.TrainingActor)
SAMPLING = plain_class(ppo_trainer_async.GenerateSamplesActor)
POLICY = plain_class(ppo_actor.PolicyModelActor)
CRITIC = plain_class(ppo_critic.CriticModelActor)


# -- starting: launcher.py, checks.py ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command() -> str:
    spec = importlib.util.find_spec(COMMAND)
    assert spec
    assert spec.origin
    return Path(spec.origin).read_text()


def test_replaced_names_are_looked_up_when_the_command_runs(command: str):
    says(command, "from openrlhf.trainer.ray.ppo_actor import PolicyModelActor")
    says(command, "from openrlhf.trainer.ray.ppo_critic import CriticModelActor")
    says(
        command,
        "def train(args):",
        "if not ray.is_initialized():",
        "from openrlhf.trainer.ppo_trainer_async import PPOTrainerAsync as PPOTrainer",
        "from openrlhf.trainer.ppo_trainer import PPOTrainer",
        "PPOTrainer.remote(",
    )
    says(ASYNCHRONOUS.__init__, "GenerateSamplesActor.remote(", "TrainingActor.remote(")


def test_arguments_can_be_changed_between_parsing_and_the_commands_own_checks(command: str):
    says(
        command,
        "args = parser.parse_args()",
        "from openrlhf.utils.config import hierarchize",
        "args = hierarchize(args)",
        "if args.train.agent_func_path: args.reward.remote_url",
        'if args.algo.advantage.estimator not in ["gae"]: args.critic.model_name_or_path = None',
        "args.rollout.vllm_generate_batch_size = args.rollout.batch_size",
        "train(args)",
    )
    assert parameters(hierarchize) == ["args"]


def test_flags_in_the_checks_exist(arguments):
    args = arguments()
    for name in [*FIXED, *AT_LEAST_ONE, *(flag.removeprefix("--") for flag in OURS)]:
        section, _, field = name.partition(".")
        if section != "gem":
            found = getattr(args, section)
            for part in field.split("."):
                assert hasattr(found, part), name
                found = getattr(found, part)
    for name, (needed, _) in FIXED.items():
        found: Any = args
        for part in name.split("."):
            found = getattr(found, part)
        assert found == needed, "the default is what is needed"


# -- tasks ------------------------------------------------------------------------------------------------------------


def test_a_data_set_is_a_file_with_these_columns():
    from openrlhf.datasets.prompts_dataset import PromptDataset, preprocess_data

    says(prepare_datasets, "args.data.prompt_dataset,", "args.eval.dataset,")
    says(preprocess_data, "prompt = data[input_key]", 'label = "" if label_key is None else data[label_key]')
    says(PromptDataset.__init__, 'data.get("datasource", "default")')


def test_steps():
    says(prepare_datasets, "len(prompts_dataset) * args.rollout.n_samples_per_prompt // args.train.batch_size")
    says(TRAINER.fit, "for episode in range(start_episode, self.args.train.num_episodes)")


def test_tasks_are_read_in_order_from_a_loader_of_ours():
    assert parameters(DeepspeedStrategy.setup_dataloader)[1:6] == [
        "replay_buffer",
        "batch_size",
        "pin_memory",
        "shuffle",
        "collate_fn",
    ]
    assert parameters(SamplesGenerator.__init__) == [
        "self",
        "strategy",
        "prompts_dataloader",
        "eval_dataloader",
        "tokenizer",
        "vllm_engines",
    ]
    for trainer in (TRAINER, SAMPLING):
        says(trainer.__init__, "self.prompts_dataloader, self.eval_dataloader, self.max_steps = prepare_datasets(")
        says(trainer.__init__, "self.samples_generator = SamplesGenerator(")
        says(trainer.fit, "self.samples_generator.generate_samples(**self.generate_kwargs)")
        says(trainer.fit, "self.prompts_dataloader.state_dict()")


# -- the agent: agent.py, policy.py, rows.py --------------------------------------------------------------------------


def test_an_agent_is_loaded_and_called_like_this():
    says(vllm_engine._load_agent_executor, "agent_module.AgentExecutor", "return agent_executor_cls()")
    says(ENGINE.generate_responses, "self.executor.execute(", "llm_engine=self", "for _ in range(num_samples)")
    assert parameters(agent.AgentExecutorBase.execute) == parameters(GemAgentExecutor.execute)
    assert agent.AgentExecutorBase.__abstractmethods__ == {"execute"}
    assert inspect.iscoroutinefunction(ENGINE.generate_responses)


def test_an_exception_of_an_agent_stops_openrlhf():
    says(ENGINE.generate_responses, "return await asyncio.gather(*tasks)")
    says(SamplesGenerator._generate_vllm, "for response in ray.get(ref)")


def test_requests_to_an_engine_and_its_answers():
    assert parameters(ENGINE.generate)[:3] == ["self", "prompt_token_ids", "sampling_params"]  # and what Ray adds
    says(ENGINE.generate, "TokensPrompt(prompt_token_ids=prompt_token_ids)", "deepcopy(sampling_params)")


def test_sampling_parameters():
    says(
        SamplesGenerator._dispatch_prompts_to_vllm,
        'max_tokens=generate_kwargs.get("max_new_tokens")',
        'min_tokens=generate_kwargs.get("min_new_tokens", 1)',
        "logprobs=1 if",
        'truncate_length = generate_kwargs.get("max_len", 2048)',
        "max_length=truncate_length",
    )


def test_a_response_is_a_sample():
    says(
        SamplesGenerator._generate_vllm,
        "self._process_response_into_experience(response, **generate_kwargs)",
        "e.scores[0].item()",
        "if experiences: accepted_experiences.extend(experiences)",
    )
    says(SamplesGenerator.generate_samples, "self.args.rollout.batch_size * self.args.rollout.n_samples_per_prompt")
    generator = SamplesGenerator.__new__(SamplesGenerator)
    from gem_openrlhf._rows import EpisodeRows, response

    made = generator._process_response_into_experience(response("p", "l", EpisodeRows()), max_len=8)
    assert made.scores.tolist() == [0.0]
    assert made.info.keys() == {"reward", "score", "response_clip_ratio"}


# -- evaluation -------------------------------------------------------------------------------------------------------


def test_evaluation():
    says(compute_eval_metrics, "prompt_to_datasource[prompt] = datasource", "all_rewards.append(s.rewards)")
    says(TRAINER.evaluate, "self.samples_generator.generate_eval_samples(", "compute_eval_metrics(")
    says(SAMPLING._run_eval, "self.samples_generator.generate_eval_samples(", "compute_eval_metrics(", "return logs")
    says(SAMPLING.fit, "eval_metrics = self._run_eval()")
    for trainer in (TRAINER, TRAINING):
        says(trainer.fit, "self.save_best_checkpoint(eval_")
        says(trainer.fit, "self.save_logs_and_checkpoints(global_step, status, client_states)")
    assert parameters(BasePPOTrainer.save_best_checkpoint)[:3] == ["self", "eval_metrics", "global_step"]
    assert parameters(BasePPOTrainer.save_logs_and_checkpoints)[:3] == ["self", "global_step", "logs_dict"]


# -- batches under way together: ahead.py, and TurnSamplesActor -------------------------------------------------------


def test_each_batch_holds_a_slot_until_the_training_takes_it():
    says(
        ASYNCHRONOUS.__init__,
        "self.rollout_queue = Queue(maxsize=queue_size)",
        "self.rollout_slots = Queue(maxsize=queue_size)",
        "for _ in range(queue_size): self.rollout_slots.put(0, block=True)",
    )
    says(
        TRAINING.fit,
        "payload = self.rollout_queue.get(block=True)",
        'if payload == "done": break',
        "_, eval_step, eval_metrics = payload",
        "rollout_samples, client_states, filter_pass_rate, generation_time = payload",
        "self.rollout_slots.put(global_step, block=True)",
        "status, global_step = self.train_step(rollout_samples, global_step)",
    )
    says(
        SAMPLING.fit,
        "if self._should_eval(global_step) and not self._eval_just_done:",
        'self.rollout_queue.put(("eval", global_step, eval_metrics), block=True)',
        '"episode": episode, "total_consumed_prompts": total_consumed_prompts, "data_loader_state_dict": ',
        'self.rollout_queue.put("done", block=True)',
    )
    assert parameters(_collect_prompt_batch) == ["dataloader_iter", "num_prompts"]
    says(_collect_prompt_batch, "return prompts, labels, images, exhausted")
    says(SamplesGenerator._dispatch_prompts_to_vllm, "for idx, (prompt, label, img) in enumerate(", "return refs")


# -- a step: trainer.py, experience.py --------------------------------------------------------------------------------


def test_a_step_goes_through_the_experience_maker_and_all_ranks():
    assert parameters(BasePPOTrainer.train_step)[:3] == ["self", "rollout_samples", "global_step"]  # and what Ray adds
    says(
        BasePPOTrainer.train_step,
        "self.experience_maker.make_experience_batch(rollout_samples)",
        'experiences[0].info["reward"][0]',
        'method_name="append", experience=experiences',
        'method_name="append", experience=experiences',  # for the critic
        "self.ppo_train(global_step)",
        "self.broadcast_to_vllm()",
        "return status, global_step + 1",
    )
    for trainer in (TRAINER, TRAINING):
        says(trainer.fit, "status, global_step = self.train_step(rollout_samples, global_step)")
        says(trainer.fit, 'status["timing/generation"] = generation_time')


def test_the_experience_maker():
    says(
        RemoteExperienceMaker.make_experience_batch,
        "self.split_rollout_samples(rollout_samples)",
        "self.make_experience(samples_list)",
        "self.compute_advantages_and_returns(experiences)",
    )
    says(RemoteExperienceMaker.make_experience, "use_reward_model = samples_list[0].rewards is None", "samples.kl = kl")
    says(
        BasePPOTrainer.__init__,
        "self.experience_maker = RemoteExperienceMaker( self.actor_model_group, self.critic_model_group, "
        "self.reward_model_group, self.reference_model_group, self.kl_ctl, self.strategy, tokenizer, )",
    )


def test_we_apply_all_changes_that_openrlhf_makes_to_rewards():
    says(
        RemoteExperienceMaker.compute_advantages_and_returns,
        "apply_length_penalties(experiences, args)",
        "compute_reward( reward, self.kl_ctl.value, experience.kl,",
        "reward_clip_range=args.reward.clip_range",
        'experience.info["return"]',
        "experience.kl = None",
    )
    says(apply_length_penalties, "apply_overlong_penalty(", "apply_stop_properly_penalty(")


def test_lists_in_info_go_through_joining():
    parts = [Experience(sequences=torch.ones(1, size), info={"x": [[size]]}) for size in (2, 3)]
    joined = Experience.concat_experiences(parts, 0)
    assert joined.info == {"x": [[2], [3]]}
    assert joined.sequences.tolist() == [[1, 1, 0], [1, 1, 1]]


def test_rows_are_divided_among_ranks_in_equal_parts():
    says(
        launcher.RayActorGroup.async_run_method_batch,
        "effective_actors = num_actors // self.duplicate_actors",
        "chunk_size = total_length // effective_actors",
    )
    says(RemoteExperienceMaker.split_rollout_samples, "batch_size = self.args.rollout.micro_batch_size")


# -- updates: workers.py ----------------------------------------------------------------------------------------------


def test_averages_divide_by_the_number_of_trained_tokens():
    says(
        ppo_actor.ActorPPOTrainer.ppo_train,
        "status = self.training_step(experience, kl_ctl, step, loss_batch_info)",
        'n_tokens = status["num_action_tokens"]',
        "merged_status[k] = value / denom",
    )
    says(ppo_critic.CriticPPOTrainer.training_step, "masked_mean(values, experience.action_mask)")
    says(RemoteExperienceMaker.make_experience, "masked_mean(logprobs_diff, samples.action_mask, dim=-1)")
    says(PolicyLoss.forward, "ppo_kl = masked_mean(-raw_policy_log_ratio.detach(), action_mask, dim=None)")
    says(DeepspeedStrategy.all_reduce, "return data.item() if not is_tensor else data")  # which raises for 0


@pytest.mark.parametrize("trainer", [ppo_actor.ActorPPOTrainer, ppo_critic.CriticPPOTrainer])
def test_micro_batches_of_an_update(trainer: Any):
    says(
        trainer.ppo_train,
        "batch_size=self.replay_buffer.sample_batch_size",
        "drop_last=True",
        "iter_grad_accum_global_norm( pbar, self.strategy, self.strategy.accumulated_gradient, lambda e: e.action_mask",
    )
    says(loss_utils.iter_grad_accum_global_norm, "gas = max(int(accumulated_gradient), 1)", "if len(window) == gas:")


def test_workers():
    says(POLICY.fit, "self.trainer.ppo_train(kl_ctl)", "self.trainer.replay_buffer.clear()")
    says(CRITIC.fit, "self.trainer.ppo_train()", "self.trainer.replay_buffer.clear()")
    says(CRITIC.append, "self.trainer.replay_buffer.append(experience)")
    says(POLICY.init_model_from_pretrained, "self.actor, self.actor_optim, self.actor_scheduler = strategy.prepare(")
    says(CRITIC.init_model_from_pretrained, "self.critic, self.critic_optim, self.critic_scheduler = strategy.prepare(")
    assert "returns" not in inspect.getsource(ppo_actor.ActorPPOTrainer), "so they may be NaN"


def test_deepspeed_updates_at_multiples_of_the_number_of_micro_batches():
    says(DeepSpeedEngine.set_train_batch_size, "self._config.gradient_accumulation_steps = new_gas")
    says(
        DeepSpeedEngine.is_gradient_accumulation_boundary,
        "(self.micro_steps + 1) % self.gradient_accumulation_steps() == 0",
    )


def test_the_loss_has_the_numbers_of_the_experience_maker():
    says(
        ppo_actor.ActorPPOTrainer.training_step,
        "old_action_log_probs = experience.action_log_probs",
        "advantages = experience.advantages",
        "self.actor_loss_fn( action_log_probs, old_action_log_probs, advantages, action_mask=experience.action_mask,",
    )


def test_the_loss_is_a_sum_over_the_tokens_of_an_update():
    loss, mask = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[1, 0, 1], [0, 0, 0]])
    assert aggregate_loss(loss, mask, batch_num_tokens=8.0).item() == 4.0 / 8.0
    assert PolicyLoss().token_level_loss
    assert not PolicyLoss(policy_loss_type="gspo").token_level_loss
