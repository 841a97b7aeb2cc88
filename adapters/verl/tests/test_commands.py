"""The commands of the documentation that train in verl: its configuration can be composed of them, and is checked."""

from __future__ import annotations

import runpy

import pytest

from gem_support.commands import ROOT, Command, commands
from gem_train.models import named_model
from gem_verl import compose
from gem_verl.checks import check


@pytest.mark.parametrize("command", commands("verl"), ids=lambda command: command.name)
def test_its_flags_are_valid(command: Command) -> None:
    defaults, flags = [], [*command.arguments]
    if command.program.endswith(".py"):
        example = runpy.run_path(str(ROOT / command.program))
        model, flags = named_model(flags, "actor_rollout_ref.model.path")
        defaults = [*example["FLAGS"], *example["MODELS"].get(model, [])]
    config = compose([*defaults, *flags])
    if command.reason is None:  # a command for several machines leaves out what the page has said before
        assert check(config).env
