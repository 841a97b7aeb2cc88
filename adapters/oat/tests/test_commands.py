"""The commands of the documentation that train in Oat: its own parser accepts them."""

from __future__ import annotations

import sys

import pytest
from oat.args import get_default_args

from gem_oat import GemOatArgs
from gem_support.commands import Command, commands
from gem_train.models import named_model


@pytest.mark.parametrize("command", commands("oat"), ids=lambda command: command.name)
def test_its_flags_are_valid(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = [*command.arguments]
    if command.program.startswith("examples/"):
        _, flags = named_model(flags, "--pretrain")
    monkeypatch.setattr(sys, "argv", [command.program, *flags])
    assert isinstance(get_default_args(GemOatArgs), GemOatArgs)  # it refuses what it does not know
