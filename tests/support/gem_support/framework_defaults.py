"""Checks of each adapter's `defaults.csv` against the settings of the installed framework."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gem_core.errors import SettingsError
from gem_train.defaults import acting, equals, framework_settings

PATTERN = (
    r"reward|adv|clip|whiten|scale|loss|kl|entrop|_len\b|max_len|_length|max_\w*tokens|temperature|top_[pk]|min_p|penalty|"
    r"stale|async|epoch|max_steps|training_steps|num_iter|batch_size$|sgd|mask|filter|overlong|gamma|lam|correction|"
    r"importance|tis_|rollout_is|rollout_rs|ppo_epochs|norm_|max_norm|_norm\b|estimator|off_policy|epsilon|delta|beta|warmup"
)
"""In the last part of a setting's name: rewards, advantages, the loss, lengths, sampling, age and number of updates."""


def assert_complete(package: str, found: Mapping[str, Any], by_accident: str) -> None:
    """Every setting that the pattern finds is in the table, with the framework's default.

    Args:
        package: of the adapter.
        found: the framework's settings and their defaults.
        by_accident: what the pattern finds, too, and does not touch what is trained.
    """
    table = {one.setting: one.default for one in framework_settings(package)}
    wanted = {name for name in found if re.search(PATTERN, name.rpartition(".")[2])}
    new = {name for name in wanted - {*table} if not re.search(by_accident, name)}
    assert not new, f"settings of the framework that defaults.csv does not judge: {sorted(new)}"
    assert not {*table} - {*found}, "the framework no longer has these settings"
    changed = {name: found[name] for name, default in table.items() if not equals(found[name], default)}
    assert not changed, "these have another default now"


def assert_kept(package: str, read: Callable[[str], Any]) -> None:
    """Settings that are neutral or refused have their neutral values in a run without flags. `read` returns one."""
    kept = [one for one in framework_settings(package) if one.here in ("neutral", "refused")]
    assert {one.setting: read(one.setting) for one in kept if not equals(read(one.setting), one.neutral)} == {}


def assert_refused(package: str, check: Callable[[str, Any, str], Any]) -> None:
    """Another value of a refused setting is an error with its name.

    Args:
        package: of the adapter.
        check: checks a run with a setting, given its name, the other value, and this value as text.
    """
    refused = [one for one in framework_settings(package) if one.here == "refused"]
    assert refused
    for one in refused:
        with pytest.raises(SettingsError, match=re.escape(one.setting.rpartition(".")[2])):
            check(one.setting, value_of(one.other), one.other)


def assert_shown(package: str) -> None:
    """The first line names each setting that acts, unless its value is neutral."""
    shown = {one.setting: one.neutral for one in framework_settings(package) if one.here == "shown"}
    assert acting(package, lambda name: value_of(shown[name])) == ", ".join(
        f"{name}=" for name, neutral in shown.items() if not neutral
    )
    assert acting(package, lambda name: "other") == ", ".join(f"{name}=other" for name in shown)


def value_of(text: str) -> Any:
    """A value of the table."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
