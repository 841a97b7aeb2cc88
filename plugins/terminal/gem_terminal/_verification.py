"""The tests of a task, run once, in a root that no command of the policy has ever run in.

What the policy left are files, and files are all that is carried over: not its processes, not the system's programs and
links that it may have replaced, not what makes these load other code. The tests' own files are there only now.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from gem_sandbox import Entry, LocalShell, Ran, ShellError
from gem_terminal._container import ContainerShell
from gem_terminal._task import TESTS, TerminalTask

_LOGS = "/logs/verifier"
_NOT_CARRIED = (TESTS, "/logs", "/solution", "/oracle")
_RESULT = re.compile(r"^(PASSED|FAILED|ERROR|XPASS|XFAIL|SKIPPED)\s", re.MULTILINE)
_GOOD = {"PASSED", "XFAIL", "SKIPPED"}
SYSTEM_PATH = f"/usr/bin:/bin:{os.path.join(sys.base_prefix, 'bin')}"
"""Folders that hold the system's programs only. The last has a Python where the system has none."""


class Verdict(NamedTuple):
    """What the tests say."""

    reward: float
    """1 where the task is solved."""
    problem: str | None = None
    """Why there is no reward from the tests, where they did not come to an end of their own."""


def verify(task: TerminalTask, shell: LocalShell, fresh: Callable[[], LocalShell]) -> Verdict:
    """Run the tests on what an episode has left.

    Args:
        task: what was to be done.
        shell: the episode's; it is closed.
        fresh: opens another one, with an empty root.

    Raises:
        SandboxError: the machine has no room. It says nothing about the episode.
    """
    try:
        shell.settle()
        left = shell.take("/", left_out=_NOT_CARRIED)
        shell.close()
        with fresh() as tests:
            tests.put(left)
            return _tested(task, tests, tests_mode=0o700, logs_mode=0o755)
    except ShellError as error:
        return Verdict(0.0, str(error))


def verify_there(task: TerminalTask, shell: ContainerShell) -> Verdict:
    """Run the tests in the container of the episode, as Harbor does.

    Args:
        task: what was to be done.
        shell: the episode's; it is closed.
    """
    try:
        shell.settle()
        emptied = shell.run(f"rm -rf {TESTS} {_LOGS}", seconds=task.test_seconds)
        if emptied.exit_code != 0:  # what is left there could be a reward of the policy's own
            return Verdict(0.0, f"{TESTS} and {_LOGS} could not be emptied: {emptied.output.strip()[:200]}")
        # An image may have a user of its own. No process of the policy is left that could write to the logs.
        return _tested(task, shell, tests_mode=0o755, logs_mode=0o777)
    except ShellError as error:
        return Verdict(0.0, str(error))
    finally:
        shell.close()


def _tested(task: TerminalTask, shell: LocalShell | ContainerShell, *, tests_mode: int, logs_mode: int) -> Verdict:
    folders = {TESTS: Entry(is_folder=True, mode=tests_mode), _LOGS: Entry(is_folder=True, mode=logs_mode)}
    shell.put({**folders, **task.tests})
    return _verdict(task, shell, shell.run(f"bash --norc --noprofile {task.script}", seconds=task.test_seconds))


def _verdict(task: TerminalTask, tests: LocalShell | ContainerShell, ran: Ran) -> Verdict:
    if ran.ending != "exit":
        return Verdict(0.0, f"the tests did not end: {ran.ending}")
    if task.rule == "exit code":
        return Verdict(float(ran.exit_code == 0))
    if task.rule == "pytest":
        results = _RESULT.findall(ran.output)
        return Verdict(float("PASSED" in results and {*results} <= _GOOD))
    tests.settle()
    return _reward(tests.take(_LOGS))


def _reward(logs: dict[str, Entry]) -> Verdict:
    """The number that the tests wrote."""
    try:
        if (text := logs.get(f"{_LOGS}/reward.txt")) is not None:
            reward = float(text.content.decode())
        elif (text := logs.get(f"{_LOGS}/reward.json")) is not None:
            reward = _number(json.loads(text.content))
        else:
            return Verdict(0.0, f"the tests wrote no reward to {_LOGS}")
    except (ValueError, TypeError) as error:
        return Verdict(0.0, f"the tests wrote a reward that is no number: {error}")
    return Verdict(reward) if math.isfinite(reward) else Verdict(0.0, "the tests wrote a reward that is not finite")


def _number(value: Any) -> float:
    """A number, the one called `reward`, or the only one."""
    if isinstance(value, dict):
        values = cast("dict[str, Any]", value)
        value = values["reward"] if "reward" in values else next(iter(values.values()), None)
    return float(value)
