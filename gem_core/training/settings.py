"""What a run plays and how, the same for every framework whose configuration is not ours."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from gem_core.env import Env
from gem_core.errors import MissingExtraError, SettingsError
from gem_core.failures import DEFAULT_TIMEOUT, ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import advantage_spec
from gem_core.rollout import RolloutSettings
from gem_core.training.report import RunReport
from gem_core.vector import make_vec, share_slots, weights_of

Split = Literal["train", "eval"]
View = Literal["episode", "turn"]


class PlaySettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run plays. Adapters derive from it, read it from their framework's configuration and add to it."""

    env: list[str]
    """Environment ids to train on."""
    env_weights: list[float] = []
    """Their shares of a batch, in the same order; equal ones by default."""
    env_kwargs: dict[str, Any] = {}
    """Keyword arguments for all environments."""
    wrappers: list[str] = []
    """`package.module:name` of what is applied to each environment, in this order."""
    modules: list[str] = []
    """Imported in every process that plays, for example to call `gem_core.register`."""
    eval_env: list[str] = []
    """Environments of the evaluation; by default those of `env`."""
    eval_episodes: int = 128
    """Tasks of one evaluation, over all environments."""
    view: View = "episode"
    """What a training row is: a whole episode, or a turn."""
    history: int | None = None
    """Observations in a prompt; `None` for all."""
    system_prompt: str | None = None
    """System message of every conversation."""
    truncated_is_invalid: bool = True
    """A response cut off by the token limit is an empty action."""
    plugins: list[str] = []
    """Plugins that may decide and listen in this run."""
    vector_backend: Literal["sync", "thread", "process", "ray"] = "thread"
    """What environments run in."""
    vector_workers: int | None = None
    """Threads, processes or Ray actors that share the environments of a process."""
    max_concurrent: int | None = None
    """Episodes that one process plays at once; by default its share of a batch."""
    env_timeout: float | None = DEFAULT_TIMEOUT
    """Seconds that one reset or step may take."""
    env_retries: int = 0
    """How often a failed episode is brought back."""
    env_failure: Literal["truncate", "drop", "raise"] = "truncate"
    """What becomes of an episode whose environment failed for good."""
    max_env_failure_share: float | None = 0.5
    """The run stops once more than this share of an environment's last 40 episodes failed."""
    seed: int = 0
    """Decides the tasks."""
    recording: str | None = None
    """Folder for the episodes, a JSON-lines file per process."""
    report: str | None = None
    """Folder for curve.png and metrics.jsonl."""

    @staticmethod
    def spelled(name: str, value: object = None) -> str:
        """A setting as the framework's users write it, with its value where one is given."""
        return name if value is None else f"{name}={value}"

    @property
    def train_weights(self) -> dict[str, float]:
        """The environments to train on and their shares."""
        return weights_of(dict(zip(self.env, self.env_weights, strict=True)) if self.env_weights else self.env)

    @property
    def eval_weights(self) -> dict[str, float]:
        """The environments of the evaluation and their shares."""
        return weights_of(self.eval_env) if self.eval_env else self.train_weights

    def weights(self, split: Split) -> dict[str, float]:
        """Those of training, or of evaluation."""
        return self.train_weights if split == "train" else self.eval_weights

    @property
    def failures(self) -> FailurePolicy:
        """What becomes of environments that fail."""
        return FailurePolicy(
            self.env_timeout, self.env_retries, ErrorAction(self.env_failure), self.max_env_failure_share
        )

    def rollout(
        self,
        max_response_tokens: int,
        max_context_tokens: int | None,
        template_options: Mapping[str, Any] | None = None,
    ) -> RolloutSettings:
        """How episodes become prompts."""
        return RolloutSettings(
            max_response_tokens=max_response_tokens,
            max_context_tokens=max_context_tokens,
            history=self.history,
            system_prompt=self.system_prompt,
            truncated_is_invalid=self.truncated_is_invalid,
            template_options=dict(template_options or {}),
        )

    def concurrent(self, split: Split, share: int) -> int:
        """Episodes that a process plays at once: `max_concurrent`, or its share of a batch and at least one of each."""
        weights = self.weights(split)
        return self.max_concurrent or max(share, math.ceil(sum(weights.values()) / min(weights.values())))

    def import_modules(self) -> None:
        """Import what registers environments, and switch the run's plugins on.

        Raises:
            SettingsError: there is no such module.
            PluginError: there is no such plugin.
        """
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise SettingsError(f"{self.spelled('modules')}: cannot import {module!r}: {error}") from error
        manager.enable(*self.plugins)

    def open_report(self, updates: int, done: int = 0) -> RunReport | None:
        """The report of a training, where one is asked for; for one process of it to write.

        Args:
            updates: those of the whole training.
            done: those before this run, where it has been resumed.

        Raises:
            OSError: there is a metrics.jsonl to go on with, and it cannot be read.
        """
        if not self.report:
            return None
        return RunReport(updates, ", ".join(self.train_weights), done=done, folder=self.report)

    def load_wrappers(self) -> list[Any]:
        """The wrappers themselves.

        Raises:
            SettingsError: one that cannot be found.
        """
        return [self._load(path) for path in self.wrappers]

    def check(self) -> None:
        """Refuse what cannot work together.

        Raises:
            SettingsError: as its message says.
            MissingExtraError: the report needs something that is not installed.
        """
        self._check_weights()
        if self.view == "episode" and self.history is not None:
            raise SettingsError(
                f"{self.spelled('history', self.history)} drops what was said before, so an episode is no single "
                f"sequence. Use {self.spelled('view', 'turn')}, or leave {self.spelled('history')} out."
            )
        sync = self.spelled("vector_backend", "sync")
        if self.vector_backend == "sync" and self.env_timeout not in (None, DEFAULT_TIMEOUT):
            timeout = self.spelled("env_timeout", self.env_timeout)
            raise SettingsError(f"{sync} cannot enforce {timeout}; use {self.spelled('vector_backend', 'process')}")
        if self.vector_backend == "sync" and self.vector_workers is not None:
            raise SettingsError(f"{self.spelled('vector_workers', self.vector_workers)} has no effect with {sync}")
        for name in ("vector_workers", "max_concurrent", "eval_episodes"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise SettingsError(f"{self.spelled(name, number)} is not at least 1")
        if self.report and importlib.util.find_spec("matplotlib") is None:
            raise MissingExtraError(
                f"{self.spelled('report', self.report)} needs matplotlib. Next: pip install matplotlib"
            )
        try:
            _ = self.failures, self.rollout(1, 2)
        except ValueError as error:
            raise SettingsError(f"{self.spelled('history')}, {self.spelled('env_*')}: {error}") from error

    def check_groups(self, advantage: str, size: int, written: str) -> None:
        """Refuse groups of one where the estimator compares the episodes of a group.

        Args:
            advantage: the estimator.
            size: episodes of a task.
            written: how users set the size, with its value.

        Raises:
            NotFoundError: no such estimator.
            SettingsError: the groups are too small.
        """
        if advantage_spec(advantage).needs_groups and size < 2:
            raise SettingsError(
                f"{advantage} compares episodes of a task, so {written} cannot work. Use at least 2, or an estimator "
                "without groups such as rebn."
            )

    def check_environments(self, tasks: int, written: str) -> None:
        """Build one of each environment and close it, so that what is wrong shows before a model is loaded.

        Args:
            tasks: those of a batch.
            written: how users set that, with its value.

        Raises:
            SettingsError: environments that would never be played.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        """
        concurrent = self.spelled("max_concurrent", self.max_concurrent)
        wanted: list[tuple[str, Split, int | None]] = [
            (written, "train", tasks),
            (self.spelled("eval_episodes", self.eval_episodes), "eval", self.eval_episodes),
            (concurrent, "train", self.max_concurrent),
            (concurrent, "eval", self.max_concurrent),
        ]
        for name, split, places in wanted:
            try:
                if places is not None:
                    share_slots(self.weights(split), places)
            except ValueError as error:
                raise SettingsError(f"{name}: {error}") from error
        ids = [*self.train_weights, *self.eval_weights]
        make_vec(ids, env_kwargs=self.env_kwargs, wrappers=self.load_wrappers()).close()

    def _check_weights(self) -> None:
        ids, weights = self.env, self.env_weights
        if not ids:
            raise SettingsError(f"{self.spelled('env')} has no environment id; see `gem-core list`")
        if weights and (len(weights) != len(ids) or len({*ids}) < len(ids) or not _all_positive(weights)):
            raise SettingsError(
                f"{self.spelled('env_weights', weights)} for {self.spelled('env', ids)}: give each environment one "
                "weight above 0, and name each once"
            )

    def _load(self, path: str) -> Any:
        module, colon, name = path.partition(":")
        try:
            if not colon:
                raise ImportError("it is not 'package.module:name'")
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"{self.spelled('wrappers')}: cannot load {path!r}: {error}") from error
        if not callable(found):
            raise SettingsError(
                f"{self.spelled('wrappers')}: {path!r} is no function or class that takes an {Env.__name__}"
            )
        return found


def _all_positive(weights: Sequence[float]) -> bool:
    return all(0 < weight < math.inf for weight in weights)


Settings = TypeVar("Settings", bound=PlaySettings)


def read_section(kind: type[Settings], section: Mapping[str, Any]) -> Settings:
    """Settings from the section `gem` of a framework's configuration, where one environment may stand for a list.

    Args:
        kind: of which settings.
        section: plain values by name.

    Raises:
        SettingsError: a value of the wrong type.
    """
    names = {name: [section[name]] for name in ("env", "eval_env") if isinstance(section.get(name), str)}
    try:
        return msgspec.convert({**section, **names}, kind, strict=True)
    except msgspec.ValidationError as error:
        raise SettingsError(f"the section gem of the configuration: {error}") from error
