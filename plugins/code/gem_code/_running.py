"""Running a program on tests, in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gem_code._comparison import Comparison
from gem_code._tests import Called, Test
from gem_sandbox import Execution, Imports, Limits, Sandbox

_ERROR_CHARACTERS = 500
_DRIVER = Path(__file__).with_name("_driver.py").read_text(encoding="utf-8")
_MAX_OUTPUT = 1 << 30
"""Bytes that a sandbox keeps at most."""
_ROOM = 1 << 16
"""Bytes that a program may print beyond twice what is wanted."""


class ProgramError(NamedTuple):
    """Why a program failed a test."""

    text: str
    """The last line of its traceback, its exit code, `wrong output`, or the limit that it hit."""
    graded: bool = True
    """The test came to an end; otherwise the program hit a limit, or died."""


class ProgramResult(NamedTuple):
    """How a program did."""

    passed: int
    """The tests in which it did what is wanted."""
    error: ProgramError | None = None
    """Of the first test that it failed."""


def run_tests(
    sandbox: Sandbox, program: str, tests: Sequence[Test], *, limits: Limits, by: Comparison, to_the_end: bool = False
) -> ProgramResult:
    """Run a Python program on one test after another, up to the first that it fails, or to the end.

    What is wanted never comes near the program: what it printed or returned is compared here. Where a program misses a
    well-known import, the test is repeated with it, as upstream does, and the tests before it are not; repeated tests
    together take no longer than one may. So a program has the time of one test more than there are tests, whatever it
    says.

    Args:
        sandbox: where it runs; started once for all tests, with a fresh process for each.
        program: reads standard input and prints, or defines the function that tests call.
        tests: at least one.
        limits: of each test. The output may always be twice as large as what is wanted.
        by: how outputs are compared.
        to_the_end: run the tests after one that failed, too.

    Raises:
        SandboxError: the machine cannot run it, which says nothing about the program.
    """
    imports = Imports(program, limits.wall)
    wanted = min(_ROOM + 2 * max(test.size for test in tests), _MAX_OUTPUT)
    limits = replace(limits, output=max(limits.output, wanted))
    passed, at = 0, 0
    error: ProgramError | None = None
    while at < len(tests) and (to_the_end or error is None):
        code = _code(imports.code, tests[at])
        with closing(sandbox.runs(code, (test.given for test in tests[at:]), limits=limits)) as executions:
            for test, execution in zip(tests[at:], executions, strict=False):
                failure = _failure(test, execution, by)
                if failure is not None and not execution.succeeded and imports.complete(execution):
                    break
                at += 1
                passed += failure is None
                error = error or failure
                if failure is not None and not to_the_end:
                    break
    return ProgramResult(passed, error)


def _code(program: str, test: Test) -> str:
    return f"{_DRIVER}\n\ncall({program!r})\n" if isinstance(test, Called) else program


def _failure(test: Test, execution: Execution, by: Comparison) -> ProgramError | None:
    if not execution.succeeded:
        return _failed(execution)
    if execution.stdout_truncated:
        return ProgramError("output limit: it prints more than is kept", graded=False)
    return None if test.passes(execution.stdout, by) else ProgramError("wrong output")


def _failed(execution: Execution) -> ProgramError:
    if execution.exceeded_memory:
        return ProgramError("memory: its processes together used more than they may", graded=False)
    last_line = execution.stderr.rstrip().rpartition("\n")[2]
    why = last_line or f"exit code {execution.exit_code}"
    if execution.ending == "exit":
        return ProgramError(why[:_ERROR_CHARACTERS])
    return ProgramError(f"{execution.ending}: {why}"[:_ERROR_CHARACTERS], graded=False)
