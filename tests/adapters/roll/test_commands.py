"""The commands of the documentation that train in ROLL: its configuration can be composed of them, and is checked."""

from __future__ import annotations

import pytest
from commands import ROOT, Command, commands
from omegaconf import OmegaConf

from gem_roll.checks import check, check_devices
from gem_roll.launch import compose


@pytest.mark.parametrize("command", commands("roll"), ids=lambda command: command.name)
def test_its_overrides_are_valid(command: Command) -> None:
    config = OmegaConf.to_container(compose(ROOT / command.arguments[0], command.arguments[1:]), resolve=True)
    assert isinstance(config, dict)
    check_devices(config)
    assert check(config).env
