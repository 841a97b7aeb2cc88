"""TRL's configuration with the settings of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.utils import logging
from trl import GRPOConfig

from gem_core.errors import SettingsError
from gem_core.registry import advantage_spec
from gem_train.checks import SILENT, check_aggregation, check_rows, check_sampling
from gem_train.processor import computes_bf16
from gem_train.settings import FailureShare, Seconds
from gem_trl.settings import TRLSettings

logger = logging.get_logger(__name__)

_LOSS_TYPES = ("dr_grpo", "dapo", "cispo")
_DECLARED = TRLSettings.declared()


@dataclass
class TurnGRPOConfig(GRPOConfig, TRLSettings):
    """`GRPOConfig` for environments of many turns; every field of TRL keeps its meaning.

    Each process plays `per_device_train_batch_size * steps_per_generation` episodes for a batch, one in each
    environment. `max_completion_length` limits one response, not the episode. Without an accelerator, training runs on
    the CPU in float32 and stores activations instead of computing them again.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
    """

    # TRL's own fields of the same names: keyword-only, otherwise they would come before `output_dir`.
    seed: int = field(default=GRPOConfig.seed, kw_only=True, metadata=_DECLARED["seed"].metadata)
    chat_template_kwargs: dict[str, Any] | str | None = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict[str, Any], kw_only=True, metadata=_DECLARED["chat_template_kwargs"].metadata
    )
    # A string on a command line.
    env_kwargs: dict[str, Any] | str | None = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict[str, Any], kw_only=True, metadata=_DECLARED["env_kwargs"].metadata
    )
    # On a command line, the transformers parser reads these as texts: otherwise it would refuse `None`.
    env_timeout: Seconds | str | None = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=TRLSettings.env_timeout, kw_only=True, metadata=_DECLARED["env_timeout"].metadata
    )
    max_env_failure_share: FailureShare | str | None = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=TRLSettings.max_env_failure_share,
        kw_only=True,
        metadata=_DECLARED["max_env_failure_share"].metadata,
    )
    # Other defaults than TRL's, which would change the algorithm.
    loss_type: str = field(default="dr_grpo", metadata={"help": "Sum over tokens with a constant normalizer."})
    num_generations: int | None = field(
        default=2, metadata={"help": "Episodes per task, for the estimators that compare them (grpo, drgrpo, rloo)."}
    )
    num_generations_eval: int | None = field(default=1, metadata={"help": "Episodes per task in an evaluation."})
    vllm_importance_sampling_mode: str = field(
        default="token_truncate",
        metadata={"help": "Correction for vLLM's log-probabilities; per token, because a row has many responses."},
    )

    def __post_init__(self) -> None:
        for name in ("env_timeout", "max_env_failure_share"):
            setattr(self, name, self._number_or_none(name))
        TRLSettings.__post_init__(self)
        if not torch.accelerator.is_available():
            self._choose_for_cpu()
        if hasattr(self, "activation_checkpointing") and self.activation_checkpointing is None:
            # TRL gives its default the older name, of which transformers warns.
            self.activation_checkpointing = self.gradient_checkpointing
        if self.generation_batch_size is None and self.steps_per_generation is None:
            self.steps_per_generation = self.gradient_accumulation_steps
        self._check_groups()
        GRPOConfig.__post_init__(self)
        self._check()

    @property
    def run_folder(self) -> str | None:
        """The folder of the run: `report`, or the output folder."""
        return self.report or self.output_dir

    @property
    def response_tokens(self) -> int:
        """Token limit of one response."""
        if self.max_completion_length is None:
            raise SettingsError("max_completion_length is not set: give the token limit of one response")
        return self.max_completion_length

    @property
    def episodes_per_process(self) -> int:
        """Number of episodes that one process plays for a batch."""
        return self.per_device_train_batch_size * (self.steps_per_generation or 1)

    @property
    def group_size(self) -> int:
        """Episodes that start from one seed: `num_generations` where the estimator compares them, otherwise 1."""
        return self.num_generations if advantage_spec(self.advantage).needs_groups and self.num_generations else 1

    @property
    def batches_ahead(self) -> int:
        """How many batches the sampling may run ahead of the training, within `max_staleness`."""
        updates = math.ceil((self.steps_per_generation or 1) * self.num_iterations / self.gradient_accumulation_steps)
        return self.batches_within_bound(updates, "steps_per_generation or num_iterations")

    @property
    def whole_batches(self) -> int:
        """After each multiple of this number of updates, every batch is trained on whole."""
        batch, update = (self.steps_per_generation or 1) * self.num_iterations, self.gradient_accumulation_steps
        # TRL's sampler repeats the placeholder prompts for each episode of a group. Then the Hugging Face trainer
        # begins anew, and its last update before has what is left.
        whole = batch * (self.num_generations or 1)
        return math.ceil(whole / update) if whole % update else batch // math.gcd(batch, update)

    def described(self) -> dict[str, Any]:
        """All settings by name, without tokens of the hub."""
        return self.to_dict()

    def _number_or_none(self, name: str) -> Any:
        value = getattr(self, name)
        if not isinstance(value, str):
            return value
        try:
            return None if value.lower() == "none" else float(value)
        except ValueError:
            raise SettingsError(f"{self.spelled(name, value)} is not a number, and not None") from None

    def _choose_for_cpu(self) -> None:
        self.use_cpu, self.bf16, self.gradient_checkpointing = True, bool(self.bf16), False
        if self.bf16 and not computes_bf16():
            logger.warning("bf16=True makes training many times slower: this processor has no bfloat16 arithmetic")

    def _check_groups(self) -> None:
        # Before TRL's own check, whose message is about prompts, which do not exist here.
        episodes = self.generation_batch_size or self.episodes_per_process
        self.check_groups(self.num_generations or 1, f"num_generations={self.num_generations}")
        if not advantage_spec(self.advantage).needs_groups:
            # TRL requires groups; if the estimator has none, any size that divides the batch works.
            self.num_generations = next((size for size in range(2, episodes + 1) if episodes % size == 0), 2)
            return
        if episodes % self.group_size:
            raise SettingsError(
                f"{episodes} episodes (per_device_train_batch_size x steps_per_generation) cannot be divided into "
                f"groups of num_generations={self.num_generations}. Change one so that it divides the other."
            )

    def _check(self) -> None:
        self.check_names([name for name in self.owned if getattr(self, name) is not None])
        self.check()
        if self.episodes_per_process % self.group_size:
            raise SettingsError(
                f"groups cannot span processes, and {self.episodes_per_process} episodes of one process cannot be "
                f"divided into groups of num_generations={self.num_generations}"
            )
        if self.max_steps <= 0:
            raise SettingsError(
                f"max_steps={self.max_steps}: environments have no epochs, so give the number of updates"
            )
        self._check_whole_batches()
        check_aggregation(f"loss_type={self.loss_type!r}", self.loss_type, _LOSS_TYPES)
        self._check_sampling()
        self._check_rows()
        self._check_ahead()
        if self.mask_truncated_completions:
            raise SettingsError(
                "mask_truncated_completions=True drops a whole row because of its last response. Truncated responses "
                f"are invalid actions here, which the environment's reward reflects. {SILENT} Leave it out."
            )
        for name, kept in (("reward_weights", None), ("multi_objective_aggregation", "sum_then_normalize")):
            if (found := getattr(self, name)) != kept:
                raise SettingsError(
                    f"{self.spelled(name, found)} has no effect, because advantages come from the environments' "
                    "rewards alone. Leave it out."
                )
        if self.scale_rewards != "group":
            raise SettingsError(
                f"scale_rewards={self.scale_rewards!r} has no effect, because the estimator decides the scale. "
                f"Use advantage='drgrpo' for GRPO without the standard deviation. {SILENT}"
            )

    def _check_whole_batches(self) -> None:
        several = self.whole_batches
        # A share of all updates, as the Hugging Face trainer reads it.
        save = self.save_steps if self.save_steps >= 1 else math.ceil(self.max_steps * self.save_steps)
        reasons = {
            f"max_steps={self.max_steps}": (self.max_steps, "the rest of the last batch would not be trained on"),
            f"save_steps={self.save_steps}": (
                save if self.save_strategy == "steps" and save < self.max_steps else several,
                "no checkpoint has the rest of a batch, so a run that resumes would not train on it",
            ),
        }
        for written, (steps, reason) in reasons.items():
            if steps % several:
                raise SettingsError(
                    f"{written} is not a multiple of {several}, and only after {several} updates every batch is "
                    f"trained on whole (steps_per_generation={self.steps_per_generation} x num_iterations="
                    f"{self.num_iterations} passes, gradient_accumulation_steps={self.gradient_accumulation_steps}): "
                    f"{reason}. Use a multiple of {several}."
                )

    def _check_sampling(self) -> None:
        names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
        check_sampling({name: getattr(self, name) for name in names}, self.spelled, scaled=True)
        options: Any = self.generation_kwargs or {}
        check_sampling(options, lambda name, value: f"generation_kwargs={{{name!r}: {value!r}}}", scaled=True)
        if options.get("temperature", self.temperature) != self.temperature:
            raise SettingsError(
                f"the trainer divides its logits by temperature={self.temperature}, but generation_kwargs has "
                f"temperature {options['temperature']}. {SILENT} Set temperature only."
            )

    def _check_ahead(self) -> None:
        stale, correction = (
            self.spelled("max_staleness", self.max_staleness),
            self.spelled("correction", self.correction),
        )
        reasons = {
            "use_vllm": "TRL gives vLLM the newest weights before each call",
            "use_transformers_continuous_batching": "TRL has no continuous batching with a copy of the weights",
            "cast_lm_head_to_fp32": "it replaces a method of the head, which a copy of the model would share",
            "deepspeed": "the weights are divided among processes",
            "fsdp": "the weights are divided among processes",
        }
        for name, reason in reasons.items():
            if self.max_staleness and getattr(self, name, None):
                raise SettingsError(f"{stale} cannot be used with {name}: {reason}. Leave out one of them.")
        if self.max_staleness and self.world_size > 1:
            raise SettingsError(f"{stale} works in one process, and there are {self.world_size}. Leave it out.")
        _ = self.batches_ahead
        if self.correction != "none" and not (self.use_vllm or self.max_staleness):
            raise SettingsError(
                f"{correction} compares the sampler with the trainer, and here the trainer itself samples. Leave it "
                "out, or set max_staleness or use_vllm."
            )
        if self.correction != "none" and self.use_vllm and self.vllm_importance_sampling_correction:
            raise SettingsError(
                f"{correction} and TRL's vllm_importance_sampling_correction=True correct the same twice. Set TRL's to "
                "False, or leave ours out."
            )

    def _check_rows(self) -> None:
        correction = self.vllm_importance_sampling_mode
        across = {
            "importance_sampling_level='sequence'": self.importance_sampling_level == "sequence",
            f"vllm_importance_sampling_mode={correction!r}": correction.startswith("sequence"),
            f"off_policy_mask_threshold={self.off_policy_mask_threshold}": self.off_policy_mask_threshold is not None,
        }
        check_rows(self, across)
        for name in ("beta", "log_completions"):
            if self.row == "turn" and (value := getattr(self, name)):
                raise SettingsError(f"{name}={value!r} counts rows, and a row is a turn. {SILENT} Use row='episode'.")
