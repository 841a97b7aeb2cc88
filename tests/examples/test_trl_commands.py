"""The commands of the documentation that train in TRL: their arguments are valid. Nothing is trained."""

from __future__ import annotations

import runpy

import pytest
import tyro
from accelerate.commands.launch import launch_command_parser
from torch.distributed.run import get_args_parser

from gem_support.commands import ROOT, Command, commands


@pytest.mark.parametrize("command", commands("trl"), ids=lambda command: command.name)
def test_arguments_are_those_of_the_example_and_its_launcher(command: Command) -> None:
    options = tyro.cli(runpy.run_path(str(ROOT / command.program))["Options"], args=[*command.arguments])
    assert options.updates > 0
    if command.words[0] == "torchrun":
        assert get_args_parser().parse_args([*command.words[1:]]).training_script == command.program
    elif command.words[0] == "accelerate":
        assert launch_command_parser().parse_args([*command.words[2:]]).training_script == command.program
    else:
        assert command.words[0] == "python"
