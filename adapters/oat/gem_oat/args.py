"""The settings of a run: Oat's own, and what this adapter adds."""

# No `from __future__ import annotations`: Oat's own arguments have none, and tyro reads both.

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import msgspec
from oat.algorithms.ppo import PPOArgs

from gem_core.errors import SettingsError
from gem_core.failures import DEFAULT_TIMEOUT
from gem_core.training.settings import PlaySettings


class GemSettings(PlaySettings, frozen=True, kw_only=True):
    """What the flags say that concern environments. Oat's learner has one advantage per row, so a row is a turn."""

    view: Literal["turn"] = "turn"  # pyright: ignore[reportIncompatibleVariableOverride]

    @staticmethod
    def spelled(name: str, value: object = None) -> str:
        """As on the command line."""
        flag = f"--{_FLAGS.get(name, name)}"
        return flag if value is None else f"{flag} {value}"


_FLAGS = {"max_concurrent": "num_env"}
"""Settings whose flag has another name."""


@dataclass
class GemOatArgs(PPOArgs):
    """`PPOArgs` for environments of many turns; every flag of Oat's stays what it is.

    A batch is `rollout_batch_size_per_device` episodes for each learner. `max_train` counts episodes,
    `train_batch_size` those of an update, `generate_max_length` limits one response and `max_model_len` an episode.
    """

    # Environment ids to train on; `gem-core list` shows all.
    env: list[str] = field(default_factory=list[str])
    # Shares of the environments in --env, in the same order; equal ones by default.
    env_weights: list[float] = field(default_factory=list[float])
    # Keyword arguments for all environments, as a JSON object.
    env_kwargs: str = "{}"
    # Applied to each environment in this order: package.module:name.
    wrappers: list[str] = field(default_factory=list[str])
    # Modules that every actor imports, for example to call gem_core.register.
    modules: list[str] = field(default_factory=list[str])
    # Environments of the evaluation; by default those of --env.
    eval_env: list[str] = field(default_factory=list[str])
    # Episodes of one evaluation, over all actors; see --eval_steps.
    eval_episodes: int = 128
    # Estimator: reinforce, rebn, rebn_loo, grpo, drgrpo, rloo, gae (with Oat's critic), or a plugin's name:id.
    advantage: str = "rebn"
    # Episodes per task, for the estimators that compare them (grpo, drgrpo, rloo).
    group_size: int = 1
    # Environments of one actor. By default as many as it plays episodes for a batch, one each and all with the current
    # policy. With another number, which a run with one --env may have, episodes in flight go on in the next batch.
    num_env: int | None = None
    # Observations in a prompt; all by default.
    history: int | None = None
    # System message of every conversation.
    system_prompt: str | None = None
    # A response cut off by --generate_max_length is an empty action.
    truncated_is_invalid: bool = True
    # Plugins that may decide (gem_make_env, gem_env_error) and listen in this run.
    plugins: list[str] = field(default_factory=list[str])
    # sync for environments that answer at once, thread for those that wait, process for those that compute, hang or
    # crash, ray for several machines.
    vector_backend: Literal["sync", "thread", "process", "ray"] = "thread"
    # Threads, processes or Ray actors that share the environments of an actor.
    vector_workers: int | None = None
    # Seconds that one reset or step may take; None waits for ever.
    env_timeout: float | None = DEFAULT_TIMEOUT
    # How often a failed episode is brought back in a fresh environment.
    env_retries: int = 0
    # What becomes of an episode whose environment failed for good.
    env_failure: Literal["truncate", "drop", "raise"] = "truncate"
    # The run stops once more than this share of an environment's last 40 episodes failed; None never stops it.
    max_env_failure_share: float | None = 0.5
    # Folder for the episodes, a JSON-lines file per actor.
    recording: str | None = None
    # Folder for curve.png and metrics.jsonl.
    report: str | None = None

    # Oat's own, whose defaults cannot work here.
    algo: Literal["PPO"] = "PPO"  # pyright: ignore[reportIncompatibleVariableOverride]
    # Environments give the rewards.
    oracle: str = ""
    # Environments write the prompts.
    prompt_data: str = ""
    # Of a prompt; see --group_size.
    num_samples: int = 1
    # Derived: --rollout_batch_size_per_device times the learners.
    rollout_batch_size: int = 0
    # Derived from --num_ppo_epochs: what Oat counts the updates of its learning rate schedule by.
    max_epochs: int = 0
    # Derived: a batch has as many rows as its episodes have turns.
    pi_buffer_maxlen_per_device: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def settings(self) -> GemSettings:
        """What concerns environments.

        Raises:
            SettingsError: `env_kwargs` is no JSON object.
        """
        names = {one.name for one in fields(self)} & {*GemSettings.__struct_fields__}
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        values |= {"env_kwargs": self._parsed_env_kwargs(), "max_concurrent": self.num_env}
        return GemSettings(**values)

    @property
    def learners(self) -> int:
        """Processes that learn, over all groups."""
        return self.learners_per_group * self.num_groups

    @property
    def learners_per_group(self) -> int:
        """Processes that learn, in this group of machines."""
        return self.gpus if self.collocate else (self.gpus + 1) // 2

    @property
    def actors_per_group(self) -> int:
        """Processes that play, in this group."""
        return self.learners_per_group // self.num_gpus_per_actor

    @property
    def batches(self) -> int:
        """Batches that `max_train` episodes make."""
        return self.max_train // self.rollout_batch_size

    @property
    def updates(self) -> int:
        """Updates per pass over a batch."""
        return self.rollout_batch_size // self.train_batch_size

    def _parsed_env_kwargs(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self.env_kwargs, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise SettingsError(f"--env_kwargs {self.env_kwargs} is no JSON object: {error}") from error
