"""Every command line of the documentation runs, or its arguments are parsed, or its block says why neither is done.

The commands of frameworks are checked where these are installed: in adapters/*/tests/test_commands.py and
tests/examples/test_trl_commands.py.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tomllib
from packaging.requirements import Requirement
from typer.main import get_command
from typer.testing import CliRunner

from gem_core.cli._app import app
from gem_core.plugins import manager
from gem_core.specs import AdapterSpec
from gem_support.commands import FRAMEWORKS, PLAIN_KINDS, ROOT, Command, commands, inline_commands, unfenced_commands

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
ADAPTERS: list[AdapterSpec] = [one.spec for one in manager.all_registrations("gem_adapters")]
RUN = ("list", "doctor", "new", "export")
"""Commands of gem-core that end by themselves and need no extra; `play --random` is the other one."""


def named(found: list[Command]) -> Any:
    return pytest.mark.parametrize("command", found, ids=[command.name for command in found])


@named(commands())
def test_a_command_is_checked_somewhere_or_says_why_not(command: Command) -> None:
    assert command.kind in (*PLAIN_KINDS, *FRAMEWORKS) or command.reason, (
        "no test can check this kind of command; write <!-- not run: the reason --> right above its block"
    )


def test_a_reason_stands_above_no_block_that_is_checked_whole() -> None:
    reasons = {(command.page, command.reason) for command in commands() if command.reason}
    unchecked = {(command.page, command.reason) for command in commands() if command.kind is None}
    assert reasons == {found for found in unchecked if found[1]}


def test_commands_stand_in_fenced_blocks() -> None:
    assert unfenced_commands() == []


def test_there_are_commands_of_every_framework() -> None:
    assert {command.kind for command in commands()} >= {*FRAMEWORKS, "gem-core", "nox", "pip"}


@named(commands(*PLAIN_KINDS))
def test_it_runs_or_its_arguments_are_valid(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if command.kind == "gem-core":
        monkeypatch.chdir(tmp_path)
        parse(get_command(app), command.words)
        if runs(command):
            done = CliRunner().invoke(app, list(command.words[1:]))
            assert done.exit_code == 0, done.output
    else:
        check_other(command)


@named(inline_commands())
def test_what_a_sentence_names_is_there(command: Command) -> None:
    if command.kind == "gem-core":
        check_mentioned(command.words)
    else:
        check_other(command)


# -- what makes a command valid ---------------------------------------------------------------------------------------


def runs(command: Command) -> bool:
    """Whether it is run here: it ends by itself, needs no extra, and changes nothing outside its folder."""
    local = command.words[1] == "play" and "--random" in command.words and not command.words[2].startswith("remote:")
    return command.words[1] in RUN or local


def parse(group: Any, words: tuple[str, ...], parent: Any = None) -> None:
    """Parse the arguments of a command of gem-core as it does, without running it; a wrong one raises."""
    context = group.make_context(words[0], list(words[1:]), parent=parent)
    if hasattr(group, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = group.resolve_command(context, rest)
        parse(command, (name, *rest), context)


def check_mentioned(words: tuple[str, ...]) -> None:
    """A sentence names a command and perhaps some of its options, but not all that it needs."""
    group: Any = get_command(app)
    context: Any = group.make_context("gem-core", ["list"])
    rest = [*words[1:]]
    while hasattr(group, "get_command") and rest and (command := group.get_command(context, rest[0])):
        group, rest = command, rest[1:]
    assert group.name not in (None, "gem-core"), f"gem-core has no command {words[1]}"
    # A group may have a command that it runs if none is named.
    parameters = [*group.params, *(one for part in getattr(group, "commands", {}).values() for one in part.params)]
    known = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in rest if word.startswith("-")} <= known


def check_other(command: Command) -> None:
    match command.kind:
        case "nox":
            assert command.words[1] in ("-s", "-l")
            assert command.words[1] == "-l" or command.words[2] in sessions()
        case "pip":
            check_pip(command)
        case "file":
            check_program(command)
        case "module":
            assert installable_module(command.program), f"there is no module {command.program}"
        case _:
            pass  # pytest with a folder, cd and export have no arguments that could be wrong


def check_pip(command: Command) -> None:
    assert command.words[1] == "install"
    for word in command.words[2:]:
        if word in ("-e", "--editable", "--no-build-isolation"):
            continue
        path, _, extras = word.rstrip("]").partition("[")
        if (path == "." and "gem-maze" not in command.block) or path == "gem-core":
            check_extras([extra for extra in extras.split(",") if extra])
        elif path in (".", "./gem-maze"):
            assert "new" in command.block, "no command of this block has made that folder"
        else:
            assert Requirement(word).name in known_distributions()


@pytest.mark.parametrize("adapter", [one for one in ADAPTERS if one.before], ids=lambda adapter: adapter.id)
def test_the_page_of_a_framework_has_the_lines_of_its_hint(adapter: AdapterSpec) -> None:
    lines = [*(f"pip install {each}" for each in adapter.before), f'pip install -e ".[{adapter.extra}]"']
    assert "\n".join(lines) in (ROOT / "adapters" / adapter.id / "README.md").read_text()


def check_extras(extras: list[str]) -> None:
    assert set(extras) <= EXTRAS.keys()
    assert len({*extras} & {*FRAMEWORKS}) <= 1, "frameworks exclude each other"


def check_program(command: Command) -> None:
    text = (ROOT / command.program).read_text()
    for flag in (word.partition("=")[0] for word in command.arguments if word.startswith("--")):
        # Options are strings for argparse, and names of fields for tyro and typer.
        assert f'"{flag}"' in text or flag[2:].replace("-", "_") in text, f"{command.program} has no {flag}"


@cache
def known_distributions() -> set[str]:
    first = [word for adapter in ADAPTERS for line in adapter.before for word in line.split()]
    needed = [*PROJECT["project"]["dependencies"], "nox", *(word for word in first if not word.startswith("--"))]
    for group in [*EXTRAS.values(), *PROJECT["dependency-groups"].values()]:
        needed += [one for one in group if isinstance(one, str)]
    return {Requirement(one).name for one in needed}


@cache
def sessions() -> set[str]:
    """Names of nox sessions: functions of the noxfile, and tables of each package.toml."""
    functions = [one for one in ast.parse((ROOT / "noxfile.py").read_text()).body if isinstance(one, ast.FunctionDef)]
    named = {one.name for one in functions if any("nox.session" in ast.unparse(mark) for mark in one.decorator_list)}
    files = [tomllib.loads(file.read_text()) for file in ROOT.glob("*/**/package.toml")]
    return named | {name for file in files for name in file if name != "package"}


def installable_module(name: str) -> bool:
    """Whether there is such a module, or it belongs to a framework, which is installed elsewhere."""
    return name.split(".")[0] in FRAMEWORKS or importlib.util.find_spec(name) is not None
