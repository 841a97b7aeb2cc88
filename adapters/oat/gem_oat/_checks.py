"""Refuses settings that cannot work, or that would silently change the algorithm, and derives the remaining ones."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from oat.algorithms.ppo import PPOArgs
from transformers import AutoTokenizer, GenerationConfig

from gem_core.errors import SettingsError
from gem_core.registry import advantage_spec
from gem_oat._args import GemOatArgs
from gem_train.checks import check_counts, check_fixed, check_multiple, check_sampling
from gem_train.rollout import RolloutSettings, end_token_ids
from gem_train.template_checks import check_conversations, check_template

FIXED: dict[str, tuple[Any, str]] = {
    "algo": ("PPO", "environments give rewards, and PPO learns from them"),
    "oracle": ("", "environments give the rewards"),
    "prompt_data": ("", "environments write the prompts"),
    "num_samples": (1, "a prompt is one turn of an episode; use --group_size"),
    "eval_n": (1, "a prompt is one turn of an episode; use --eval_episodes"),
    "num_prompt_epoch": (1, "environments have no epochs; use --max_train"),
    "max_queries": (-1, "a run ends after --max_train episodes"),
    "resume_dir": ("", "Oat restores weights but plays the same tasks again; use --pretrain with a saved model"),
    "launch_type": ("local_mp", "the program runs as processes on this machine"),
    "max_sgd_steps": (math.inf, "it would leave out a part of each batch"),
    "pi_buffer_maxlen_per_device": (None, "a batch has one row for each turn of its episodes, and no row is dropped"),
    "whiten_rewards": (False, "the estimator decides the scale; use --advantage rebn"),
    "whiten_adv": (False, "the estimator decides the scale; use --advantage rebn"),
    "reinforce_update": (False, "Oat 0.2.4 divides by zero after such an update"),
    "asynchronous": (False, "weights would change in the middle of an episode, half of them; use --max_staleness"),
    "dry_run": (False, "it trains on made-up tokens without log-probabilities"),
    "learn_rm": (False, "environments give the rewards"),
    "rnd_seed": (False, "it would apply to the learners only, and tasks come from the actors; change --seed"),
}
"""Flags of Oat that must keep these values: other values would silently change the algorithm."""

UNREAD = {
    "where prompts come from a data set": (
        *("input_key", "output_key", "train_split", "prompt_max_length", "apply_chat_template", "max_eval"),
        *("eval_data", "eval_split", "eval_input_key", "eval_output_key", "eval_batch_size", "online_evaluation"),
    ),
    "where an oracle gives the rewards": (
        *("oracle_type", "oracle_batch_size", "remote_rm_url", "remote_rm_client_workers", "bt_sample"),
        *("preference_flip_prob", "best_of_n_eval", "num_bon", "bon_temperature", "r_buffer_maxlen"),
    ),
    "where a reward model is learned": (
        *("learn_rm_only", "num_ensemble", "enn_max_try", "enn_lambda", "rm_lr", "rm_wd", "rm_hidden_dim"),
        *("rm_act_fn", "rm_sgd_steps", "rm_fixed_reg", "rm_train_budget", "rm_backbone", "rm_pretrain"),
        *("encoding_dim", "exp_method", "exp_rnd_sample", "exp_allow_second_best", "model_rollout"),
        *("max_model_data_ratio", "burn_in_period", "pure_model_based", "model_data_strategy"),
    ),
    "in learners other than PPO's": (
        *("label_smoothing", "gamma_beta_ratio", "dpo_positive_lambda", "sft_weight", "sft_sum_loss", "len_reg_alpha"),
        *("activation_offloading", "dump_all_buffer", "buffer_clear_every"),
    ),
    "with --dry_run or --resume_dir": ("dry_run_prompt_len", "dry_run_response_len", "resume_tag"),
    "in older releases": ("disable_trace_cache",),
}
"""Flags of Oat that have no effect here, by the case in which they have one."""

CRITIC = ("lam", "vf_coef", "cliprange_value", "critic_learning_rate", "critic_pretrain", "critic_max_step_adjustment")
"""Flags of Oat that only its critic reads."""

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
    "sync_params_every",
)


def prepare(args: GemOatArgs) -> GemOatArgs:
    """Check the arguments and fill in the derived ones.

    Raises:
        SettingsError: settings that cannot work together, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    args.import_modules()
    read = partial(getattr, args)
    check_fixed(FIXED, read, _spelled)
    _check_unread(args)
    check_counts(AT_LEAST_ONE, read, _spelled)
    _derive(args)
    _check_sampler(args)
    _check_machines(args)
    _check_sizes(args)
    _check_settings(args)
    _check_evaluation(args)
    _check_environments(args)
    _check_ahead(args)
    return args


def _spelled(name: str, value: Any) -> str:
    return f"--{name} {value}"


def _check_unread(args: GemOatArgs) -> None:
    unread = dict(UNREAD)
    if not advantage_spec(args.advantage).needs_values:
        unread["with a critic (--advantage gae)"] = CRITIC
    stock = PPOArgs()
    for where, names in unread.items():
        for name in names:
            if (found := getattr(args, name)) != getattr(stock, name):
                raise SettingsError(f"{_spelled(name, found)} has no effect here, only {where}. Leave it out.")


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
            f"--critic_type {args.critic_type} contradicts --advantage {args.advantage}, which decides whether there "
            "is a critic. Leave it out; turn-level PPO is --advantage gae."
        )
    args.critic_type = wanted
    if args.max_epochs not in (0, args.num_ppo_epochs):
        raise SettingsError(f"--max_epochs {args.max_epochs} is not read by Oat's PPO. Use --num_ppo_epochs.")
    args.max_epochs = args.num_ppo_epochs  # otherwise the schedule would end in the middle of the run
    if args.max_train < whole:
        raise SettingsError(f"--max_train {args.max_train} episodes are less than a batch of {whole}")


def _check_sampler(args: GemOatArgs) -> None:
    check_sampling({name: getattr(args, name) for name in ("temperature", "top_p", "top_k")}, _spelled, scaled=True)
    if args.temperature != 1 and args.tis_c is not None:
        raise SettingsError(
            f"--temperature {args.temperature} with --tis_c {args.tis_c}: vLLM's engine V1 gives probabilities "
            "before the temperature, so the correction would be wrong. Use --tis_c None, or --temperature 1."
        )


def _check_machines(args: GemOatArgs) -> None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not re.fullmatch(r"\d+(,\d+)*", visible):
        raise SettingsError(f"CUDA_VISIBLE_DEVICES={visible}: Oat needs GPU numbers such as 0,1. Or unset it.")
    if visible is not None and visible.count(",") + 1 != args.gpus:
        raise SettingsError(
            f"CUDA_VISIBLE_DEVICES={visible} with --gpus {args.gpus}: Oat uses all visible GPUs. Make both numbers "
            "equal."
        )
    if not 0 <= args.group_rank < args.num_groups:
        raise SettingsError(f"--group_rank {args.group_rank} is not from 0 to --num_groups {args.num_groups} - 1")
    if args.num_groups > 1 and (args.master_port is None or args.master_addr == "0.0.0.0"):
        raise SettingsError(
            f"--num_groups {args.num_groups}: groups meet at --master_addr, the address of group 0's machine, and "
            "--master_port. Give both, the same in all groups."
        )
    if args.gpus > 1 and not args.collocate and args.gpus % 2:
        raise SettingsError(f"--gpus {args.gpus} cannot be shared evenly by actors and learners; use --collocate")
    if args.num_gpus_per_actor not in (1, 2, 4, 8) or args.learners_per_group % args.num_gpus_per_actor:
        raise SettingsError(
            f"--num_gpus_per_actor {args.num_gpus_per_actor} is not one of 1, 2, 4 and 8, or does not divide the "
            f"{args.learners_per_group} GPUs of the actors"
        )


def _check_sizes(args: GemOatArgs) -> None:
    learners, whole, update = args.learners, args.rollout_batch_size, args.train_batch_size
    written = f"--train_batch_size {update}"
    rows = args.train_batch_size_per_device
    check_multiple(
        update,
        written,
        rows * learners,
        f"--train_batch_size_per_device {rows} times {learners} learners",
        "an update has whole micro-batches",
    )
    check_multiple(
        whole,
        f"{whole} episodes of a batch (--rollout_batch_size_per_device times {learners} learners)",
        update,
        written,
        "their quotient is the number of updates per batch",
    )
    for name in ("rollout_batch_size_per_device", "max_concurrent"):
        if (found := getattr(args, name)) is not None and found % args.group_size:
            raise SettingsError(f"--{name} {found} cannot be divided into groups of --group_size {args.group_size}")


def _check_settings(args: GemOatArgs) -> None:
    args.check("" if args.eval_steps > 0 else "--eval_steps")
    args.check_groups(args.group_size, f"--group_size {args.group_size}")
    _ = [*_rollouts(args)]


def _rollouts(args: GemOatArgs) -> Iterator[tuple[str, RolloutSettings]]:
    """How training, and evaluation if there is one, turn episodes into prompts; before each the flags of its limits."""
    for name in ("generate_max_length", *(("eval_generate_max_length",) if args.eval_steps > 0 else ())):
        length, context = getattr(args, name), args.max_model_len
        limits = f"--{name} {length} with --max_model_len {context}"
        yield limits, args.rollout(length, context, limits=limits)


def check_model(args: GemOatArgs) -> None:
    """Refuse a model whose chat template cannot carry the conversations of this run. Loads its tokenizer.

    Args:
        args: as `prepare` returns them.

    Raises:
        SettingsError, TemplateError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as
            `check_conversations`.
    """
    path, fast = args.tokenizer or args.pretrain, not args.disable_fast_tokenizer
    tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=True, use_fast=fast)
    (limits, rollout), *evaluation = _rollouts(args)
    template = rollout.template(tokenizer)
    ends = end_token_ids(template, tokenizer, _generation_config(args.pretrain))
    check_conversations(args, template, rollout, ends, limits)
    for limits, rollout in evaluation:
        check_template(template, rollout, ends, limits)


def _generation_config(model: str) -> GenerationConfig | None:
    with suppress(OSError):  # it has none
        return GenerationConfig.from_pretrained(model)
    return None


def _check_evaluation(args: GemOatArgs) -> None:
    if args.eval_steps <= 0:
        return
    actors = args.actors_per_group
    if args.eval_episodes % actors:
        raise SettingsError(f"--eval_episodes {args.eval_episodes} cannot be shared evenly by {actors} actors")
    if args.sync_params_every > 1:
        raise SettingsError(
            f"--sync_params_every {args.sync_params_every} with --eval_steps {args.eval_steps}: an evaluation would "
            "give the actors new weights in between. Use --eval_steps -1, or --sync_params_every 1."
        )


def _check_environments(args: GemOatArgs) -> None:
    share = args.rollout_batch_size_per_device * args.num_gpus_per_actor
    if len(args.train_weights) > 1 and args.max_concurrent not in (None, share):
        raise SettingsError(
            f"--max_concurrent {args.max_concurrent} with several --env: environments with short episodes would fill "
            f"most of a batch of {share} episodes per actor. Leave it out, so that each environment has its share."
        )
    slots = args.max_concurrent or share
    tasks = slots // args.group_size * args.actors_per_group * args.num_groups
    args.check_environments(tasks, f"--rollout_batch_size_per_device {args.rollout_batch_size_per_device}")
    args.check_images("and Oat has no code for images. Train it with TRL")


def _check_ahead(args: GemOatArgs) -> None:
    if not args.max_staleness:
        return
    updates = args.updates_per_batch
    if args.batches_within_bound(updates, "--train_batch_size or --num_ppo_epochs") > 1:
        raise SettingsError(
            f"--max_staleness {args.max_staleness}: an actor of Oat plays one batch at a time, so it can be one batch "
            f"ahead, and a batch serves {updates} updates. Use --max_staleness {updates}."
        )
    share = args.rollout_batch_size_per_device * args.num_gpus_per_actor
    other = {
        f"--sync_params_every {args.sync_params_every}": args.sync_params_every > 1,
        f"--max_concurrent {args.max_concurrent}": args.max_concurrent not in (None, share),
    }
    for written, given in other.items():
        if given:
            raise SettingsError(
                f"{written} makes tokens older than --max_staleness {args.max_staleness} allows. Leave one of them out."
            )
    if args.vllm_sleep:
        raise SettingsError(
            f"--vllm_sleep frees the engine's memory during updates, and with --max_staleness {args.max_staleness} the "
            "engine samples during updates. Leave one of them out."
        )
