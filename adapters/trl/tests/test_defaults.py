"""Each setting of TRL that touches what is trained has no effect, is refused, or stands in the first line of a run."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from trl import GRPOConfig

from gem_support.framework_defaults import assert_complete, assert_kept, assert_refused, assert_shown
from gem_train.defaults import acting

NAME = "gem_trl"
BY_ACCIDENT = (
    r"^(adam_.*|warmup_steps|length_column_name|prediction_loss_only|per_device_eval_batch_size|auto_find_batch_size|"
    r"include_num_input_tokens_seen|average_tokens_across_devices|metric_.*|num_completions_to_print|log_.*|logging_.*|"
    r"use_.*_filter|logging_nan_inf_filter|eval_.*|batch_eval_metrics|lr_scheduler_.*|weight_decay)$"
)
"""Of the optimizer, of logs and of evaluations."""


def test_the_table_has_every_setting_of_trl() -> None:
    made = {one.name: None if one.default_factory is MISSING else one.default_factory() for one in fields(GRPOConfig)}
    found = {one.name: made[one.name] if one.default is MISSING else one.default for one in fields(GRPOConfig)}
    assert_complete(NAME, found, BY_ACCIDENT)


def test_every_line_is_true(settings) -> None:
    plain = settings()
    assert_kept(NAME, lambda name: getattr(plain, name))

    def check(name: str, value: Any, text: str) -> None:
        settings(**{name: value})

    assert_refused(NAME, check)
    assert_shown(NAME)
    assert "beta=0.1" in acting(NAME, lambda name: getattr(settings(beta=0.1), name))
    assert "beta" not in acting(NAME, lambda name: getattr(plain, name))
