"""Each flag of Oat that touches what is trained has no effect, is refused, or stands in the first line of a run."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from oat.algorithms.ppo import PPOArgs
from runs import arguments

from gem_oat import GemOatArgs
from gem_oat._checks import UNREAD, prepare
from gem_support.framework_defaults import assert_complete, assert_kept, assert_refused, assert_shown

NAME = "gem_oat"
UNUSED = "|".join(name for names in UNREAD.values() for name in names)
BY_ACCIDENT = rf"^(adam_.*|lr_warmup_ratio|eval_.*|max_save.*|{UNUSED})$"
"""Of the optimizer and of evaluations, and flags that are refused because nothing reads them here."""


def test_the_table_has_every_flag_of_oat() -> None:
    found = {one.name: one.default for one in fields(PPOArgs) if one.default is not MISSING}
    assert_complete(NAME, found, BY_ACCIDENT)


def test_every_line_is_true(model: Path) -> None:
    plain = GemOatArgs()
    assert_kept(NAME, lambda name: getattr(plain, name))

    def check(name: str, value: Any, text: str) -> None:
        prepare(arguments(model, **{name: math.inf if text == "inf" else value}))

    assert_refused(NAME, check)
    assert_shown(NAME)
