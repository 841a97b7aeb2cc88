"""What ROLL's own pipeline would do without a word; for who keeps it, with our environments or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gem_core.errors import SettingsError

LENGTH_BIASED = "seq-mean-token-mean"
"""ROLL's default `loss_agg_mode`."""


def check_stock(config: Any) -> None:
    """Refuse a configuration of ROLL's own agentic pipeline that trains on nothing, or favours by length.

    Args:
        config: an `AgenticConfig`, or its yaml as a mapping.

    Raises:
        SettingsError: the first of `zero_reasons` and `length_reasons`.
    """
    for reason in (*zero_reasons(config), *length_reasons(config)):
        raise SettingsError(reason)


def check_signal(config: Any) -> None:
    """Refuse a configuration whose advantages are all zero. Raises `SettingsError`."""
    for reason in zero_reasons(config):
        raise SettingsError(reason)


def zero_reasons(config: Any) -> Iterator[str]:
    """Why all advantages would be zero, or compare an episode with nothing but itself (alibaba/ROLL issue 397)."""
    grouping = _read(config, "reward_normalization.grouping", "batch")
    size = _read(config, "train_env_manager.group_size", 1)
    alone = grouping == "traj_id" or (grouping == "traj_group_id" and size == 1)
    if alone and _compares_in_groups(config, grouping):
        yield (
            f"reward_normalization.grouping={grouping} with train_env_manager.group_size={size} compares an episode "
            "with itself, so that all advantages are zero wherever rewards come at the end. Use a group_size of at "
            "least 2, or grouping=batch."
        )


def length_reasons(config: Any) -> Iterator[str]:
    """Why long answers would count more, or less, than short ones."""
    mode = _read(config, "loss_agg_mode", LENGTH_BIASED)
    if mode == LENGTH_BIASED:
        yield (
            f"loss_agg_mode={mode} (ROLL's default) averages each row by its own length: long answers would count less "
            "than short ones. Use seq-mean-token-sum."
        )
    if _read(config, "whiten_advantages", False):
        yield (
            "whiten_advantages=True normalises over tokens: an episode would count as often as it has tokens. Use "
            "reward_normalization."
        )
    if (gamma := _read(config, "gamma", 1)) != 1:
        yield f"gamma={gamma} discounts by the token, so that long answers earn less. Use step_reward_gamma, per turn."
    if redundant := _read(config, "train_env_manager.group_size_redundancy", 0):
        yield (
            f"train_env_manager.group_size_redundancy={redundant} keeps those of a group that end first, which "
            "favours short episodes. Leave it out."
        )


def _compares_in_groups(config: Any, grouping: str) -> bool:
    """By the mean of a group, or by its standard deviation, without which ROLL gives zeros to a group of one."""
    method = _read(config, "reward_normalization.method", "identity")
    scope = "batch" if grouping == "batch" else "group"
    mean = scope if method in ("mean", "mean_std", "asym_clip") else None
    std = scope if method in ("mean_std", "asym_clip") else None
    return "group" in (
        _read(config, "reward_normalization.norm_mean_type", mean),
        _read(config, "reward_normalization.norm_std_type", std),
    )


def _read(config: Any, name: str, default: Any) -> Any:
    value = config
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return default if value is None else value
