"""The flags `--gem.*`, in addition to OpenRLHF's own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from gem_openrlhf.plugin import OPENRLHF
from gem_train.settings import CORRECTION_SETTINGS, FILTER_SETTINGS, Count, RunSettings, json_object


@dataclass(kw_only=True)
class OpenRLHFSettings(RunSettings):
    """The settings from the flags `--gem.*`; `python -m gem_openrlhf --help` explains each."""

    adapter = OPENRLHF
    prefix: ClassVar[str] = "--gem."
    separator: ClassVar[str] = " "
    response_limit: ClassVar[str] = "--rollout.max_new_tokens"
    owned: ClassVar[Mapping[str, str]] = {"gamma": "--algo.advantage.gamma", "lam": "--algo.advantage.lambd"}
    refused: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(FILTER_SETTINGS, "OpenRLHF has a filter of its own. Use --algo.dynamic_filtering_enable."),
        **dict.fromkeys(
            CORRECTION_SETTINGS, "OpenRLHF has corrections of its own. Use --algo.advantage.is_correction_level."
        ),
    }

    steps: Count = field(metadata={"help": "Batches to train on."})


@dataclass(kw_only=True)
class TrainerSettings(OpenRLHFSettings):
    """The settings with OpenRLHF's own arguments, for the records of the process that trains."""

    arguments: SimpleNamespace = field(default_factory=SimpleNamespace)
    """As OpenRLHF parsed them, in groups."""

    def described(self) -> dict[str, Any]:
        """The settings by name, and OpenRLHF's under `openrlhf`."""
        return {**super().described(), "openrlhf": _plain(self.arguments)}


def parse(flags: Sequence[str]) -> tuple[OpenRLHFSettings, list[str]]:
    """The settings in a command line, and the flags that are left for OpenRLHF.

    A wrong or missing flag ends the program as argparse does.

    Raises:
        SettingsError: a flag `--gem.*` that does not exist, or a value outside its bounds.
    """
    own, rest = _parser().parse_known_args([*flags])
    names = [flag.partition("=")[0] for flag in rest]
    OpenRLHFSettings.check_names([name.removeprefix("--gem.") for name in names if name.startswith("--gem.")])
    values = {name.removeprefix("gem."): value for name, value in vars(own).items()}
    return OpenRLHFSettings(**values), rest


def updates_per_pass(args: Any) -> int:
    """Updates of the policy in a pass over a batch, by OpenRLHF's arguments."""
    return args.rollout.batch_size * args.rollout.n_samples_per_prompt // args.train.batch_size


def updates_per_batch(args: Any) -> int:
    """Updates of the policy on each batch, by OpenRLHF's arguments."""
    return updates_per_pass(args) * args.train.max_epochs


def usage() -> str:
    """The help of the flags `--gem.*`."""
    return _parser().format_help()


def _plain(arguments: SimpleNamespace) -> dict[str, Any]:
    """A namespace of namespaces as a dict of dicts, without the settings of this adapter."""
    return {
        name: _plain(one) if isinstance(one, SimpleNamespace) else one
        for name, one in vars(arguments).items()
        if not isinstance(one, OpenRLHFSettings)
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gem_openrlhf",
        usage="python -m gem_openrlhf --gem.env ID --gem.steps N [flags of openrlhf.cli.train_ppo_ray]",
        add_help=False,
        allow_abbrev=False,
    )
    group = parser.add_argument_group("gem", "environments instead of prompts, and per-turn advantages")
    kinds = get_type_hints(OpenRLHFSettings)
    for name, one in OpenRLHFSettings.offered().items():
        needed = name == "env" or (one.default is MISSING and one.default_factory is MISSING)
        # Without its flag, a setting keeps its default.
        options: dict[str, Any] = {"required": needed, "default": argparse.SUPPRESS, "help": _help(one)}
        group.add_argument(f"--gem.{name}", **options, **_reading(kinds[name]))
    return parser


def _help(one: Field[Any]) -> str:
    return one.metadata["help"].replace("%", "%%")


def _reading(kind: Any) -> dict[str, Any]:
    """How argparse reads a value of this type."""
    if get_origin(kind) is Literal:
        return {"choices": [*get_args(kind)]}
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(kind) is list:
        return {"nargs": "*", "metavar": "X", "type": get_args(kind)[0]}
    if get_origin(kind) is dict:
        return {"metavar": "JSON", "type": _or_error(json_object)}
    if type(None) in get_args(kind):
        return {"type": _or_none(get_args(kind)[0])}
    return {"type": kind}


def _or_error(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:  # argparse would not show its message
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _or_none(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        return None if text.lower() == "none" else kind(text)

    convert.__name__ = kind.__name__  # argparse shows this name in messages
    return convert
