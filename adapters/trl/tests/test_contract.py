"""The internals of TRL that the adapter uses; a failure here shows what a new release changed."""

from __future__ import annotations

import inspect

import torch
from transformers import GenerationMixin
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict


def _parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_constructor_takes_a_rollout_function():
    used = {"model", "reward_funcs", "args", "train_dataset", "eval_dataset", "processing_class", "rollout_func"}
    assert used <= set(_parameters(GRPOTrainer.__init__))


def test_generation_helper():
    assert _parameters(GRPOTrainer._generate_single_turn)[:5] == [
        "self",
        "prompt_ids",
        "images",
        "multimodal_fields",
        "num_generations",
    ]


def test_scoring_is_one_method_of_the_inputs():
    assert _parameters(GRPOTrainer._generate_and_score_completions) == ["self", "inputs"]
    source = inspect.getsource(GRPOTrainer._generate_and_score_completions)
    assert source.index("self._generate(") < source.index("self._calculate_rewards(")
    assert '"advantages": advantages' in source


def test_rollout_function_is_called_with_prompts_and_trainer():
    source = inspect.getsource(GRPOTrainer._generate)
    assert "self.rollout_func(prompts, self)" in source
    assert 'extra_fields.pop("env_mask", None)' in source


def test_checkpoints_are_written_and_read_by_two_methods():
    assert _parameters(GRPOTrainer._save_checkpoint) == ["self", "model", "trial"]
    assert _parameters(GRPOTrainer._load_optimizer_and_scheduler) == ["self", "checkpoint"]


def test_generation_gives_ids_mask_and_configuration():
    source = inspect.getsource(GRPOTrainer._generate_single_turn)
    assert 'generate_inputs = {"input_ids": padded_ids, "attention_mask": attention_mask}' in source
    assert "unwrapped_model.generate(\n" in source
    assert "**generate_inputs, generation_config=self.generation_config" in source


def test_loss_takes_an_advantage_per_token():
    assert "if advantages.dim() == 1" in inspect.getsource(GRPOTrainer._compute_loss)


def test_dr_grpo_divides_by_rows_and_response_limit():
    source = inspect.getsource(GRPOTrainer._compute_loss)
    assert "(per_token_loss.size(0) * self.max_completion_length)" in source


def test_rows_are_shuffled_and_split_together():
    batch = shuffle_sequence_dict({"a": torch.arange(6), "b": torch.arange(12).reshape(6, 2)})
    assert (batch["b"][:, 0] == 2 * batch["a"]).all()
    parts = split_tensor_dict(batch, 3)
    assert [len(part["a"]) for part in parts] == [2, 2, 2]
    # The remainder is dropped silently, which is why rows are padded to whole parts.
    assert sum(len(part["a"]) for part in split_tensor_dict({"a": torch.arange(7)}, 2)) == 6


def test_configuration_fields():
    fields = set(GRPOConfig.__dataclass_fields__)
    assert {
        "steps_per_generation",
        "generation_batch_size",
        "num_generations_eval",
        "vllm_importance_sampling_mode",
        "chat_template_kwargs",
        "max_completion_length",
        "vllm_max_model_length",
    } <= fields


def test_the_generation_that_a_copy_of_the_policy_repeats():
    source = inspect.getsource(GRPOTrainer._generate_single_turn)
    for used in (
        "self._tokenizer.pad_token_id",
        'padding_side="left"',
        "self.pad_to_multiple_of",
        "generation_config=self.generation_config",
        "self.eos_token_ids",
    ):
        assert used in source
    # Log-probabilities are recorded before the division by the temperature.
    processors = inspect.getsource(GenerationMixin._get_logits_processor)
    assert processors.index("(processors, logits_processor)") < processors.index("TemperatureLogitsWarper(")


def test_log_probabilities_for_a_correction():
    found = _parameters(GRPOTrainer._get_per_token_logps_and_entropies)
    assert found[:6] == ["self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size"]
    source = inspect.getsource(GRPOTrainer._compute_loss)
    # The loss is proportional to the advantage, so a weight of 0 or more may be multiplied into it.
    for term in ("coef_1 * advantages", "coef_2 * advantages", "clamped_ratios * advantages"):
        assert term in source
