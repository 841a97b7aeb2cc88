"""The flags `--gem.*`, which come on top of OpenRLHF's own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gem_core.training.settings import PlaySettings


class GemSettings(PlaySettings, frozen=True, kw_only=True, omit_defaults=True):
    """What the flags `--gem.*` say; `python -m gem_openrlhf --help` explains each."""

    steps: int
    advantage: str = "rebn"
    chat_template_kwargs: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @staticmethod
    def spelled(name: str, value: object = None) -> str:
        """As on the command line."""
        return f"--gem.{name}" if value is None else f"--gem.{name} {value}"


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
        "chat_template_kwargs",
        'arguments of the chat template, as JSON: {"enable_thinking": false}',
        type=_object,
    )
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
