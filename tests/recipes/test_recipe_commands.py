"""The commands of the pages on recipes: their arguments are valid, and their cells and tasks are declared."""

from __future__ import annotations

import importlib

import pytest

from gem_support.commands import Command, commands
from recipes.command import parser

FOUND = [command for command in commands("module") if command.program.startswith("recipes.")]


@pytest.mark.parametrize("command", FOUND, ids=lambda command: command.name)
def test_arguments_are_those_of_the_recipe(command: Command) -> None:
    study = importlib.import_module(f"{command.program}.declared").STUDY
    options = parser(study).parse_args(command.arguments)
    runs = study.runs(options.profile)
    if options.repeat:
        assert options.repeat in {f"{run.task}/{run.cell}" for run in runs}
    for name in ("task", "cell", "seed"):
        assert set(getattr(options, name) or []) <= {getattr(run, name) for run in runs}


def test_the_pages_name_every_study() -> None:
    assert {command.program for command in FOUND} >= {
        f"recipes.{name}" for name in ("algorithms", "gamma", "transfer", "tools", "frameworks")
    }
