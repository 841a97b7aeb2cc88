"""The commands of the documentation that train in OpenRLHF: its own parser and our checks accept them."""

from __future__ import annotations

import runpy

import pytest
from commands import ROOT, Command, commands

from gem_openrlhf import check_command


@pytest.mark.parametrize("command", commands("openrlhf"), ids=lambda command: command.name)
def test_its_flags_are_valid(command: Command) -> None:
    example = runpy.run_path(str(ROOT / command.program)) if command.program.endswith(".py") else {"FLAGS": {}}
    defaults = [part for flag in example["FLAGS"].items() for part in flag]
    assert check_command([*defaults, *command.arguments]).env
