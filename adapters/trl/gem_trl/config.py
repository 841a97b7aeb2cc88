"""The settings of a run: TRL's own, and what this adapter adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from trl import GRPOConfig

from gem_core.errors import SettingsError
from gem_core.failures import DEFAULT_TIMEOUT, ErrorAction, FailurePolicy
from gem_core.registry import advantage_spec

_LOSS_TYPES = ("dr_grpo", "dapo", "cispo")


@dataclass
class TurnGRPOConfig(GRPOConfig):
    """`GRPOConfig` for environments of many turns; every flag of TRL's stays what it is.

    `per_device_train_batch_size * steps_per_generation` episodes are played per process for each batch, one in each
    environment. `max_completion_length` limits one response, not the episode. Without an accelerator it runs on the
    CPU in float32 and keeps activations instead of computing them again.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
    """

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [*GRPOConfig._VALID_DICT_FIELDS, "env_kwargs"]

    env: list[str] = field(
        default_factory=list[str], metadata={"help": "Environment ids to train on; several take turns."}
    )
    env_weights: list[float] = field(
        default_factory=list[float],
        metadata={"help": "Shares of the environments in `env`, in the same order; equal ones by default."},
    )
    env_kwargs: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Keyword arguments for all environments; as text, a JSON object."}
    )
    eval_env: list[str] = field(
        default_factory=list[str], metadata={"help": "Environment ids to evaluate on; by default those of `env`."}
    )
    eval_episodes: int = field(default=128, metadata={"help": "Episodes of one evaluation, over all processes."})
    advantage: str = field(
        default="rebn",
        metadata={"help": "Estimator: reinforce, rebn, rebn_loo, grpo, drgrpo, rloo, gae, or a plugin's `name:id`."},
    )
    gamma: float = field(default=1.0, metadata={"help": "Discount per turn."})
    view: Literal["episode", "turn"] = field(
        default="episode",
        metadata={
            "help": "`episode`: a training row is a whole episode (needs full history). `turn`: a row is a turn."
        },
    )
    history: int | None = field(
        default=None, metadata={"help": "Observations in a prompt: None for all, k for the last k."}
    )
    system_prompt: str | None = field(default=None, metadata={"help": "System message of every conversation."})
    max_context_tokens: int | None = field(
        default=None,
        metadata={"help": "Episodes that might outgrow this end truncated; by default the model's own limit."},
    )
    truncated_is_invalid: bool = field(
        default=True, metadata={"help": "A response cut off by the token limit is an empty action."}
    )
    plugins: list[str] = field(
        default_factory=list[str],
        metadata={"help": "Plugins that may decide (gem_make_env, gem_env_error) and listen in this run."},
    )
    vector_backend: Literal["sync", "thread", "process", "ray"] = field(
        default="thread",
        metadata={
            "help": "`sync` for environments that answer at once, `thread` for those that wait, `process` for those "
            "that compute, hang or crash, `ray` for several machines."
        },
    )
    vector_workers: int | None = field(
        default=None, metadata={"help": "Threads, processes or Ray actors that share the environments of a process."}
    )
    env_timeout: float | None = field(
        default=DEFAULT_TIMEOUT, metadata={"help": "Seconds that one reset or step may take; None waits for ever."}
    )
    env_retries: int = field(
        default=0, metadata={"help": "How often a failed episode is brought back in a fresh environment."}
    )
    env_failure: Literal["truncate", "drop", "raise"] = field(
        default="truncate", metadata={"help": "What becomes of an episode whose environment failed for good."}
    )
    max_env_failure_share: float | None = field(
        default=0.5,
        metadata={"help": "The run stops once more than this share of an environment's last 40 episodes failed."},
    )
    min_generation_batch: int | None = field(
        default=None,
        metadata={
            "help": "Sample once so many prompts are ready, while slower environments are at work. By default all "
            "are waited for, because what transformers samples depends on who shares a batch, and so on timing."
        },
    )

    # TRL's defaults that would change the algorithm.
    loss_type: str = field(default="dr_grpo", metadata={"help": "Sum over tokens with a constant normaliser."})
    num_generations: int | None = field(
        default=2, metadata={"help": "Episodes per task, for the estimators that compare them (grpo, drgrpo, rloo)."}
    )
    num_generations_eval: int | None = field(default=1, metadata={"help": "Episodes per task in an evaluation."})
    vllm_importance_sampling_mode: str = field(
        default="token_truncate",
        metadata={"help": "Correction for vLLM's log-probabilities; per token, as a row holds many responses."},
    )

    def __post_init__(self) -> None:
        for name in ("env", "eval_env", "plugins"):
            if isinstance(value := getattr(self, name), str):
                setattr(self, name, [value])
        if not torch.accelerator.is_available():
            self.use_cpu, self.bf16, self.gradient_checkpointing = True, bool(self.bf16), False
        if self.generation_batch_size is None and self.steps_per_generation is None:
            self.steps_per_generation = self.gradient_accumulation_steps
        self._check_groups()
        super().__post_init__()
        self._check()

    @property
    def response_tokens(self) -> int:
        """Token limit of one response."""
        if self.max_completion_length is None:
            raise SettingsError("max_completion_length is not set: say how many tokens one response may have")
        return self.max_completion_length

    @property
    def episodes_per_process(self) -> int:
        """Episodes that one process plays for a batch."""
        return self.per_device_train_batch_size * (self.steps_per_generation or 1)

    @property
    def failures(self) -> FailurePolicy:
        """What becomes of environments that fail."""
        return FailurePolicy(
            self.env_timeout, self.env_retries, ErrorAction(self.env_failure), self.max_env_failure_share
        )

    @property
    def group_size(self) -> int:
        """Episodes that start from one seed: `num_generations` where the estimator compares them, otherwise 1."""
        return self.num_generations if advantage_spec(self.advantage).needs_groups and self.num_generations else 1

    def _check_groups(self) -> None:
        # Before TRL's own check, whose message speaks of prompts that do not exist here.
        episodes = self.generation_batch_size or self.episodes_per_process
        if not advantage_spec(self.advantage).needs_groups:
            # TRL insists on groups; without them any size that divides the batch will do.
            self.num_generations = next((size for size in range(2, episodes + 1) if episodes % size == 0), 2)
            return
        if self.num_generations is None or self.num_generations < 2:
            raise SettingsError(
                f"advantage={self.advantage!r} compares episodes of a task, so num_generations={self.num_generations} "
                "cannot work. Use at least 2, or an estimator without groups such as 'rebn'."
            )
        if episodes % self.num_generations:
            raise SettingsError(
                f"{episodes} episodes (per_device_train_batch_size x steps_per_generation) cannot be divided into "
                f"groups of num_generations={self.num_generations}. Change one so that it divides the other."
            )

    def _check(self) -> None:
        if self.episodes_per_process % self.group_size:
            raise SettingsError(
                f"groups do not span processes, and {self.episodes_per_process} episodes of one process cannot be "
                f"divided into groups of num_generations={self.num_generations}"
            )
        if not self.env:
            raise SettingsError("no environment: pass env='game:GuessTheNumber-v0-easy', or any id of `gem-core list`")
        if self.max_steps <= 0:
            raise SettingsError(
                f"max_steps={self.max_steps}: environments have no epochs, so say how many updates to make"
            )
        if self.env_weights and len(self.env_weights) != len(self.env):
            raise SettingsError(f"{len(self.env_weights)} env_weights for {len(self.env)} environments: give one each")
        if self.min_generation_batch is not None and self.min_generation_batch < 1:
            raise SettingsError(f"min_generation_batch={self.min_generation_batch}: use None for all, or at least 1")
        try:
            _ = self.failures
        except ValueError as error:
            raise SettingsError(f"env_timeout, env_retries, env_failure or its share cannot work: {error}") from error
        if self.vector_backend == "sync" and self.env_timeout not in (None, DEFAULT_TIMEOUT):
            raise SettingsError(f"vector_backend='sync' cannot enforce env_timeout={self.env_timeout}; use 'process'")
        if self.env_weights and (len(set(self.env)) < len(self.env) or min(self.env_weights) <= 0):
            raise SettingsError("env_weights must be above 0, and each environment be named once")
        if not 0.0 <= self.gamma <= 1.0:
            raise SettingsError(f"gamma={self.gamma} is not between 0 and 1")
        if self.view == "episode" and self.history is not None:
            raise SettingsError(
                f"history={self.history} drops what was said before, so an episode is no single sequence. "
                "Use view='turn', or history=None."
            )
        for reason in self._silent_changes():
            raise SettingsError(f"{reason} This would silently change the algorithm.")

    def _silent_changes(self) -> list[str]:
        reasons: list[str] = []
        if self.loss_type not in _LOSS_TYPES:
            reasons.append(
                f"loss_type={self.loss_type!r} does not sum over tokens with one normaliser for all rows: long "
                f"episodes would count less or more than short ones. Use one of {', '.join(_LOSS_TYPES)}."
            )
        if self.mask_truncated_completions:
            reasons.append(
                "mask_truncated_completions=True leaves out a whole row for its last response. "
                "Truncated responses are invalid actions here, and the environment's reward says so."
            )
        reasons += self._row_reasons()
        if self.scale_rewards != "group":
            reasons.append(
                f"scale_rewards={self.scale_rewards!r} has no effect, as the estimator decides the scale. "
                "Use advantage='drgrpo' for GRPO without the standard deviation."
            )
        return reasons

    def _row_reasons(self) -> list[str]:
        """What fits one view only: a row is an episode, or a turn."""
        if self.view == "turn":
            return [
                f"{name}={value!r} counts rows, of which each turn is one. Use view='episode'."
                for name, value in (("beta", self.beta), ("log_completions", self.log_completions))
                if value
            ]
        by_row = {
            "importance_sampling_level": self.importance_sampling_level == "sequence",
            "vllm_importance_sampling_mode": self.vllm_importance_sampling_mode.startswith("sequence"),
            "off_policy_mask_threshold": self.off_policy_mask_threshold is not None,
        }
        return [
            f"{name}={getattr(self, name)!r} averages over all turns of a row. Use view='turn', or leave it out."
            for name, wrong in by_row.items()
            if wrong
        ]
