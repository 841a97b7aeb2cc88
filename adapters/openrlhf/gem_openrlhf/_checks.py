"""Refuses settings that cannot work, or that would silently change the algorithm, before anything starts."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gem_core.errors import SettingsError
from gem_core.registry import advantage_spec
from gem_openrlhf._images import FLAG, ImageIds, plain_tokenizer
from gem_openrlhf.settings import OpenRLHFSettings, updates_per_batch
from gem_train.checks import (
    SILENT,
    check_aggregation,
    check_counts,
    check_fixed,
    check_multiple,
    check_sampling,
)
from gem_train.rollout import RolloutSettings, end_token_ids
from gem_train.template_checks import check_conversations

OURS = {
    "--algo.advantage.estimator": "OpenRLHF's estimators do not support turns; use --gem.advantage",
    "--train.agent_func_path": "the agent is the file given to launch()",
    "--data.prompt_dataset": "tasks come from environments, not from files",
    "--data.prompt_probs": "tasks come from environments; use --gem.env_weights",
    "--data.input_key": "tasks come from environments, not from files",
    "--data.label_key": "tasks come from environments, not from files",
    "--data.input_template": "environments write their own prompts; use the tokenizer's chat template",
    "--data.apply_chat_template": "it is always applied",
    "--eval.dataset": "tasks come from environments; use --eval.steps and --gem.eval_env",
}
"""Flags of OpenRLHF that this adapter sets."""

FIXED: dict[str, tuple[Any, str]] = {
    "train.num_episodes": (1, "it would play the same tasks again; use --gem.steps"),
    "train.dynamic_batch_enable": (False, "it trains on one row for each episode, and drops the others"),
    "data.max_samples": (int(1e8), "environments never run out of tasks; use --gem.steps and --gem.eval_episodes"),
    "reward.remote_url": (None, "environments give the rewards"),
    "reward.model_name_or_path": (None, "environments give the rewards"),
    "reward.normalize_enable": (False, "there is no reward model"),
    "algo.advantage.no_std_norm": (False, "the estimator decides the scale; use --gem.advantage drgrpo or reinforce"),
    "ds.lora.rank": (0, "OpenRLHF 0.11 gives vLLM the weights under PEFT's names, which no model has"),
    "critic.freezing_steps": (-1, "after the frozen steps the actor would be trained on all their batches at once"),
}
"""Flags of OpenRLHF that must keep these values: another value would change the algorithm or do nothing, without a
message."""

NEUTRAL: dict[str, Any] = {"reward.clip_range": None}
"""Flags of OpenRLHF whose defaults would change what is trained, each with the value that does not. A default of
OpenRLHF clips rewards to [-10, 10]; this one leaves them as the environment gives them."""

AT_LEAST_ONE = (
    "vllm.num_engines",
    "data.max_len",
    "rollout.max_new_tokens",
    "rollout.batch_size",
    "rollout.micro_batch_size",
    "rollout.n_samples_per_prompt",
    "train.batch_size",
    "train.micro_batch_size",
    "train.max_epochs",
    "eval.n_samples_per_prompt",
)


NOT_ZERO = ("eval.steps", "ckpt.save_steps", "logger.logging_steps")
"""OpenRLHF divides by these; -1 means never."""


def check_flags(flags: Sequence[str]) -> None:
    """Refuse flags of OpenRLHF that this adapter sets.

    Raises:
        SettingsError: such a flag is given, in full or abbreviated.
    """
    for flag in flags:
        if reason := next((why for ours, why in OURS.items() if _sets(flag, ours)), None):
            raise SettingsError(f"{flag} cannot be used: {reason}")


def make_neutral(args: SimpleNamespace, flags: Sequence[str]) -> None:
    """Give the arguments in `NEUTRAL` their values, unless a flag sets them, in full or abbreviated."""
    for name, value in NEUTRAL.items():
        if not any(_sets(flag, f"--{name}") for flag in flags):
            group, _, field = name.rpartition(".")
            setattr(attrgetter(group)(args), field, value)


def _sets(flag: str, name: str) -> bool:
    """Whether a word of a command line is the flag of this name, in full or abbreviated."""
    written = flag.partition("=")[0]
    return written.startswith("--") and name.startswith(written)


def check_agent(path: Path) -> None:
    """Refuse an agent file without an agent for OpenRLHF's engines.

    Raises:
        SettingsError: the file is missing, or does not define `AgentExecutor`.
    """
    try:
        names = {name for statement in ast.parse(path.read_text()).body for name in _names(statement)}
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise SettingsError(f"the agent {path} cannot be read: {error}") from error
    if "AgentExecutor" not in names:
        raise SettingsError(f"the agent {path} has no AgentExecutor: derive a class of that name from GemAgentExecutor")


def _names(statement: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    return [target.id for target in getattr(statement, "targets", []) if isinstance(target, ast.Name)]


def check(settings: OpenRLHFSettings, args: SimpleNamespace) -> OpenRLHFSettings:
    """Check the settings and OpenRLHF's arguments, and complete the settings from the arguments.

    Args:
        settings: from the flags `--gem.*`.
        args: OpenRLHF's parsed arguments.

    Raises:
        SettingsError: settings that cannot work together, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    settings = dataclasses.replace(settings, gamma=args.algo.advantage.gamma, lam=args.algo.advantage.lambd)
    settings.import_modules()
    check_fixed(FIXED, partial(_read, args), _spelled)
    _check_numbers(settings, args)
    _check_settings(settings, args)
    _check_loss(args)
    _check_folder(args.ckpt.path)
    _check_penalties(args)
    tasks = args.rollout.batch_size
    settings.check_environments(tasks, f"--rollout.batch_size {tasks}")
    _check_images(settings, args)
    return settings


def _check_images(settings: OpenRLHFSettings, args: SimpleNamespace) -> None:
    most, model = args.data.max_images_per_prompt, args.actor.model_name_or_path
    if not most:
        settings.check_images(
            f"and {FLAG} is 0. Set it to the number of images that a prompt may show, and use a vision-language model"
        )
        return
    written = f"{FLAG} {most}"
    ids = ImageIds.of(model, most)
    if ids is None:
        raise SettingsError(f"{written}: {model} reads text only. Use a vision-language model, or leave the flag out")
    if advantage_spec(settings.advantage).needs_values:
        raise SettingsError(
            f"{written}: --gem.advantage {settings.advantage} has a critic, which would see no images. Use an "
            "estimator without values, such as --gem.advantage grpo"
        )
    if args.ds.packing_samples:
        raise SettingsError(f"{written}: OpenRLHF cannot pack rows with images. Leave --ds.packing_samples out")
    ids.check(model)


def _read(args: SimpleNamespace, name: str) -> Any:
    return attrgetter(name)(args)


def _spelled(name: str, value: Any) -> str:
    return f"--{name} {value}"


def _check_folder(path: str) -> None:
    if {*",@*?[]"} & {*str(Path(path).resolve())}:
        raise SettingsError(
            f"--ckpt.path {path} contains one of , @ * ? [ ], which are special characters when OpenRLHF reads the "
            "tasks from that folder. Use another folder."
        )


def _check_numbers(settings: OpenRLHFSettings, args: SimpleNamespace) -> None:
    check_counts(AT_LEAST_ONE, partial(_read, args), _spelled)
    for name in NOT_ZERO:
        if attrgetter(name)(args) == 0:
            raise SettingsError(f"--{name} 0: use -1 for never, or a number of steps")
    if args.rollout.vllm_generate_batch_size not in (None, args.rollout.batch_size):
        raise SettingsError(
            f"--rollout.vllm_generate_batch_size {args.rollout.vllm_generate_batch_size} is not --rollout.batch_size "
            f"{args.rollout.batch_size}: batches would have another size and more updates. Leave it out."
        )
    episodes, batch = args.rollout.batch_size * args.rollout.n_samples_per_prompt, args.train.batch_size
    check_multiple(
        episodes,
        f"{episodes} episodes of a batch (--rollout.batch_size x --rollout.n_samples_per_prompt)",
        batch,
        f"--train.batch_size {batch}",
        "their quotient is the number of updates per batch",
    )
    models = [args.actor, args.critic] if advantage_spec(settings.advantage).needs_values else [args.actor]
    for model in models:
        # The GPUs of a tensor-parallel or ring-attention group work on the same rows.
        shared = args.ds.ring_attn_size * args.ds.tensor_parallel_size
        ranks = max(1, model.num_nodes * model.num_gpus_per_node // shared)
        check_multiple(
            batch,
            f"--train.batch_size {batch}",
            args.train.micro_batch_size * ranks,
            f"--train.micro_batch_size {args.train.micro_batch_size} times {ranks} data-parallel GPUs",
            "DeepSpeed divides each update into whole micro-batches",
        )


def _check_settings(settings: OpenRLHFSettings, args: SimpleNamespace) -> None:
    settings.check("" if args.eval.steps > 0 else "--eval.steps")
    size = args.rollout.n_samples_per_prompt
    settings.check_groups(size, f"--rollout.n_samples_per_prompt {size}")
    ahead, queue = batches_ahead(settings, args), args.train.async_queue_size
    if ahead and args.train.async_enable and queue != ahead:
        raise SettingsError(
            f"--gem.max_staleness {settings.max_staleness} lets {ahead} batches be ahead, but --train.async_queue_size "
            f"is {queue}. Leave out --train.async_enable and --train.async_queue_size."
        )
    _rollout(settings, args)


def batches_ahead(settings: OpenRLHFSettings, args: SimpleNamespace) -> int:
    """How many batches may be ahead, within `--gem.max_staleness`. Raises `SettingsError` if none."""
    return settings.batches_within_bound(updates_per_batch(args), "--train.batch_size or --train.max_epochs")


def check_model(settings: OpenRLHFSettings, args: SimpleNamespace) -> None:
    """Refuse a model whose chat template cannot carry the conversations of this run. Loads its tokenizer.

    Args:
        settings, args: as for `check`.

    Raises:
        SettingsError, TemplateError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as
            `check_conversations`.
    """
    from openrlhf.utils.utils import get_tokenizer  # here, as a wrong flag is answered before OpenRLHF is imported

    model, shown = args.actor.model_name_or_path, ImageIds.of_run(args)
    processor = get_tokenizer(model, None, use_fast=not args.data.disable_fast_tokenizer)
    tokenizer, rollout = plain_tokenizer(processor), _rollout(settings, args)
    template = rollout.template(tokenizer, shown.reader(processor) if shown else None)
    ends = end_token_ids(template, tokenizer, _generation_config(model))
    check_conversations(settings, template, rollout, ends, _token_limits(args))


def _generation_config(model: str) -> Any:
    from transformers import GenerationConfig  # as above

    with suppress(OSError):  # it has none
        return GenerationConfig.from_pretrained(model)
    return None


def _rollout(settings: OpenRLHFSettings, args: SimpleNamespace) -> RolloutSettings:
    return settings.rollout(args.rollout.max_new_tokens, args.data.max_len, limits=_token_limits(args))


def _token_limits(args: SimpleNamespace) -> str:
    return f"--rollout.max_new_tokens {args.rollout.max_new_tokens} with --data.max_len {args.data.max_len}"


def _check_loss(args: SimpleNamespace) -> None:
    mode = args.actor.loss_agg_mode
    check_aggregation(f"--actor.loss_agg_mode {mode}", mode, ["token-mean"])
    sampler = {"temperature": args.rollout.temperature, "top_p": args.rollout.top_p}
    check_sampling(sampler, lambda name, value: f"--rollout.{name} {value}", scaled=True)
    for name, wrong in (("actor.policy_loss_type", "gspo"), ("algo.advantage.is_correction_level", "seq")):
        if attrgetter(name)(args) == wrong:
            raise SettingsError(
                f"--{name} {wrong} treats all tokens of a row as one response, but a row may be an episode, a turn or "
                f"a part of one. {SILENT} Leave it out."
            )


def _check_penalties(args: SimpleNamespace) -> None:
    buffer, limit = args.reward.overlong_buffer_len, args.rollout.max_new_tokens
    if buffer is not None and buffer > limit:
        raise SettingsError(
            f"--reward.overlong_buffer_len {buffer} is above --rollout.max_new_tokens {limit}, the limit of a response"
        )
    coefficient = args.reward.stop_properly_penalty_coef
    if coefficient is not None and coefficient > 1:
        raise SettingsError(f"--reward.stop_properly_penalty_coef {coefficient} is above 1")
