"""The commands of the documentation that train in OpenRLHF: its own parser and our checks accept them."""

from __future__ import annotations

import runpy

import pytest

from gem_openrlhf import check_command
from gem_support.commands import ROOT, Command, commands
from gem_train.models import named_model


@pytest.mark.parametrize("command", commands("openrlhf"), ids=lambda command: command.name)
def test_its_flags_are_valid(command: Command) -> None:
    program = ROOT / command.program
    if program.suffix == ".py" and not command.arguments:
        assert program.is_file()  # test_learning.py runs it, with what a CPU needs
        return
    defaults, flags = [], [*command.arguments]
    if program.suffix == ".py":
        example = runpy.run_path(str(program))
        model, flags = named_model(flags, "--actor.model_name_or_path")
        chosen = {**example["FLAGS"], **example["MODELS"].get(model, {}), "--actor.model_name_or_path": model}
        defaults = [part for flag in chosen.items() for part in flag]
    assert check_command([*defaults, *flags]).env
