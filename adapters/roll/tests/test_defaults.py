"""Each setting of ROLL that touches what is trained has no effect, is refused, or stands in the first line of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import clone
import pytest
from test_settings import WHOLE, changed

from gem_roll._completion import completed
from gem_roll.checks import check
from gem_support.framework_defaults import assert_complete, assert_kept, assert_refused, assert_shown, value_of
from gem_train.defaults import framework_settings

NAME = "gem_roll"
SECTIONS = (
    *("actor_train", "actor_train.training_args", "train_env_manager", "reward_normalization"),
    *("train_infer_correction", "train_infer_correction.is_weight"),
)
"""Of ROLL's sections, those that the trained actor, its environments and its loss read."""
BY_ACCIDENT = (
    r"profiler|report_length|^reward(_pretrain)?$|logging_|save_|eval_|adam_|warmup_(ratio|steps)|per_device|microbatch|"
    r"length_round|group_filter_cls|opd_kl|val_|stop_str|max_length|model_update_buffer|infer_batch_size|student|teacher|"
    r"^train_env_manager\.(model_up|apply_loss)"
)
"""Of the optimizer, of devices and memory, of evaluations, and of sections that are refused as a whole."""


def fields_of(kind: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a configuration class by their dotted names."""
    for one in dataclasses.fields(kind):
        default = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
        name = f"{above}{one.name}"
        if not dataclasses.is_dataclass(default):
            yield name, default
        elif name in SECTIONS:
            yield from fields_of(type(default), f"{name}.")


@pytest.mark.skipif(not clone.HOME, reason=clone.WITHOUT)
def test_the_table_has_every_setting_of_roll() -> None:
    from roll.configs.generating_args import GeneratingArguments
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    sampling = fields_of(GeneratingArguments, "train_env_manager.generating_args.")
    assert_complete(NAME, dict([*fields_of(AgenticConfig), *sampling]), BY_ACCIDENT)


def test_every_line_is_true() -> None:
    whole = completed(WHOLE, check(WHOLE))
    rolls = {one.setting: value_of(one.default) for one in framework_settings(NAME)}

    def read(name: str) -> Any:
        found: Any = whole
        for part in name.split("."):
            if part not in found:
                return rolls[name]
            found = found[part]
        return found

    assert_kept(NAME, read)
    assert_refused(NAME, lambda name, value, text: check(changed(name, value)))
    assert_shown(NAME)
