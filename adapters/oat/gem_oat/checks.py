"""What cannot work, or would silently change the algorithm, said before anything starts; what follows from the rest."""

from __future__ import annotations

import math
from typing import Any

from gem_core.errors import SettingsError
from gem_core.registry import advantage_spec
from gem_oat.args import GemOatArgs

FIXED: dict[str, tuple[Any, str]] = {
    "algo": ("PPO", "environments give rewards, and PPO learns from them"),
    "oracle": ("", "environments give the rewards"),
    "prompt_data": ("", "environments write the prompts"),
    "num_samples": (1, "a prompt is one moment of an episode; use --group_size"),
    "eval_n": (1, "a prompt is one moment of an episode; use --eval_episodes"),
    "num_prompt_epoch": (1, "environments have no epochs; use --max_train"),
    "max_epochs": (1, "Oat's learner for PPO does not read it; use --num_ppo_epochs"),
    "max_sgd_steps": (math.inf, "it counts batches, and the next one is another"),
    "pi_buffer_maxlen_per_device": (None, "a batch has as many rows as its episodes have turns, and none is left out"),
    "whiten_rewards": (False, "the estimator decides the scale; use --advantage rebn"),
    "whiten_adv": (False, "the estimator decides the scale; use --advantage rebn"),
    "reinforce_update": (False, "Oat 0.2.4 divides by zero after such an update"),
    "asynchronous": (False, "weights would change in the middle of an episode"),
    "dry_run": (False, "it trains on made-up tokens without log-probabilities"),
    "learn_rm": (False, "environments give the rewards"),
}
"""Oat's flags that have to stay as they are: another value would change the algorithm, or do nothing, silently."""

AT_LEAST_ONE = (
    "gpus",
    "num_gpus_per_actor",
    "num_groups",
    "max_train",
    "generate_max_length",
    "eval_generate_max_length",
    "rollout_batch_size_per_device",
    "train_batch_size",
    "train_batch_size_per_device",
    "num_ppo_epochs",
    "group_size",
)


def prepare(args: GemOatArgs) -> GemOatArgs:
    """The same, with what follows from them.

    Raises:
        SettingsError: settings that cannot work together, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    args.settings.import_modules()
    _check_fixed(args)
    _check_numbers(args)
    _derive(args)
    _check_sizes(args)
    _check_settings(args)
    _check_environments(args)
    return args


def _check_fixed(args: GemOatArgs) -> None:
    for name, (needed, reason) in FIXED.items():
        if (found := getattr(args, name)) != needed:
            raise SettingsError(f"--{name} {found} cannot be used: {reason}. Leave it out.")


def _check_numbers(args: GemOatArgs) -> None:
    for name in AT_LEAST_ONE:
        if (found := getattr(args, name)) < 1:
            raise SettingsError(f"--{name} {found}: a whole number of at least 1 is needed")
    for name in ("gamma", "lam"):
        if not 0 <= (found := getattr(args, name)) <= 1:
            raise SettingsError(f"--{name} {found} is not between 0 and 1")


def _derive(args: GemOatArgs) -> None:
    whole = args.rollout_batch_size_per_device * args.learners
    if args.rollout_batch_size not in (0, whole):
        raise SettingsError(
            f"--rollout_batch_size {args.rollout_batch_size} is not --rollout_batch_size_per_device "
            f"{args.rollout_batch_size_per_device} times {args.learners} learners, which is {whole}. Leave it out."
        )
    args.rollout_batch_size = whole
    wanted = "ppo" if advantage_spec(args.advantage).needs_values else "drgrpo"
    if args.critic_type not in (wanted, "drgrpo"):
        raise SettingsError(
            f"--critic_type {args.critic_type} does not go with --advantage {args.advantage}, which decides whether "
            "there is a critic. Leave it out; turn-level PPO is --advantage gae."
        )
    args.critic_type = wanted
    if args.max_train < whole:
        raise SettingsError(f"--max_train {args.max_train} episodes make no batch of {whole}")
    args.max_queries = -1  # Oat takes --max_train for it, and 50,000 would end a run early


def _check_sizes(args: GemOatArgs) -> None:
    learners, whole = args.learners, args.rollout_batch_size
    if args.gpus > 1 and not args.collocate and args.gpus % 2:
        raise SettingsError(f"--gpus {args.gpus} cannot be shared evenly by actors and learners; use --collocate")
    if learners // args.num_groups % args.num_gpus_per_actor:
        raise SettingsError(
            f"--num_gpus_per_actor {args.num_gpus_per_actor} does not divide the {learners // args.num_groups} GPUs "
            "that actors have"
        )
    step = args.train_batch_size_per_device * learners
    if args.train_batch_size % step:
        raise SettingsError(
            f"--train_batch_size {args.train_batch_size} is no multiple of --train_batch_size_per_device "
            f"{args.train_batch_size_per_device} times {learners} learners"
        )
    if whole % args.train_batch_size:
        raise SettingsError(
            f"{whole} episodes of a batch (--rollout_batch_size_per_device times {learners} learners) are no multiple "
            f"of --train_batch_size {args.train_batch_size}; their quotient is the number of updates per batch"
        )
    for name in ("rollout_batch_size_per_device", "num_env"):
        if (found := getattr(args, name)) is not None and found % args.group_size:
            raise SettingsError(f"--{name} {found} cannot be divided into groups of --group_size {args.group_size}")


def _check_settings(args: GemOatArgs) -> None:
    settings = args.settings
    settings.check()
    settings.check_groups(args.advantage, args.group_size, f"--group_size {args.group_size}")
    lengths = {args.generate_max_length, args.eval_generate_max_length if args.eval_steps > 0 else 1}
    for length in lengths:
        try:
            settings.rollout(length, args.max_model_len)
        except ValueError as error:
            raise SettingsError(f"a response of {length} tokens with --max_model_len: {error}") from error


def _check_environments(args: GemOatArgs) -> None:
    settings, actors = args.settings, args.actors_per_group
    places = args.num_env or args.rollout_batch_size_per_device * args.num_gpus_per_actor
    tasks = places // args.group_size * actors * args.num_groups
    if args.eval_episodes % actors:
        raise SettingsError(f"--eval_episodes {args.eval_episodes} cannot be shared evenly by {actors} actors")
    settings.check_environments(tasks, f"--rollout_batch_size_per_device {args.rollout_batch_size_per_device}")
