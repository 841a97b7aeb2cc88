"""The Python tool: what a model sees of its programs, and what a call is worth."""

from __future__ import annotations

import os
import pickle
import resource
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError, GemError
from gem_core.tools import Toolbox, ToolEnv
from gem_python.tool import PythonTool
from gem_support.waiting import wait_until


def env_with(**options: Any) -> ToolEnv:
    return ToolEnv(
        gem_core.make("math:Sample"),
        [PythonTool(**options)],
        tool_reward=0.1,
        tool_success_reward=0.2,
        max_tool_uses=None,
    )


def block(program: str) -> str:
    return f"<python>{program}</python>"


@pytest.fixture
def env() -> Iterator[ToolEnv]:
    with env_with(timeout=10.0) as env:
        env.reset(seed=0)
        yield env


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("print(6 * 7)", "Code execution result: 42\n"),
        ("x = 1", "Code execution result: The program printed nothing.\n"),
        ("import sys\nprint(1)\nsys.exit(0)", "Code execution result: 1\n"),
        ("# import os; os.system('ls')\nprint('rm -rf / os.system')", "Code execution result: rm -rf / os.system\n"),
        ("print('{}')", "Code execution result: {}\n"),
        ("import sys\nprint(1)\nprint(2, file=sys.stderr)", "Code execution result: 1\n2\n"),
        ("print(np.arange(3).sum(), sqrt(4), Counter('aa'))", "Code execution result: 3 2.0 Counter({'a': 2})\n"),
    ],
)
def test_programs_that_end_well(env: ToolEnv, program: str, shown: str) -> None:
    observation, reward, terminated, truncated, info = env.step(block(program))
    assert (observation, terminated, truncated) == (shown, False, False)
    assert reward == pytest.approx(0.3)
    assert info["use_tool"]
    assert (info["tool_use_counter"], info["tool_success_counter"]) == (1, 1)


@pytest.mark.parametrize(
    ("program", "last"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("print(", "SyntaxError: '(' was never closed"),
        ("print(nobody)", "NameError: name 'nobody' is not defined"),
        ("import os\nos.abort()", "Error: the program was ended by signal 6."),
    ],
)
def test_programs_that_do_not(env: ToolEnv, program: str, last: str) -> None:
    observation, reward, _, _, info = env.step(block(program))
    assert observation.endswith(f"{last}\n")
    assert reward == pytest.approx(0.1)
    assert info["tool_success_counter"] == 0
    assert last in info["tool_error"]


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_program_without_an_end_is_stopped() -> None:
    with env_with(timeout=0.5) as env:
        env.reset(seed=0)
        observation = env.step(block("print(1, flush=True)\nwhile True: pass"))[0]
    assert observation == "Code execution result: 1\nError: the program was stopped after 0.5 seconds.\n"


def test_a_program_that_only_says_it_misses_an_import_gets_no_more_time() -> None:
    with env_with(timeout=1.0) as env:
        env.reset(seed=0)
        ends = "import sys, time; time.sleep(0.6); sys.stderr.write(\"NameError: name 'os' is not defined\")"
        for code in ("", "; sys.exit(1)"):
            start = time.monotonic()
            env.step(block(f"{ends}{code}"))
            assert time.monotonic() - start < 60.0
        endless = "import sys; sys.stderr.write(\"NameError: name 'np' is not defined\"); sys.exit(1)"
        assert env.step(block(endless))[4]["tool_error"]


def test_a_fenced_block_is_a_call_too(env: ToolEnv) -> None:
    observation, *_, info = env.step("Let me see.\n```python\nprint(2)\n```\nSo it is \\boxed{3}.")
    assert observation == "Code execution result: 2\n"
    assert info["parsed_action"] == "Let me see.\n```python\nprint(2)\n```"


def test_only_the_last_line_of_an_error() -> None:
    with env_with(last_error_line=True) as env:
        env.reset(seed=0)
        assert (
            env.step(block("print(1)\n1 / 0"))[0] == "Code execution result: 1\nZeroDivisionError: division by zero\n"
        )


def test_programs_share_nothing_by_default(env: ToolEnv) -> None:
    env.step(block("x = 1\nopen('file', 'w').write('1')"))
    assert "NameError" in env.step(block("print(x)"))[0]
    assert "FileNotFoundError" in env.step(block("open('file')"))[0]


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_programs_of_an_episode_may_share_an_interpreter() -> None:
    with env_with(keep_state=True, timeout=1.0) as env:
        env.reset(seed=0)
        env.step(block("x = 20"))
        assert env.step(block("x += 1\nprint(2 * x)"))[0] == "Code execution result: 42\n"
        env.step(block("while True: pass"))
        assert "what was defined before is gone" in env.step(block("print(1)"))[0]
        env.step(block("y = 1"))
        env.reset(seed=1)
        assert "NameError" in env.step(block("print(y)"))[0]
        with pytest.raises(NotImplementedError, match="state"):
            env.get_state()


def test_environments_of_a_vector_share_it() -> None:
    tools = Toolbox([PythonTool()], max_concurrent=2)
    vector = gem_core.make_vec("math:Sample", 8, wrappers=[partial(ToolEnv, tools=tools)], seed=0)
    try:
        vector.reset()
        transition = vector.step([block(f"print({index})") for index in range(8)])
        assert [f"result: {index}\n" in text for index, text in enumerate(transition[0])] == [True] * 8
    finally:
        vector.close()
    # A thread that has handed its answer over may still be ending.
    wait_until(lambda: not [one for one in threading.enumerate() if one.name.startswith("gem-tool")])


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_it_can_be_pickled() -> None:
    tool = pickle.loads(pickle.dumps(PythonTool(timeout=2.0)))
    with ToolEnv(gem_core.make("math:Sample"), [tool]) as env:
        env.reset(seed=0)
        assert "42" in env.step(block("print(42)"))[0]


def test_long_output_is_cut_and_costs_no_time(env: ToolEnv) -> None:
    start = time.monotonic()
    observation = env.step(block("print('a' * 10_000_000)"))[0]
    assert len(observation) < 10_000
    assert "left out" in observation
    assert time.monotonic() - start < 10.0


def test_by_its_id() -> None:
    tool = gem_core.make_tool("python:Interpreter", timeout=2.0)
    assert tool.timeout == 2.0
    with pytest.raises(GemError, match="'timeout'"):
        gem_core.make_tool("python:Interpreter", timeuot=2.0)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"memory": 1}, {"output": -1}, {"backend": "none"}])
def test_what_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(GemError, match=str(next(iter(wrong.values())))):
        PythonTool(**wrong)


def test_a_machine_without_room_is_no_observation(env: ToolEnv) -> None:
    """The turn fails, so that no program is blamed for it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno(), limits[1]))
    try:
        with pytest.raises(EnvError, match=r"the machine refuses .*Too many open files"):
            env.step(block("print(1)"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert env.step(block("print(1)"))[0] == "Code execution result: 1\n"
