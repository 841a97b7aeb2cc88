"""The tests of a task, run once, in a root that no command of the policy has ever run in.

What the policy left are files, and of those only the ones that the task judges are carried over: not its processes, and
nothing of the places where the system looks for code. The tests' own files are there only now. No process there can
look into the interpreters of the tests (`gem_sandbox.LocalSandbox.shell`, `guarded`).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from gem_sandbox import Entry, LocalShell, Ran, ShellError
from gem_terminal._container import ContainerShell
from gem_terminal._judged import EVERYTHING, NEVER, with_folder, without
from gem_terminal._task import TESTS, TerminalTask

_LOGS = "/logs/verifier"
_RUNNER = "/run/gem-check.py"
_CHECK = Path(__file__).with_name("_check.py").read_text(encoding="utf-8")
_CHOOSES_CODE = re.compile(r"PYTHON|LD_|PERL|BASH_|GCONV_PATH$|LOCPATH$|(?:ENV|SHELLOPTS|BASHOPTS|IFS|PS4)$")
"""Variables by which interpreters, loaders and shells load other code, by the beginning of their names."""
_RESULT = re.compile(r"^(PASSED|FAILED|ERROR|XPASS|XFAIL|SKIPPED)\s", re.MULTILINE)
_GOOD = {"PASSED", "XFAIL", "SKIPPED"}
SYSTEM_PATH = f"/usr/bin:/bin:{os.path.join(sys.base_prefix, 'bin')}"
"""Folders that hold the system's programs only. The last has a Python where the system has none."""
OUTPUT = 1 << 20
"""Bytes of what tests print that are kept. Where they print more, a summary may be incomplete."""


class Verdict(NamedTuple):
    """What the tests say."""

    reward: float
    solved: bool = False
    problem: str | None = None
    """Why there is no reward from the tests, where they did not come to an end of their own."""


def variables_of(task: TerminalTask) -> dict[str, str]:
    """The environment of its tests: the task's own, without what chooses the code of interpreters. A test sets such
    variables itself, for the programs that need them."""
    own = {name: value for name, value in task.variables.items() if not _CHOOSES_CODE.match(name)}
    return {"PYTHONNOUSERSITE": "1", **own}


def verify(task: TerminalTask, shell: LocalShell, fresh: Callable[[], LocalShell]) -> Verdict:
    """Run the tests on what an episode has left.

    Args:
        task: what was to be done.
        shell: the episode's; it is closed.
        fresh: opens another one, guarded, with an empty root.

    Raises:
        SandboxError: the machine has no room. It says nothing about the episode.
    """
    try:
        shell.settle()
        left = shell.take(*task.judged, left_out=NEVER)
        shell.close()
        with fresh() as tests:
            tests.put({**without(task.start, task.judged), **left})
            return _tested(task, tests, tests_mode=0o700, logs_mode=0o755)
    except ShellError as error:
        return _no_verdict(task, str(error))


def verify_there(task: TerminalTask, shell: ContainerShell, fresh: Callable[[], ContainerShell]) -> Verdict:
    """Run the tests in another container of the same image, or in the same one where all of it is judged.

    Args:
        task: what was to be done.
        shell: the episode's; it is closed.
        fresh: opens another one.

    Raises:
        EnvError: no other container can be started.
    """
    try:
        shell.settle()
        if EVERYTHING in task.judged:
            return _tested_there(task, shell, NEVER)
        with fresh() as tests:
            judged = task.judged if task.folder else with_folder(task.judged, tests.working_folder())
            tests.run(_removing(judged), seconds=task.test_seconds)
            shell.send(tests, judged)
            shell.close()
            return _tested_there(task, tests, NEVER)
    except ShellError as error:
        return _no_verdict(task, str(error))
    finally:
        shell.close()


def _tested_there(task: TerminalTask, shell: ContainerShell, removed: Iterable[str]) -> Verdict:
    emptied = shell.run(_removing(removed), seconds=task.test_seconds)
    if emptied.exit_code != 0:  # what is left there could be a reward of the policy's own
        return _no_verdict(task, f"{TESTS} and {_LOGS} could not be emptied: {emptied.output.strip()[:200]}")
    # An image may have a user of its own. No process of the policy is there that could write to the logs.
    return _tested(task, shell, tests_mode=0o755, logs_mode=0o777)


def _removing(paths: Iterable[str]) -> str:
    return f"rm -rf -- {' '.join(map(shlex.quote, paths))}"


def _no_verdict(task: TerminalTask, problem: str) -> Verdict:
    """Pays no more than a failure: to keep the tests from a verdict must never be better than one."""
    return Verdict(min(0.0, task.rewards.least), problem=problem)


def _tested(task: TerminalTask, shell: LocalShell | ContainerShell, *, tests_mode: int, logs_mode: int) -> Verdict:
    folders = {TESTS: Entry(is_folder=True, mode=tests_mode), _LOGS: Entry(is_folder=True, mode=logs_mode)}
    shell.put({**folders, **task.tests, _RUNNER: Entry(_CHECK.encode())})
    word = secrets.token_hex(16)
    checked = f"python3 -I -S -B {_RUNNER} {task.script} 3<<<{word}"
    command = checked if task.rule == "check" else f"bash --norc --noprofile {task.script}"
    return _verdict(task, shell, shell.run(command, seconds=task.test_seconds), word)


def _verdict(task: TerminalTask, tests: LocalShell | ContainerShell, ran: Ran, word: str) -> Verdict:
    if ran.ending != "exit":
        return _no_verdict(task, f"the tests did not end: {ran.ending}")
    if task.rule == "reward file":
        tests.settle()
        return _reward(task, tests.take(_LOGS))
    if task.rule == "check":
        solved = ran.exit_code == 0 and word in ran.output
    elif task.rule == "exit code":
        solved = ran.exit_code == 0
    elif ran.truncated:
        return _no_verdict(task, f"the tests printed more than {OUTPUT:,} bytes, so their summary may be incomplete")
    else:
        results = _RESULT.findall(ran.output)
        solved = "PASSED" in results and {*results} <= _GOOD
    return Verdict(float(solved), solved)


def _reward(task: TerminalTask, logs: Mapping[str, Entry]) -> Verdict:
    """The number that the tests wrote."""
    try:
        if (text := logs.get(f"{_LOGS}/reward.txt")) is not None:
            reward = float(text.content.decode())
        elif (text := logs.get(f"{_LOGS}/reward.json")) is not None:
            reward = _number(json.loads(text.content))
        else:
            return _no_verdict(task, f"the tests wrote no reward to {_LOGS}")
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        return _no_verdict(task, f"the tests wrote a reward that is no number: {error}")
    least, most = task.rewards
    if not least <= reward <= most:  # so is what is not a number
        return _no_verdict(
            task,
            f"the tests of {task.name} wrote the reward {reward:g}, and the task declares {least:g} to {most:g}: "
            "write reward_range = [least, most] under [verifier] in task.toml",
        )
    return Verdict(reward, reward >= most)


def _number(value: Any) -> float:
    """A number, the one called `reward`, or the only one."""
    if isinstance(value, dict):
        values = cast("dict[str, Any]", value)
        value = values["reward"] if "reward" in values else next(iter(values.values()), None)
    return float(value)
