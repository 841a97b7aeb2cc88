"""The flags `--gem.*`, which come on top of OpenRLHF's own."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from gem_core.env import Env
from gem_core.errors import SettingsError
from gem_core.failures import DEFAULT_TIMEOUT, ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.rollout import RolloutSettings
from gem_core.vector import weights_of


class GemSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags `--gem.*` say; `python -m gem_openrlhf --help` explains each."""

    env: list[str]
    steps: int
    env_weights: list[float] = []
    env_kwargs: dict[str, Any] = {}
    wrappers: list[str] = []
    modules: list[str] = []
    eval_env: list[str] = []
    eval_episodes: int = 128
    advantage: str = "rebn"
    view: Literal["episode", "turn"] = "episode"
    history: int | None = None
    system_prompt: str | None = None
    truncated_is_invalid: bool = True
    plugins: list[str] = []
    vector_backend: Literal["sync", "thread", "process", "ray"] = "thread"
    vector_workers: int | None = None
    max_concurrent: int | None = None
    env_timeout: float | None = DEFAULT_TIMEOUT
    env_retries: int = 0
    env_failure: Literal["truncate", "drop", "raise"] = "truncate"
    max_env_failure_share: float | None = 0.5
    seed: int = 0
    recording: str | None = None
    report: str | None = None

    @property
    def train_weights(self) -> dict[str, float]:
        """The environments to train on and their shares."""
        return weights_of(dict(zip(self.env, self.env_weights, strict=True)) if self.env_weights else self.env)

    @property
    def eval_weights(self) -> dict[str, float]:
        """The environments of the evaluation and their shares."""
        return weights_of(self.eval_env) if self.eval_env else self.train_weights

    @property
    def failures(self) -> FailurePolicy:
        """What becomes of environments that fail."""
        return FailurePolicy(
            self.env_timeout, self.env_retries, ErrorAction(self.env_failure), self.max_env_failure_share
        )

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
                raise SettingsError(f"--gem.modules: cannot import {module!r}: {error}") from error
        manager.enable(*self.plugins)

    def load_wrappers(self) -> list[Any]:
        """The wrappers themselves.

        Raises:
            SettingsError: one that cannot be found.
        """
        return [_load(path) for path in self.wrappers]

    def rollout(self, max_response_tokens: int, max_context_tokens: int) -> RolloutSettings:
        """How episodes become prompts."""
        return RolloutSettings(
            max_response_tokens=max_response_tokens,
            max_context_tokens=max_context_tokens,
            history=self.history,
            system_prompt=self.system_prompt,
            truncated_is_invalid=self.truncated_is_invalid,
        )


def parse(flags: Sequence[str]) -> tuple[GemSettings, list[str]]:
    """The settings in a command line, and the flags that are left for OpenRLHF.

    A flag that is wrong, or missing, ends the program as argparse does.
    """
    own, rest = _parser().parse_known_args([*flags])
    values = {name.removeprefix("gem."): value for name, value in vars(own).items()}
    return GemSettings(**values), rest


def usage() -> str:
    """The help of the flags `--gem.*`."""
    return _parser().format_help()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gem_openrlhf",
        usage="python -m gem_openrlhf --gem.env ID --gem.steps N [flags of openrlhf.cli.train_ppo_ray]",
        add_help=False,
        allow_abbrev=False,
    )
    group = parser.add_argument_group("gem", "environments in the place of prompts, and per-turn advantages")

    def flag(name: str, help: str, **options: Any) -> None:
        # A flag that is not given is left to the default in `GemSettings`.
        group.add_argument(f"--gem.{name}", help=help, default=argparse.SUPPRESS, **options)

    several: dict[str, Any] = {"nargs": "*", "metavar": "X"}
    flag("env", "environment ids to train on; `gem-core list` shows all", nargs="+", required=True, metavar="ID")
    flag("steps", "batches to train on", type=int, required=True)
    flag("env_weights", "shares of the environments in --gem.env, in the same order", type=float, **several)
    flag("env_kwargs", "keyword arguments for all environments, as a JSON object", type=_object)
    flag("wrappers", "applied to each environment in this order: package.module:name", **several)
    flag("modules", "modules that every process imports that plays, for example to call gem_core.register", **several)
    flag("eval_env", "environments of the evaluation; by default those of --gem.env", **several)
    flag("eval_episodes", "tasks of one evaluation, over all environments; see --eval.steps", type=int)
    flag("advantage", "reinforce, rebn, rebn_loo, grpo, drgrpo, rloo, gae, or a plugin's name:id; per turn")
    flag("view", "what a training row is: a whole episode (needs full history), or a turn", choices=["episode", "turn"])
    flag("history", "observations in a prompt; all by default", type=int)
    flag("system_prompt", "system message of every conversation")
    flag(
        "truncated_is_invalid",
        "a response cut off by --rollout.max_new_tokens is an empty action",
        action=argparse.BooleanOptionalAction,
    )
    flag("plugins", "plugins that may decide (gem_make_env, gem_env_error) and listen in this run", **several)
    flag(
        "vector_backend",
        "sync for environments that answer at once, thread for those that wait, process for those that compute, hang "
        "or crash, ray for several machines",
        choices=["sync", "thread", "process", "ray"],
    )
    flag("vector_workers", "threads, processes or Ray actors that share the environments of an engine", type=int)
    flag("max_concurrent", "episodes that one engine plays at once; by default its share of a batch", type=int)
    flag("env_timeout", "seconds that one reset or step may take; none waits for ever", type=_or_none(float))
    flag("env_retries", "how often a failed episode is brought back in a fresh environment", type=int)
    flag(
        "env_failure",
        "what becomes of an episode whose environment failed for good",
        choices=["truncate", "drop", "raise"],
    )
    flag(
        "max_env_failure_share",
        "the run stops once more than this share of an environment's last 40 episodes failed; none never stops it",
        type=_or_none(float),
    )
    flag("seed", "decides the tasks: row i is the same episode in every run", type=int)
    flag("recording", "folder for the episodes, one JSON-lines file per engine")
    flag("report", "folder for curve.png and metrics.jsonl")
    return parser


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"{text} is no JSON object: {error}") from error


def _or_none(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        return None if text.lower() == "none" else kind(text)

    convert.__name__ = kind.__name__  # what argparse calls it in a message
    return convert


def _load(path: str) -> Any:
    module, colon, name = path.partition(":")
    try:
        if not colon:
            raise ImportError("it is not 'package.module:name'")
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"--gem.wrappers: cannot load {path!r}: {error}") from error
    if not callable(found):
        raise SettingsError(f"--gem.wrappers: {path!r} is no function or class that takes an {Env.__name__}")
    return found
