"""`gem-core check`: one line per check, a verdict, and one clear line where there is nothing to check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import gem_core
import gem_testing.command  # noqa: F401  - before a test replaces the manager that it holds
from gem_core import AdvantageSpec, Env, EnvSpec, ToolSpec
from gem_core.advantages import reinforce
from gem_core.cli._app import app
from gem_core.installation import install_line
from gem_core.plugins import manager
from gem_core.tools import Function, Tool

CORRIDOR = "game:Corridor-v0"


def run(*args: str) -> Any:
    return CliRunner().invoke(app, ["check", *args])


def document(*args: str) -> Any:
    return json.loads(run(*args, "--json").stdout)


class Forgetful(Env):
    """Does not say whether the task was solved."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "go", {}

    def step(self, action: str) -> Any:
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return "go"


class Mute(Forgetful):
    """Has no observation, so nothing else can be checked."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return None, {}


class Process(Forgetful):
    """Plays by the process that it is in."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        import os

        super().reset(seed=seed)
        return f"Say go, {os.getpid()}.", {}

    def step(self, action: str) -> Any:
        return "", 0.0, True, False, {"success": False}


class Needy(Forgetful):
    def __init__(self) -> None:
        import no_such_module_for_gem_core  # pyright: ignore[reportMissingImports] # noqa: F401


# -- what is sound -----------------------------------------------------------------------------------------------------


def test_a_sound_environment() -> None:
    result = run(CORRIDOR)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"{CORRIDOR} (environment)"
    assert any(line.split()[:2] == ["seeding", "ok"] for line in lines)
    assert lines[-1].startswith("passed: 21 checks, ")


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_a_vector_plays_the_same(backend: str) -> None:
    found = document(CORRIDOR, "--backend", backend, "--seeds", "3", "--set", "length=4")
    assert (found["passed"], found["checks"][-1]["check"], found["checks"][-1]["status"]) == (True, "vector", "ok")


def test_a_vector_over_a_data_set_plays_its_rows() -> None:
    assert document("qa:Sample", "--backend", "thread")["passed"]


def test_a_sound_tool() -> None:
    found = document("python:Interpreter")
    assert (found["kind"], found["passed"]) == ("tool", True)


@pytest.mark.parametrize(
    "name", ["reinforce", "rebn", "rebn_loo", "grpo", "drgrpo", "rloo", "turn_grpo", "gigpo", "gae"]
)
def test_shipped_estimators_are_sound(name: str) -> None:
    found = document(name)
    assert (found["kind"], found["passed"], len(found["checks"])) == ("advantage estimator", True, 4)


# -- what is not -------------------------------------------------------------------------------------------------------


def failures(*args: str) -> dict[str, list[str]]:
    assert run(*args).exit_code == 1
    found = document(*args)
    assert not found["passed"]
    return {check["check"]: check["problems"] for check in found["checks"] if check["status"] == "failed"}


def test_a_broken_promise_is_named() -> None:
    gem_core.register("checktest:Forgetful-v0", Forgetful)
    [problem] = failures("checktest:Forgetful-v0")["success"]
    assert 'Set info["success"] to a bool' in problem
    shown = run("checktest:Forgetful-v0").stdout
    assert f"success: {problem}" in shown
    assert "failed: 1 of 21 checks" in shown


def test_checks_that_would_report_noise_do_not_run() -> None:
    gem_core.register("checktest:Mute-v0", Mute)
    found = document("checktest:Mute-v0")
    status = {check["check"]: check["status"] for check in found["checks"]}
    assert (status["construction"], status["reset"], status["seeding"]) == ("ok", "failed", "not run")


def test_an_environment_that_depends_on_its_process_fails_in_processes_only() -> None:
    gem_core.register("checktest:Process-v0", Process)
    assert run("checktest:Process-v0", "--backend", "thread").exit_code == 0
    assert (
        "backend='process' was not the one played alone"
        in failures("checktest:Process-v0", "--backend", "process", "--seeds", "2")["vector"][0]
    )


class Sloppy(Tool):
    """A tool that breaks a promise, by the name of its only function."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.open = False

    def functions(self) -> list[Function]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        self.open = True
        description = "" if self.fault == "functions" else "Repeats a text."
        return [Function("echo", description, schema, examples=({"text": "hello"},))]

    def call(self, function: str, arguments: dict[str, Any], context: Any) -> str:
        if self.fault == "examples":
            raise RuntimeError("no echo today")
        if self.fault == "adversarial":
            eval(arguments["text"].removeprefix("hello"), {"__builtins__": {"__import__": __import__}})
        if self.fault == "closing" and not self.open:
            raise RuntimeError("closed")
        return arguments["text"]

    def close(self) -> None:
        if self.fault == "closing" and not self.open:
            raise RuntimeError("closed twice")
        self.open = False

    def __getstate__(self) -> dict[str, Any]:
        if self.fault == "pickling":
            raise TypeError("holds a socket")
        return vars(self)


class Loose(Sloppy):
    def __init__(self, **anything: Any) -> None:
        super().__init__()


def test_a_sound_tool_of_this_process() -> None:
    manager.add("gem_tools", ToolSpec("checktest:Sloppy", Sloppy))
    assert document("checktest:Sloppy")["passed"]


@pytest.mark.parametrize("fault", ["functions", "examples", "adversarial", "pickling", "closing"])
def test_a_broken_promise_of_a_tool_is_found_by_its_check(fault: str) -> None:
    manager.add("gem_tools", ToolSpec("checktest:Sloppy", Sloppy))
    assert fault in failures("checktest:Sloppy", "--set", f"fault={fault}")


def test_a_tool_that_takes_any_argument_is_refused() -> None:
    manager.add("gem_tools", ToolSpec("checktest:Loose", Loose))
    assert "keyword_arguments" in failures("checktest:Loose")


def short(batch: Any, *, gamma: float, gather: Any) -> Any:
    return reinforce(batch, gamma=gamma)[1:]


def by_position(batch: Any, *, gamma: float, gather: Any) -> Any:
    return reinforce(batch, gamma=gamma) + range(len(batch))


def luck(batch: Any, *, gamma: float, gather: Any) -> Any:
    import numpy

    return reinforce(batch, gamma=gamma) + numpy.random.normal()


def one_rank(batch: Any, *, gamma: float, gather: Any) -> Any:
    returns = reinforce(batch, gamma=gamma)
    return returns - returns.mean() if len(batch) else returns


def impatient(batch: Any, *, gamma: float, gather: Any) -> Any:
    returns = reinforce(batch, gamma=gamma)
    if len(batch):
        gather(returns)
    return returns


@pytest.mark.parametrize(
    ("estimator", "check", "words"),
    [
        (short, "numbers", "one finite number per turn"),
        (by_position, "order", "in another order gave other numbers"),
        (luck, "repeatable", "Let it depend on the batch only"),
        (one_rank, "ranks", "got other numbers than on one"),
        (impatient, "ranks", "ranks called gather [1, 0, 1] times"),
    ],
)
def test_a_broken_promise_of_an_estimator_is_found_by_its_check(estimator: Any, check: str, words: str) -> None:
    manager.add("gem_advantages", AdvantageSpec("checktest:one", estimator))
    assert words in " ".join(failures("checktest:one")[check])


# -- nothing to check --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["game:Coridor-v0"], "no environment, tool or advantage estimator 'game:Coridor-v0'. Did you mean 'game:Cor"),
        (["python:Interpeter"], "Did you mean 'python:Interpreter'?"),
        (["rebm"], "Did you mean 'rebn'"),
        (["nobody:X"], "Install the distribution that provides 'nobody'"),
        ([CORRIDOR, "--backend", "proces"], "no vector backend 'proces'. Did you mean 'process'?"),
        ([CORRIDOR, "--set", "lenght=4"], "Did you mean 'length'?"),
        (["rebn", "--seeds", "4"], "--seeds and --backend are for environments"),
        (["python:Interpreter", "--backend", "thread"], "--seeds and --backend are for environments"),
        (["rebn", "--set", "gamma=1"], "--set is for environments and tools"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], words: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (1, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert words in line


def test_a_missing_extra_is_one_line() -> None:
    manager.add("gem_envs", EnvSpec("checktest:Needy-v0", Needy, extra="kiwix"))
    result = run("checktest:Needy-v0")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert "needs the module 'no_such_module_for_gem_core'" in line
    assert line.endswith(f"Next: {install_line('kiwix')}")


def test_a_module_that_cannot_be_imported_is_one_line(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checktest_broken.py").write_text("raise RuntimeError('the printer is on fire')\n")
    monkeypatch.syspath_prepend(tmp_path)
    gem_core.register("checktest:Broken-v0", "checktest_broken:Maze")
    result = run("checktest:Broken-v0")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert "checktest_broken.py:1: RuntimeError: the printer is on fire" in line


def test_a_plugin_that_cannot_be_imported_is_one_line(site: Any, in_force: Any) -> None:
    site.add("maze", "raise RuntimeError('the licence server is down')")
    in_force()
    result = run("maze:Fork-v0")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert "gem-maze 1.0 (plugin 'maze') is broken" in line
    assert "RuntimeError: the licence server is down" in line
