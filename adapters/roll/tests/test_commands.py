"""The commands of the documentation that train in ROLL: its configuration can be composed of them, and is checked."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from omegaconf import OmegaConf

from gem_roll.checks import check, check_devices
from gem_roll.launch import compose
from gem_support.commands import ROOT, Command, commands
from gem_train.models import named_model


@pytest.mark.parametrize("command", commands("roll"), ids=lambda command: command.name)
def test_its_overrides_are_valid(command: Command) -> None:
    if command.program.endswith(".py"):
        example = runpy.run_path(str(ROOT / command.program))
        given: Any = example["CONFIG"]
        model, own = named_model(command.arguments, "pretrain")
        overrides = [*example["MODELS"].get(model, []), *own]
    else:
        given, overrides = ROOT / command.arguments[0], [*command.arguments[1:]]
    config = OmegaConf.to_container(compose(given, overrides), resolve=True)
    assert isinstance(config, dict)
    assert check(config).env
    if not command.program.endswith(".py"):  # the example sets its devices for a CPU when it runs
        check_devices(config)
