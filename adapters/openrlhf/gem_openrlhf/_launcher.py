"""Starts OpenRLHF's own command line with environments."""

from __future__ import annotations

import dataclasses
import functools
import math
import runpy
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from openrlhf.trainer import ppo_trainer, ppo_trainer_async
from openrlhf.trainer.ray import ppo_actor, ppo_critic
from openrlhf.utils import config

from gem_core.registry import advantage_spec
from gem_openrlhf._ahead import together
from gem_openrlhf._checks import batches_ahead, check, check_agent, check_flags, check_model, make_neutral
from gem_openrlhf._images import ImageIds
from gem_openrlhf._tasks import LABEL, PROMPT, write_tasks
from gem_openrlhf.settings import OpenRLHFSettings, parse, usage
from gem_train.cleanup import clean_up_after_this_process
from gem_train.ray_errors import own_errors
from gem_train.report import curve_at_the_end

COMMAND = "openrlhf.cli.train_ppo_ray"
DEFAULT_AGENT = Path(__file__).with_name("_default_agent.py")


def launch(agent: str | Path = DEFAULT_AGENT, flags: Sequence[str] | None = None) -> None:
    """Train as `python -m openrlhf.cli.train_ppo_ray` does. Starts Ray unless the program has started it.

    Args:
        agent: a file with a class `AgentExecutor`, derived from `GemAgentExecutor`; usually `__file__`.
        flags: the command line, with OpenRLHF's flags and `--gem.*`. By default the program's own.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`, or for environment failures that
            must stop the run.
    """
    flags = sys.argv[1:] if flags is None else [*flags]
    if {"-h", "--help"} & {*flags}:
        print(usage(), end="\n", flush=True)
        settings, rest = None, ["--help"]
    else:
        settings, rest = parse(flags)
        check_flags(rest)
    path = Path(agent).resolve()
    check_agent(path)
    with ExitStack() as stack:
        if settings is not None:
            clean_up_after_this_process()
            stack.enter_context(curve_at_the_end(settings.report, ", ".join(settings.train_weights)))
        stack.enter_context(own_errors())
        stack.enter_context(_in_place_of_openrlhfs(settings, path))
        stack.enter_context(patch.object(sys, "argv", [sys.argv[0], *rest]))
        runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)


def check_command(flags: Sequence[str]) -> OpenRLHFSettings:
    """Check a command line as `launch` does, without training.

    Args:
        flags: OpenRLHF's flags and `--gem.*`. A wrong or missing flag ends the program as argparse does.

    Returns:
        The settings from the flags `--gem.*`.

    Raises:
        SettingsError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `launch`.
    """
    settings, rest = parse(flags)
    check_flags(rest)
    hierarchize: Callable[[Namespace], SimpleNamespace] = config.hierarchize

    def checked(flat: Namespace) -> None:
        check(settings, hierarchize(flat))
        raise _Checked

    # OpenRLHF's parser is inside its command, which calls this function with the parsed flags.
    argv = [sys.argv[0], *rest]
    with patch.object(config, "hierarchize", checked), patch.object(sys, "argv", argv), suppress(_Checked):
        runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)
    return settings


class _Checked(Exception):
    """Ends OpenRLHF's command before it trains."""


@contextmanager
def _in_place_of_openrlhfs(settings: OpenRLHFSettings | None, agent: Path) -> Iterator[None]:
    """Replace the names that OpenRLHF looks up when its command runs; the classes are pickled by value for Ray."""
    from gem_openrlhf import _trainer as trainer
    from gem_openrlhf import _workers as workers

    swapped: list[tuple[Any, str, Any]] = [
        (ppo_trainer, "PPOTrainer", trainer.TurnPPOTrainer),
        (ppo_trainer_async, "TrainingActor", trainer.TurnTrainingActor),
        (ppo_trainer_async, "GenerateSamplesActor", trainer.TurnSamplesActor),
        (ppo_actor, "PolicyModelActor", workers.TurnPolicyActor),
        (ppo_critic, "CriticModelActor", workers.TurnCriticActor),
    ]
    if settings is not None:
        swapped.append((config, "hierarchize", functools.partial(_prepare, config.hierarchize, settings, agent)))
    with ExitStack() as stack:
        for module, name, own in swapped:
            stack.enter_context(patch.object(module, name, own))
        yield


def _prepare(
    hierarchize: Callable[[Namespace], SimpleNamespace], settings: OpenRLHFSettings, agent: Path, flat: Namespace
) -> SimpleNamespace:
    """OpenRLHF's arguments, checked and completed from the flags `--gem.*`; OpenRLHF continues with these."""
    args = hierarchize(flat)
    make_neutral(args, sys.argv[1:])
    settings = check(settings, args)
    # The processes of a Ray cluster may have other working directories.
    named = {"report": settings.report, "record_folder": settings.record_folder}
    folders = {name: str(Path(folder).resolve()) for name, folder in named.items() if folder}
    settings = dataclasses.replace(settings, **folders)
    folder = Path(args.ckpt.path).resolve()
    args.gem = settings
    if ahead := batches_ahead(settings, args):
        # `together` has one slot more, and each slot becomes free later: after the updates on its batch.
        args.train.async_enable, args.train.async_queue_size = True, ahead + together(args)
    args.train.agent_func_path = str(agent)
    # OpenRLHF creates a critic for `gae`. Its own estimators are not used.
    args.algo.advantage.estimator = "gae" if advantage_spec(settings.advantage).needs_values else "reinforce"
    args.data.input_key, args.data.label_key = PROMPT, LABEL
    args.data.prompt_dataset = str(folder / "tasks.jsonl")
    shown = ImageIds.of_run(args)
    check_model(settings, args)
    batch, engines = args.rollout.batch_size, args.vllm.num_engines
    at_once = min(batch, settings.eval_episodes) * args.eval.n_samples_per_prompt  # what OpenRLHF evaluates
    write_tasks(
        folder / "tasks.jsonl",
        settings,
        "train",
        batch=batch,
        count=settings.steps * batch,
        concurrent=settings.concurrent("train", math.ceil(batch * args.rollout.n_samples_per_prompt / engines)),
        images=shown,
    )
    if args.eval.steps > 0:
        args.eval.dataset = str(folder / "eval.jsonl")
        write_tasks(
            folder / "eval.jsonl",
            settings,
            "eval",
            batch=settings.eval_episodes,
            count=settings.eval_episodes,
            concurrent=settings.concurrent("eval", math.ceil(at_once / engines)),
            images=shown,
        )
    return args
