"""Refuses settings that cannot work, or that would silently change the algorithm, before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gem_core.errors import SettingsError, near_matches
from gem_core.registry import advantage_spec
from gem_roll._completion import ALGORITHM, SAMPLING
from gem_roll.settings import ROLLSettings, batches_ahead
from gem_train.checks import (
    SILENT,
    check_aggregation,
    check_counts,
    check_fixed,
    check_multiple,
    check_rows,
    check_sampling,
)
from gem_train.rollout import RolloutSettings, end_token_ids
from gem_train.template_checks import check_conversations, check_template

AGGREGATIONS = ("seq-mean-token-sum", "seq-mean-token-sum-norm", "token-mean")
"""Aggregations that weight all tokens of a batch equally, whatever the length of their rows."""

ESTIMATOR = "gem.advantage decides the advantages"

FIXED: dict[str, tuple[Any, str]] = {
    "adv_estimator": (ALGORITHM["adv_estimator"], ESTIMATOR),
    "reward_normalization.method": ("identity", ESTIMATOR),
    "reward_normalization.norm_mean_type": (None, ESTIMATOR),
    "reward_normalization.norm_std_type": (None, ESTIMATOR),
    "reward_normalization.global_scale_factor": (None, ESTIMATOR),
    "reward_normalization.global_shift_value": (None, ESTIMATOR),
    "whiten_advantages": (False, f"{ESTIMATOR}; whitening weights turns by their number of tokens"),
    "whiten_rewards": (False, f"{ESTIMATOR}; whitening weights turns by their number of tokens"),
    "advantage_clip": (None, ESTIMATOR),
    "reward_clip": (None, "it would have no effect; environments give the rewards"),
    "gamma": (
        ALGORITHM["gamma"],
        "it discounts per token, so that long answers count less; step_reward_gamma is per turn",
    ),
    "batch_adjust_mode": (
        ALGORITHM["batch_adjust_mode"],
        "other modes remove turns from a batch at random; here copies of rows, which train nothing, fill the batch",
    ),
    "init_kl_coef": (0, "a penalty on rewards is not supported; see use_kl_loss"),
    "add_token_level_kl": (False, "a penalty on rewards is not supported; see use_kl_loss"),
    "use_opd": (False, "distillation replaces the advantages"),
    "is_pure_opd": (False, "distillation replaces the advantages"),
    "use_reward_scaling": (False, "it would have no effect"),
    "critic_warmup": (0, "warm-up batches would be played but not trained on, and there is no critic"),
    "enable_old_logprobs_recompute": (True, "each pass or update would treat its own policy as the sampling policy"),
    "force_disable_old_logprobs_recompute": (False, "see enable_old_logprobs_recompute"),
    "async_generation_ratio": (0, "gem.max_staleness sets it; otherwise episodes would be sampled with older weights"),
    "actor_train.model_update_frequency": (1, "episodes would be sampled with older weights than ROLL's loss assumes"),
    "transfer_backend": (None, "rows would be sent before the adapter decides which rows train"),
    "rollout_mock": (None, "recorded rollouts have no turns"),
    "custom_envs": ({}, "gem.env sets the environments"),
    "val_batch_size": (None, "gem.eval_episodes sets the number of tasks of an evaluation"),
    "actor_train.training_args.gradient_accumulation_steps": (1, "gem.updates sets the number of updates per batch"),
    "actor_train.apply_loss_scale": (True, "without it, the loss depends on the number of micro-batches"),
    "actor_train.use_dynamic_batching_in_train": (False, "it changes the number of updates"),
    "actor_train.use_sequence_packing": (False, "ROLL packs with Megatron only"),
    "actor_train.strategy_args.strategy_name": (
        "fsdp2_train",
        "Megatron's number of micro-batches is fixed when it starts, and batches of turns vary",
    ),
    "actor_infer.generating_args": (None, "it would replace the settings of the evaluation; see train_env_manager"),
}
"""Settings of ROLL that must stay as `completed` leaves them: another value would change the algorithm or do nothing,
without a message. Where `None` is required, any value is refused."""

OF_MANAGERS: dict[str, tuple[Any, str]] = {
    "tags": (None, "gem.env sets the environments"),
    "num_groups_partition": (None, "gem.env_weights sets the environments' shares of a batch"),
    "max_traj_per_env": (None, "it follows from the batch"),
    "format_penalty": (0, "environments give the rewards"),
    "group_size_redundancy": (0, "keeping the first episodes of a group that end favors short episodes"),
    "llm_proxy.proxy_type": ("policy", "only ROLL's own engines return the sampled ids"),
    "generating_args.num_beams": (1, "beam search does not sample"),
    "generating_args.logprobs": (0, "one log-probability per token is needed"),
}
"""The same for `train_env_manager` and `val_env_manager`."""

ROLLS_SAMPLING = {"temperature": 0.95, "top_p": 0.7, "top_k": 50, "repetition_penalty": 1.0}
"""ROLL's default sampler, which `null` stands for."""

UNREAD = (
    *("l2", "lambd", "target_kl", "use_reward_norm", "add_len_reward", "norm_mean_type", "norm_std_type"),
    *("use_token_reward", "dirty_data_mask", "val_sequence_length", "prompt_length", "response_length"),
    *("actor_train.training_args.max_steps", "train_env_manager.generating_args.do_sample"),
)
"""Settings of ROLL that its agentic pipeline does not read, at least not with this adapter."""

NEED_EACH_OTHER = {
    "pg_clip_low": "use_pg_clip_range",
    "pg_clip_high": "use_pg_clip_range",
    "kl_loss_coef": "use_kl_loss",
    "use_kl_loss": "kl_loss_coef",
}
"""Settings that have no effect unless another setting is set."""

AT_LEAST_ONE = (
    "max_steps",
    "rollout_batch_size",
    "sequence_length",
    "ppo_epochs",
    "train_env_manager.num_env_groups",
    "train_env_manager.group_size",
    "train_env_manager.generating_args.max_new_tokens",
    "val_env_manager.num_env_groups",
    "val_env_manager.group_size",
)


def check(config: Mapping[str, Any]) -> ROLLSettings:
    """Check a whole configuration and return its section `gem`.

    Args:
        config: the configuration as written, without ROLL's defaults.

    Raises:
        SettingsError: settings that cannot work together, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    section = config.get("gem") or {}
    ROLLSettings.check_names([*section])
    settings = ROLLSettings.of({**section, "gamma": config.get("step_reward_gamma", ALGORITHM["step_reward_gamma"])})
    settings.import_modules()
    read = partial(_read, config)
    fixed = {**FIXED, **{f"{one}.{name}": rule for one in MANAGERS for name, rule in OF_MANAGERS.items()}}
    check_fixed({name: rule for name, rule in fixed.items() if _has(config, name)}, read, _spelled)
    _check_names(config)
    _check_numbers(config)
    settings.check("" if read("eval_steps") else "eval_steps")
    _ = batches_ahead(settings, config.get("ppo_epochs", 1))
    _check_rollout(settings, config)
    _check_loss(settings, config)
    tasks = config["rollout_batch_size"] // (read("train_env_manager.group_size") or 1)
    settings.check_environments(tasks, f"rollout_batch_size={config['rollout_batch_size']}")
    settings.check_images("and this adapter passes no images to ROLL's router and workers. Train it with TRL")
    return settings


MANAGERS = ("train_env_manager", "val_env_manager")


def _read(config: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted name; `None` if it is not set."""
    value: Any = config
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _has(config: Mapping[str, Any], name: str) -> bool:
    """Whether a dotted name is set, even to `null`."""
    above, _, last = name.rpartition(".")
    section = _read(config, above) if above else config
    return isinstance(section, Mapping) and last in section


def _spelled(name: str, value: Any) -> str:
    return f"{name}={value}"


def _check_names(config: Mapping[str, Any]) -> None:
    for name in UNREAD:
        if _has(config, name):
            raise SettingsError(f"{_spelled(name, _read(config, name))} has no effect in ROLL's agentic pipeline")
    for name, other in NEED_EACH_OTHER.items():
        if _read(config, name) and not _read(config, other):
            raise SettingsError(f"{_spelled(name, _read(config, name))} has no effect without {other}. Set both.")


def check_devices(config: Mapping[str, Any]) -> None:
    """Refuse a configuration without GPUs for training and for sampling. Raises `SettingsError`."""
    for name in ("actor_train", "actor_infer"):
        if not _read(config, f"{name}.device_mapping"):
            raise SettingsError(f"{name}.device_mapping is not set: give its GPUs, for example list(range(0,4))")


def check_apart(settings: ROLLSettings, train: Sequence[int], infer: Sequence[int]) -> None:
    """Refuse to sample on GPUs that train at the same time. Raises `SettingsError`.

    Args:
        settings: the section `gem`.
        train, infer: the GPUs of `actor_train` and `actor_infer`.
    """
    if settings.max_staleness and (both := {*train} & {*infer}):
        raise SettingsError(
            f"gem.max_staleness={settings.max_staleness} samples while the actor trains, and both have the GPUs "
            f"{sorted(both)}. Give actor_train.device_mapping and actor_infer.device_mapping different GPUs."
        )


def check_keys(config: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse keys that look misspelled, which ROLL would ignore. Other unknown keys may be used by `${...}`.

    Args:
        config: the configuration as written.
        known: the names of ROLL's settings.

    Raises:
        SettingsError: a key is not a setting, but resembles one.
    """
    names = [*known]
    for key in config:
        if key not in names and difflib.get_close_matches(key, names, n=1, cutoff=0.85):
            raise SettingsError(f"ROLL has no setting {key} and would ignore it.{near_matches(key, names, limit=1)}")


def _check_numbers(config: Mapping[str, Any]) -> None:
    read = partial(_read, config)
    for name in (
        "max_steps",
        "rollout_batch_size",
        "sequence_length",
        "train_env_manager.generating_args.max_new_tokens",
    ):
        if read(name) is None:
            raise SettingsError(f"{name} is not set, and ROLL's default is unlikely to be what you want. Set it.")
    check_counts([name for name in AT_LEAST_ONE if _has(config, name)], read, _spelled)
    if read("pretrain") in (None, "???"):
        raise SettingsError(
            "pretrain is not set: give the folder or name of the model, for example pretrain=Qwen/Qwen3-1.7B-Base"
        )


def _check_rollout(settings: ROLLSettings, config: Mapping[str, Any]) -> None:
    read = partial(_read, config)
    batch, size = config["rollout_batch_size"], read("train_env_manager.group_size") or 1
    width = (read("train_env_manager.num_env_groups") or batch // size or 1) * size
    at_once = f"num_env_groups * group_size = {width} of train_env_manager"
    lost = "otherwise the slowest episodes of each batch would be lost"
    check_multiple(batch, f"rollout_batch_size={batch}", width, at_once, lost)
    groups, tasks = read("val_env_manager.num_env_groups"), settings.eval_episodes
    if groups:
        check_multiple(
            tasks,
            f"gem.eval_episodes={tasks}",
            groups,
            f"val_env_manager.num_env_groups={groups}",
            "otherwise the tasks of an evaluation cannot be shared evenly",
        )
    settings.check_groups(size, f"train_env_manager.group_size={size}")
    if advantage_spec(settings.advantage).needs_values:
        raise SettingsError(
            f"gem.advantage={settings.advantage} needs a critic's values, and advantages are computed here "
            "before ROLL has values. Use an estimator without values such as rebn."
        )
    _ = [*_rollouts(settings, config)]


def _rollouts(settings: ROLLSettings, config: Mapping[str, Any]) -> Iterator[tuple[str, RolloutSettings]]:
    """How training and evaluation turn episodes into prompts; before each the settings of its limits."""
    read, context = partial(_read, config), config["sequence_length"]
    for manager in MANAGERS:
        length = read(f"{manager}.generating_args.max_new_tokens") or read(
            f"{MANAGERS[0]}.generating_args.max_new_tokens"
        )
        limits = f"{manager}.generating_args.max_new_tokens={length} with sequence_length={context}"
        yield limits, settings.rollout(length, context, limits=limits)


def check_model(settings: ROLLSettings, config: Mapping[str, Any], tokenizer: Any, generation_config: Any) -> None:
    """Refuse a model whose chat template cannot carry the conversations of this run.

    Args:
        settings: the section `gem`.
        config: ROLL's configuration, checked.
        tokenizer: of the model.
        generation_config: of the model; `None` if it has none.

    Raises:
        SettingsError, TemplateError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as
            `check_conversations`.
    """
    (limits, rollout), (eval_limits, evaluation) = _rollouts(settings, config)
    template = rollout.template(tokenizer)
    ends = end_token_ids(template, tokenizer, generation_config)
    check_conversations(settings, template, rollout, ends, limits)
    check_template(template, evaluation, ends, eval_limits)


def _check_loss(settings: ROLLSettings, config: Mapping[str, Any]) -> None:
    read = partial(_read, config)
    mode = read("loss_agg_mode") or ALGORITHM["loss_agg_mode"]
    check_aggregation(f"loss_agg_mode={mode}", mode, AGGREGATIONS)
    given = {"repetition_penalty": 1.0, **SAMPLING, **(read("train_env_manager.generating_args") or {})}
    # `null` stands for ROLL's default. ROLL's trainers do not divide logits by the temperature.
    sampler = {
        name: ROLLS_SAMPLING[name] if value is None else value
        for name, value in given.items()
        if name in ROLLS_SAMPLING
    }
    check_sampling(sampler, lambda name, value: f"train_env_manager.generating_args.{name}={value}", scaled=False)
    weight = read("train_infer_correction.is_weight.weight_type")
    across = {f"train_infer_correction.is_weight.weight_type={weight}": weight in ("sequence", "geometric")}
    for one in read("train_infer_correction.filters") or []:
        if one.get("enabled"):
            kind = one.get("agg_type")
            across[f"a filter of train_infer_correction with agg_type={kind}"] = kind in ("sequence", "geometric")
    check_rows(settings, across)
    for reason in _silent_changes(config):
        raise SettingsError(f"{reason} {SILENT}")


def _silent_changes(config: Mapping[str, Any]) -> Iterator[str]:
    read = partial(_read, config)
    mode = read("loss_agg_mode") or ALGORITHM["loss_agg_mode"]
    if mode == "token-mean" and (read("use_kl_loss") or read("entropy_loss_coef")):
        yield (
            "loss_agg_mode=token-mean masks nothing, so use_kl_loss and entropy_loss_coef would include the tokens of "
            "prompts. Use seq-mean-token-sum."
        )
    precision = read("actor_train.strategy_args.strategy_config.param_dtype")
    if precision in ("bf16", "bfloat16", "fp16", "float16", "half"):
        yield (
            f"actor_train.strategy_args.strategy_config.param_dtype={precision} stores the weights in this precision, "
            "and loses most updates of a small learning rate. Leave it out: ROLL computes in bfloat16 anyway."
        )
