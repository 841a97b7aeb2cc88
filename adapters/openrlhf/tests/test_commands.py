"""The commands of the documentation that train in OpenRLHF: its own parser and our checks accept them."""

from __future__ import annotations

import runpy

import pytest

from gem_openrlhf import check_command
from gem_support.commands import ROOT, Command, commands


@pytest.mark.parametrize("command", commands("openrlhf"), ids=lambda command: command.name)
def test_its_flags_are_valid(command: Command) -> None:
    program = ROOT / command.program
    if program.suffix == ".py" and not command.arguments:
        assert program.is_file()  # test_learning.py runs it, with what a CPU needs
        return
    flags = runpy.run_path(str(program))["FLAGS"] if program.suffix == ".py" else {}
    defaults = [part for flag in flags.items() for part in flag]
    assert check_command([*defaults, *command.arguments]).env
