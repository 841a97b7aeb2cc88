"""The settings of a run, declared once for every training framework.

`RunSettings` has the names, types, bounds, defaults and explanations. An adapter derives a class from it, defines how
users of its framework write a setting, and adds what only that framework needs. TRL's fields, Oat's arguments,
OpenRLHF's flags, the section `gem` of verl and ROLL, and the tables of the adapters' pages come from that class.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from gem_core.env import Env
from gem_core.errors import MissingExtraError, SettingsError, near_matches
from gem_core.failures import DEFAULT_TIMEOUT, ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import advantage_spec, spec
from gem_core.specs import AdapterSpec
from gem_core.vector import backend_spec, make_vec, share_slots, weights_of
from gem_train._corrections import Correction, CorrectionKind, Unit
from gem_train.arguments import recorded
from gem_train.records import Detail
from gem_train.report import RunReport
from gem_train.rollout import Cutoff, GroupFilter, Reporter, RolloutSettings, StallWords, Thoughts
from gem_train.rollout.compaction import BY_POLICY, load_rule
from gem_train.rows import RowKind

IMAGE_TAG = "images"
"""A tag of environments that show images."""
Split = Literal["train", "eval"]
Count = Annotated[int, msgspec.Meta(ge=1)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
FailureShare = Annotated[float, msgspec.Meta(ge=0, lt=1)]

FILTER_SETTINGS = ("filter_groups", "filter_limit")
CORRECTION_SETTINGS = ("correction", "correction_unit", "correction_low", "correction_high")


def setting(default: Any, help: str) -> Any:
    """A field of a settings class.

    Args:
        default: the default; a list or a dict is copied for each object.
        help: what the field means, for command lines and the adapters' pages.
    """
    if isinstance(default, list | dict):
        copied = cast("Callable[[], Any]", default.copy)
        return field(default_factory=copied, metadata={"help": help})
    return field(default=default, metadata={"help": help})


@dataclass(kw_only=True)
class RunSettings:
    """What a run plays, and how.

    A single string stands for a list of one, a JSON string for a dict, and `None` for an empty list or dict.

    Raises:
        SettingsError: a value of the wrong type, or outside its bounds.
    """

    prefix: ClassVar[str] = ""
    """The prefix that users write before the name of a setting."""
    separator: ClassVar[str] = "="
    """The separator between a name and its value."""
    owned: ClassVar[Mapping[str, str]] = {}
    """The framework's own name of a setting, by our name: users set the framework's setting, and ours follows."""
    refused: ClassVar[Mapping[str, str]] = {}
    """The settings that cannot work with the framework, each with the reason; they keep their defaults."""
    response_limit: ClassVar[str] = StallWords.limit
    """How users write the token limit of a response."""
    eval_response_limit: ClassVar[str] = ""
    """The same for evaluations, if they have a limit of their own."""
    adapter: ClassVar[AdapterSpec | None] = None
    """The registration of the adapter: the versions that it names are recorded with the run."""

    env: list[str] = setting([], "Environment ids to train on; `gem-core list` shows all.")
    env_weights: list[float] = setting(
        [], "Shares of a batch for the environments in `env`, in the same order. By default all are equal."
    )
    env_limits: list[int] = setting(
        [],
        "How many episodes of each environment in `env` one process plays at once, in the same order; 0: no limit of "
        "its own. Further ones wait. By default there are no limits.",
    )
    env_kwargs: dict[str, Any] = setting({}, 'Keyword arguments for all environments, for example `{"max_turns": 3}`.')
    wrappers: list[str] = setting([], "`package.module:name` of wrappers to apply to each environment, in this order.")
    modules: list[str] = setting(
        [], "Modules that each process that plays imports first, for example to call `gem_core.register`."
    )
    eval_env: list[str] = setting([], "Environment ids of the evaluation. By default those of `env`.")
    eval_episodes: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = setting(
        128, "Tasks of an evaluation, over all environments and processes. Every evaluation has the same tasks."
    )
    advantage: str = setting(
        "rebn",
        "Estimator: `reinforce`, `rebn`, `rebn_loo`, `grpo`, `drgrpo`, `rloo`, `turn_grpo`, `gigpo`, `rae` (for "
        "matches), `gae` (needs a critic), or a plugin's `name:id`.",
    )
    gamma: Fraction = setting(1.0, "Discount per turn.")
    lam: Fraction = setting(0.95, "Lambda of `gae`, per turn.")
    filter_groups: Literal["none", "success", "return"] = setting(
        "none",
        "Replace groups whose episodes are all alike, in `success` or in `return`, by groups of other tasks until the "
        "batch is full.",
    )
    filter_limit: Count = setting(
        10,
        "Groups that `filter_groups` may play for each group of a batch, on average. More stop the run.",
    )
    max_staleness: Annotated[int, msgspec.Meta(ge=0)] = setting(
        0,
        "How many updates of the policy a token may be older than the weights that first train on its batch. Above 0, "
        "sampling runs ahead of the training, by whole batches.",
    )
    correction: CorrectionKind = setting(
        "none",
        "Weights for tokens that other weights sampled: `tis` (truncated importance sampling), `icepop` (outlying "
        "ratios count 0), `decoupled` (untruncated, as in decoupled PPO); see docs/staleness.md.",
    )
    correction_unit: Unit = setting("token", "What a ratio of `correction` is of: a `token`, a `turn` or an `episode`.")
    correction_low: Annotated[float, msgspec.Meta(ge=0)] = setting(0.5, "The lowest ratio that `icepop` keeps.")
    correction_high: Annotated[float, msgspec.Meta(gt=0)] = setting(
        2.0, "The largest weight of `tis`, and the largest ratio that `icepop` keeps."
    )
    row: RowKind = setting(
        "episode", "What a training row is: a whole `episode` (cheaper, needs the full history), or a `turn`."
    )
    history: Count | None = setting(None, "How many of the last observations a prompt shows. By default all.")
    compaction: str | None = setting(
        None,
        "Who writes a summary where the context is nearly full, so that the episode continues: `policy`, or the "
        "`package.module:function` of a rule; see docs/compaction.md. By default such an episode ends.",
    )
    thoughts: Thoughts = setting(
        "keep",
        "Whether later prompts have the thoughts of earlier responses: `keep`, or `drop` as the chat template drops "
        "them; see docs/thinking.md.",
    )
    match_cutoff: Cutoff = setting(
        "forfeit",
        "What happens to a match that a limit cuts off (context, turns, time of a step): `forfeit` gives the last "
        "place to the agent that reached it, `drop` leaves its episodes out.",
    )
    system_prompt: str | None = setting(None, "System message of every conversation.")
    chat_template_kwargs: dict[str, Any] = setting(
        {}, 'Arguments of the chat template, for example `{"enable_thinking": false}`.'
    )
    truncated_is_invalid: bool = setting(
        True, "The environment gets an empty action if the token limit cut the response off."
    )
    plugins: list[str] = setting(
        [], "Plugins to load; only their deciding hooks (`gem_make_env`, `gem_env_error`) are called in this run."
    )
    vector_backend: str = setting(
        "thread",
        "Where environments run: `sync` for environments that answer at once, `thread` for environments that wait, "
        "`process` for environments that compute, hang or crash, `ray` for several machines, or a plugin's backend.",
    )
    vector_workers: Count | None = setting(
        None, "Threads, processes or Ray actors for the environments of one process. By default one per environment."
    )
    max_concurrent: Count | None = setting(
        None, "Number of episodes that one process plays at a time. By default its share of a batch."
    )
    env_timeout: Seconds | None = setting(DEFAULT_TIMEOUT, "Time limit of a reset or step, in seconds. None: no limit.")
    env_retries: Annotated[int, msgspec.Meta(ge=0)] = setting(
        0, "How often a fresh environment may replay a failed episode."
    )
    env_failure: Literal["truncate", "drop", "raise"] = setting(
        "truncate",
        "What happens to an episode whose environment failed after all retries: `truncate` keeps its turns, `drop` "
        "drops the episode, `raise` stops the run.",
    )
    max_env_failure_share: FailureShare | None = setting(
        0.5,
        "The run stops when more than this share of an environment's last 40 episodes failed, counted per process. "
        "None: never.",
    )
    seed: int = setting(0, "Decides the tasks: task `i` is the same episode in every run with this seed.")
    record: Detail = setting(
        "none",
        "What is recorded of each episode and update: `none`, `summary` (rewards, ends and advantages), or `full` "
        "(also texts, tokens and log-probabilities). `gem-core view` shows it.",
    )
    record_share: Fraction = setting(1.0, "Share of the tasks that are recorded, with all their episodes.")
    record_folder: str | None = setting(
        None, "Folder of the records, one file per process. By default `records` in the folder `report`."
    )
    report: str | None = setting(
        None, "Folder for `metrics.jsonl`, with a line per update, and `curve.png` at the end."
    )
    track: list[str] = setting(
        [],
        "Plugins that get the metrics and some episodes: `wandb`, `tensorboard`, `trackio`, or another plugin's name; "
        "see plugins/trackers/README.md.",
    )

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for name, one in type(self).declared().items():
            setattr(self, name, self._converted(one, getattr(self, name), kinds[name]))

    @classmethod
    def declared(cls) -> dict[str, Field[Any]]:
        """The fields of this class that `setting` made, by name, without the framework's own fields."""
        bases = cast("list[Any]", [base for base in cls.__mro__ if issubclass(base, RunSettings)])
        made: dict[str, Field[Any]] = {}
        for base in reversed(bases):
            own = inspect.get_annotations(base)
            made |= {name: base.__dataclass_fields__[name] for name in own}
        ours = {name for name, one in made.items() if "help" in one.metadata}
        return {one.name: one for one in fields(cls) if one.name in ours}

    @classmethod
    def offered(cls) -> dict[str, Field[Any]]:
        """The fields of `declared` that users set under our name."""
        hidden = {*cls.owned, *cls.refused}
        return {name: one for name, one in cls.declared().items() if name not in hidden}

    @classmethod
    def spelled(cls, name: str, value: object = None) -> str:
        """A setting as the framework's users write it, with its value if one is given."""
        written = cls.owned.get(name, f"{cls.prefix}{name}")
        return written if value is None else f"{written}{cls.separator}{value}"

    @classmethod
    def check_names(cls, names: Sequence[str]) -> None:
        """Refuse names that users cannot set.

        Raises:
            SettingsError: there is no such setting, the framework has its own setting for it, or it cannot work there.
        """
        for name in names:
            if name in cls.owned:
                raise SettingsError(f"{cls.prefix}{name} cannot be set here. Use {cls.owned[name]}.")
            if name in cls.refused:
                raise SettingsError(f"{cls.spelled(name)} cannot be used: {cls.refused[name]}")
            if name not in cls.declared():
                known = [f"{cls.prefix}{one}" for one in cls.offered()]
                raise SettingsError(
                    f"there is no setting {cls.prefix}{name}.{near_matches(f'{cls.prefix}{name}', known)}"
                )

    @property
    def train_weights(self) -> dict[str, float]:
        """The environments to train on and their shares."""
        return weights_of(dict(zip(self.env, self.env_weights, strict=True)) if self.env_weights else self.env)

    @property
    def eval_weights(self) -> dict[str, float]:
        """The environments of the evaluation and their shares."""
        return weights_of(self.eval_env) if self.eval_env else self.train_weights

    def weights(self, split: Split) -> dict[str, float]:
        """The environments of training or of evaluation, and their shares."""
        return self.train_weights if split == "train" else self.eval_weights

    def limits(self, split: Split) -> dict[str, int]:
        """How many episodes of an id a process plays at once, for the ids that have a limit."""
        given = dict(zip(self.env, self.env_limits, strict=True)) if self.env_limits else {}
        return {env_id: limit for env_id, limit in given.items() if limit and env_id in self.weights(split)}

    @property
    def failures(self) -> FailurePolicy:
        """What happens when environments fail."""
        return FailurePolicy(
            self.env_timeout, self.env_retries, ErrorAction(self.env_failure), self.max_env_failure_share
        )

    def rollout(self, max_response_tokens: int, max_context_tokens: int | None, *, limits: str = "") -> RolloutSettings:
        """How episodes become prompts.

        Args:
            max_response_tokens: limit of one response.
            max_context_tokens: limit of a prompt and its response.
            limits: how users set the two, for the error message.

        Raises:
            SettingsError: limits that leave no room for a prompt.
        """
        try:
            return RolloutSettings(
                max_response_tokens=max_response_tokens,
                max_context_tokens=max_context_tokens,
                history=self.history,
                compaction=self.compaction,
                thoughts=self.thoughts,
                match_cutoff=self.match_cutoff,
                system_prompt=self.system_prompt,
                truncated_is_invalid=self.truncated_is_invalid,
                template_options=dict(self.chat_template_kwargs),
            )
        except ValueError as error:
            raise SettingsError(f"{limits or 'token limits'}: {error}") from error

    def concurrent(self, split: Split, share: int) -> int:
        """Episodes that a process plays at a time: `max_concurrent` or its share of a batch, at least one per id."""
        weights = self.weights(split)
        return self.max_concurrent or max(share, math.ceil(sum(weights.values()) / min(weights.values())))

    @property
    def group_filter(self) -> GroupFilter | None:
        """Which groups a batch keeps."""
        return None if self.filter_groups == "none" else GroupFilter(self.filter_groups, self.filter_limit)

    @property
    def off_policy(self) -> Correction | None:
        """What is done about tokens that other weights sampled."""
        if self.correction == "none":
            return None
        return Correction(self.correction, self.correction_unit, self.correction_low, self.correction_high)

    def batches_within_bound(self, updates: int, fewer: str) -> int:
        """How many batches the sampling may run ahead of the training, so that `max_staleness` holds.

        Args:
            updates: updates of the policy on each batch.
            fewer: the settings that decide their number, as users write them.

        Raises:
            SettingsError: a batch serves more updates than the bound has.
        """
        batches = self.max_staleness // updates
        if self.max_staleness and not batches:
            raise SettingsError(
                f"{self.spelled('max_staleness', self.max_staleness)} is less than the {updates} updates that a batch "
                f"serves, so sampling could not run ahead. Use at least {updates}, or change {fewer}."
            )
        return batches

    def import_modules(self) -> None:
        """Import the modules that register environments, and enable the run's plugins.

        Raises:
            SettingsError: there is no such module.
            PluginError: there is no such plugin, in `plugins` or `track`.
        """
        for module in self.modules:
            if not module or module.startswith("."):
                raise SettingsError(f"{self.spelled('modules')}: {module!r} is not the full name of a module")
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise SettingsError(f"{self.spelled('modules')}: cannot import {module!r}: {error}") from error
        manager.enable(*self.plugins)
        manager.require(*self.track)

    def described(self) -> dict[str, Any]:
        """The settings by name, for records and trackers; an adapter adds those of its framework."""
        found = {name: getattr(self, name) for name in self.declared()}
        return {**found, "env_kwargs": recorded(self.env_kwargs)}

    @property
    def records(self) -> Path | None:
        """The folder of the records, `None` if nothing is recorded.

        Raises:
            SettingsError: there is no folder for them.
        """
        if self.record == "none":
            return None
        if not (self.record_folder or self.report):
            raise SettingsError(
                f"{self.spelled('record', self.record)} has no folder: give {self.spelled('record_folder')} or "
                f"{self.spelled('report')}"
            )
        return Path(self.record_folder) if self.record_folder else Path(cast("str", self.report)) / "records"

    @property
    def run_folder(self) -> str | None:
        """The folder of the run, which all its processes see."""
        return self.report

    def reporter(self, done: int = 0) -> Reporter:
        """What tells the metrics of this training to listeners; in one process only.

        Args:
            done: number of updates before this run, if it resumes.
        """
        return Reporter(
            "training",
            ", ".join(self.train_weights),
            settings=self.described(),
            folder=self.run_folder,
            resumed=done > 0,
            track=self.track,
        )

    def open_report(self, updates: int, done: int = 0) -> RunReport:
        """The report of a training; in one process only. Without `report` it writes and shows nothing itself.

        Args:
            updates: the number of updates of the whole training.
            done: number of updates before this run, if it resumes.

        Raises:
            OSError: the folder has a metrics.jsonl that cannot be read.
        """
        return RunReport(
            updates,
            ", ".join(self.train_weights),
            done=done,
            live=bool(self.report),
            folder=self.report or None,
            reporter=self.reporter(done),
            words=self.stall_words(),
        )

    def stall_words(self) -> StallWords:
        """How warnings name settings."""
        return StallWords(self.response_limit, self.eval_response_limit, self.spelled("system_prompt"))

    def load_wrappers(self) -> list[Any]:
        """Import the wrappers.

        Raises:
            SettingsError: a wrapper cannot be found.
        """
        return [self._load(path) for path in self.wrappers]

    def check(self, evaluation: str = "") -> None:
        """Refuse settings that cannot work together, or that nothing reads.

        Args:
            evaluation: in a run without evaluations, how users switch them on; otherwise empty.

        Raises:
            SettingsError: as its message says.
            MissingExtraError: the report needs something that is not installed.
        """
        self._check_refused()
        self._check_unread(evaluation)
        self._check_weights()
        _ = self.records
        if self.row == "episode" and self.history is not None:
            raise SettingsError(
                f"{self.spelled('history', self.history)} drops earlier observations from prompts, so an episode is "
                f"not one sequence. Use {self.spelled('row', 'turn')}, or leave {self.spelled('history')} out."
            )
        self._check_compaction()
        try:
            backend_spec(self.vector_backend)
        except ValueError as error:
            raise SettingsError(f"{self.spelled('vector_backend', self.vector_backend)}: {error}") from error
        sync = self.spelled("vector_backend", "sync")
        if self.vector_backend == "sync" and self.env_timeout not in (None, DEFAULT_TIMEOUT):
            timeout = self.spelled("env_timeout", self.env_timeout)
            raise SettingsError(f"{sync} cannot enforce {timeout}; use {self.spelled('vector_backend', 'process')}")
        if self.vector_backend == "sync" and self.vector_workers is not None:
            raise SettingsError(f"{self.spelled('vector_workers', self.vector_workers)} has no effect with {sync}")
        if self.report and importlib.util.find_spec("matplotlib") is None:
            raise MissingExtraError(
                f"{self.spelled('report', self.report)} needs matplotlib. Next: pip install matplotlib"
            )

    def check_groups(self, size: int, written: str) -> None:
        """Refuse groups of one where the estimator compares the episodes of a group.

        Args:
            size: episodes per task.
            written: how users set the size, with its value.

        Raises:
            NotFoundError: no such estimator.
            SettingsError: the groups are too small.
        """
        if advantage_spec(self.advantage).needs_groups and size < 2:
            raise SettingsError(
                f"{self.spelled('advantage', self.advantage)} compares the episodes of a task, so {written} cannot "
                "work. Use at least 2, or an estimator without groups such as rebn."
            )
        if self.filter_groups != "none" and (size < 2 or not advantage_spec(self.advantage).needs_groups):
            raise SettingsError(
                f"{self.spelled('filter_groups', self.filter_groups)} needs groups, and an estimator that compares "
                f"their episodes. It cannot work with {self.spelled('advantage', self.advantage)} and {written}. Use "
                f"grpo, drgrpo or rloo, or leave {self.spelled('filter_groups')} out."
            )

    def check_environments(self, tasks: int, written: str) -> None:
        """Build and close one environment per id, so that errors show before a model is loaded.

        Args:
            tasks: number of tasks of a batch.
            written: how users set their number, with its value.

        Raises:
            SettingsError: some environments would never be played.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        """
        concurrent = self.spelled("max_concurrent", self.max_concurrent)
        wanted: list[tuple[str, Split, int | None]] = [
            (written, "train", tasks),
            (self.spelled("eval_episodes", self.eval_episodes), "eval", self.eval_episodes),
            (concurrent, "train", self.max_concurrent),
            (concurrent, "eval", self.max_concurrent),
        ]
        for name, split, slots in wanted:
            try:
                if slots is not None:
                    share_slots(self.weights(split), slots)
            except ValueError as error:
                raise SettingsError(f"{name}: {error}") from error
        for split in get_args(Split):
            weights = self.weights(split)
            make_vec([*weights], env_kwargs=self.kwargs_of(split), wrappers=self.load_wrappers()).close()

    def check_images(self, reason: str) -> None:
        """Refuse environments that show images.

        Args:
            reason: why the model will not see them, and what to do; the second half of a sentence.

        Raises:
            SettingsError: an environment of the run has the tag `images`.
            NotFoundError: no such environment.
        """
        for env_id in dict.fromkeys([*self.env, *self.eval_env]):
            if IMAGE_TAG in spec(env_id).tags:
                raise SettingsError(f"{env_id} shows images, {reason} (docs/images.md)")

    def kwargs_of(self, split: Split) -> dict[str, Any]:
        """The keyword arguments of the environments of a split. Arguments given for one id go to that environment only.

        Raises:
            SettingsError: an id that neither training nor evaluation plays.
        """
        if not any(":" in name for name in self.env_kwargs):  # for all environments
            return dict(self.env_kwargs)
        known = {**self.train_weights, **self.eval_weights}
        if unknown := [name for name in self.env_kwargs if name not in known]:
            raise SettingsError(
                f"{self.spelled('env_kwargs')} names {unknown[0]!r}, which is not among {', '.join(known)}."
                f"{near_matches(unknown[0], known)}"
            )
        return {name: kwargs for name, kwargs in self.env_kwargs.items() if name in self.weights(split)}

    def _converted(self, one: Field[Any], value: Any, kind: Any) -> Any:
        options = (kind, *get_args(kind))
        origins = [get_origin(option) for option in options]
        choices = next((get_args(option) for option in options if get_origin(option) is Literal), ())
        if choices and value not in choices:
            raise SettingsError(
                f"{self.spelled(one.name, value)} is not one of {', '.join(choices)}."
                f"{near_matches(str(value), choices)}"
            )
        if value is None and one.default_factory is not MISSING:
            return one.default_factory()
        if isinstance(value, str) and list in origins:
            value = [value]
        try:
            if isinstance(value, str) and dict in origins:
                return json_object(value)
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, ValueError) as error:
            raise SettingsError(f"{self.spelled(one.name, value)}: {_in_python(error)}") from error

    def _changed(self, name: str) -> bool:
        one = type(self).declared()[name]
        default = one.default if one.default_factory is MISSING else one.default_factory()
        return getattr(self, name) != default

    def _check_unread(self, evaluation: str) -> None:
        """Refuse a setting that nothing reads in this run. The framework's own settings are the framework's matter."""
        estimator = inspect.signature(advantage_spec(self.advantage).resolve())
        kind, advantage = self.spelled("correction", self.correction), self.spelled("advantage", self.advantage)
        unread: list[tuple[bool, str, Sequence[str]]] = [
            ("lam" not in estimator.parameters, f"with {advantage}", ["lam"]),
            (self.filter_groups == "none", f"without {self.spelled('filter_groups')}", FILTER_SETTINGS[1:]),
            (self.correction == "none", f"without {self.spelled('correction')}", CORRECTION_SETTINGS[1:]),
            (self.correction in ("tis", "decoupled"), f"with {kind}", ["correction_low"]),
            (self.correction == "decoupled", f"with {kind}", ["correction_high"]),
            (self.record == "none", f"without {self.spelled('record')}", ["record_share", "record_folder"]),
            (bool(evaluation), f"without evaluations, which {evaluation} switches on", ["eval_env"]),
        ]
        for so, where, names in unread:
            for name in names:
                if so and self._changed(name) and name not in self.owned:
                    raise SettingsError(
                        f"{self.spelled(name, getattr(self, name))} has no effect {where}. Leave it out."
                    )

    def _check_refused(self) -> None:
        for name, reason in self.refused.items():
            if self._changed(name):
                raise SettingsError(f"{self.spelled(name, getattr(self, name))} cannot be used: {reason}")
        if self.correction == "icepop" and self.correction_low > self.correction_high:
            low, high = (self.spelled(name, getattr(self, name)) for name in ("correction_low", "correction_high"))
            raise SettingsError(f"{low} is above {high}, so no ratio is kept. Swap them.")

    def _check_compaction(self) -> None:
        if self.compaction is None:
            return
        if self.history is not None:
            raise SettingsError(
                f"{self.spelled('compaction', self.compaction)} replaces observations by a summary, and "
                f"{self.spelled('history', self.history)} drops them. Use one of the two."
            )
        if self.advantage == "turn_grpo":
            raise SettingsError(
                f"{self.spelled('advantage', self.advantage)} compares turns at the same position, and with "
                f"{self.spelled('compaction', self.compaction)} a summary is a position, too. Use another estimator."
            )
        if self.compaction != BY_POLICY:
            try:
                load_rule(self.compaction)
            except ValueError as error:
                raise SettingsError(f"{self.spelled('compaction', self.compaction)}: {error}") from error

    def _check_weights(self) -> None:
        ids, weights = self.env, self.env_weights
        if not ids:
            example = self.spelled("env", "game:GuessTheNumber-v0-easy")
            raise SettingsError(
                f"no environment: {self.spelled('env')} has no environment id. For example {example}; see "
                "`gem-core list`"
            )
        if weights and (len(weights) != len(ids) or len({*ids}) < len(ids) or not _all_positive(weights)):
            raise SettingsError(
                f"{self.spelled('env_weights', weights)} for {self.spelled('env', ids)}: give each environment one "
                "weight above 0, and name each once"
            )
        limits = self.env_limits
        if limits and (len(limits) != len(ids) or len({*ids}) < len(ids) or min(limits) < 0):
            raise SettingsError(
                f"{self.spelled('env_limits', limits)} for {self.spelled('env', ids)}: give each environment one "
                "limit, 0 for none, and name each once"
            )

    def _load(self, path: str) -> Any:
        module, colon, name = path.partition(":")
        try:
            if not (colon and module and name) or module.startswith("."):
                raise ImportError("it is not 'package.module:name'")
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"{self.spelled('wrappers')}: cannot load {path!r}: {error}") from error
        if not callable(found):
            raise SettingsError(
                f"{self.spelled('wrappers')}: {path!r} is not a function or class that takes an {Env.__name__}"
            )
        return found


Settings = TypeVar("Settings", bound=RunSettings)


def read_section(kind: type[Settings], section: Mapping[str, Any]) -> Settings:
    """Settings from a section of a framework's configuration.

    Args:
        kind: the settings class.
        section: plain values by name.

    Raises:
        SettingsError: an unknown name, or a value of the wrong type.
    """
    # A section may hold defaults of all settings, so `RunSettings.check` judges the values of refused ones.
    kind.check_names([name for name in section if name not in kind.owned and name not in kind.refused])
    return kind(**section)


@functools.cache
def kinds_of(cls: type[RunSettings]) -> dict[str, Any]:
    """The types of a settings class with their bounds. A framework's own field of the same name may lack the bounds."""
    shared: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        shared |= get_type_hints(base, include_extras=True) if issubclass(base, RunSettings) else {}
    own = inspect.get_annotations(cls)
    kinds = get_type_hints(cls, include_extras=True)
    return kinds | {name: kind for name, kind in shared.items() if name not in own}


def json_object(text: str) -> dict[str, Any]:
    """A dict from its JSON text. Raises `ValueError`."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"{text!r} is not a JSON object: {error}") from error


def _in_python(error: Exception) -> str:
    """The message of a msgspec error, with Python's names of types in place of JSON's."""
    words = {"array": "list", "object": "dict", "null": "None"}
    return re.sub("`[^`]*`", lambda found: re.sub(r"\w+", lambda one: words.get(one[0], one[0]), found[0]), str(error))


def _all_positive(weights: Sequence[float]) -> bool:
    return all(0 < weight < math.inf for weight in weights)
