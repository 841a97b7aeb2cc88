"""Running a program on tests, in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import NamedTuple

from gem_sandbox import Execution, Imports, Limits, Sandbox

_ERROR_CHARACTERS = 500


class Test(NamedTuple):
    """What a program is given, and what it must print."""

    __test__ = False  # no test for pytest
    given: str
    """Its standard input."""
    wanted: str
    """Its standard output, up to white space at both ends."""


class ProgramResult(NamedTuple):
    """How a program did."""

    passed: bool
    """It printed what was wanted in every test."""
    error: str | None = None
    """Why it did not: the last line of its traceback, its exit code, `wrong output`, or the limit that it hit."""
    graded: bool = True
    """Every test that was run came to an end; otherwise it hit a limit, or died."""


def run_tests(
    sandbox: Sandbox, program: str, tests: Sequence[Test], *, limits: Limits, tolerance: float | None = None
) -> ProgramResult:
    """Run a Python program on one test after another, up to the first that it fails.

    What is wanted never comes near the program: the output is compared here. Where a program misses a well-known
    import, the test is repeated with it, as upstream does, and the tests before it are not; repeated tests together
    take no longer than one may. So a program has the time of one test more than there are tests, whatever it says.

    Args:
        sandbox: where it runs; started once for all tests, with a fresh process for each.
        program: reads standard input and prints.
        tests: at least one.
        limits: of each test.
        tolerance: see `same_output`.

    Raises:
        SandboxError: the machine cannot run it, which says nothing about the program.
    """
    imports = Imports(program, limits.wall)
    passed = 0
    while True:
        more, outcome, failed = _attempt(sandbox, imports.code, tests[passed:], limits, tolerance)
        passed += more
        if failed is None or not imports.complete(failed):
            return outcome


def _attempt(
    sandbox: Sandbox, program: str, tests: Sequence[Test], limits: Limits, tolerance: float | None
) -> tuple[int, ProgramResult, Execution | None]:
    """How many tests it passed, how it did, and the run that did not end well."""
    with closing(sandbox.runs(program, (test.given for test in tests), limits=limits)) as executions:
        for passed, (test, execution) in enumerate(zip(tests, executions, strict=False)):
            if not execution.succeeded:
                return passed, _failed(execution), execution
            if execution.stdout_truncated:
                return passed, ProgramResult(False, "output limit: it prints more than is kept", graded=False), None
            if not same_output(execution.stdout, test.wanted, tolerance):
                return passed, ProgramResult(False, "wrong output"), None
    return len(tests), ProgramResult(True), None


def _failed(execution: Execution) -> ProgramResult:
    if execution.exceeded_memory:
        return ProgramResult(False, "memory: its processes together used more than they may", graded=False)
    last_line = execution.stderr.rstrip().rpartition("\n")[2]
    why = last_line or f"exit code {execution.exit_code}"
    if execution.ending == "exit":
        return ProgramResult(False, why[:_ERROR_CHARACTERS])
    return ProgramResult(False, f"{execution.ending}: {why}"[:_ERROR_CHARACTERS], graded=False)


def same_output(printed: str, wanted: str, tolerance: float | None) -> bool:
    """Are these the same up to white space at both ends?

    Args:
        printed: by a program.
        wanted: by a test.
        tolerance: where given, words are compared one by one whatever stands between them, and numbers may be apart by
            this much, absolutely or relative to the larger one.
    """
    if printed.strip() == wanted.strip():
        return True
    if tolerance is None:
        return False
    ours, theirs = printed.split(), wanted.split()
    return len(ours) == len(theirs) and all(map(_close, ours, theirs, [tolerance] * len(ours)))


def _close(printed: str, wanted: str, tolerance: float) -> bool:
    if printed == wanted:
        return True
    try:
        ours, theirs = Decimal(printed), Decimal(wanted)  # a float of 400 digits is infinite, and equal to any other
        if not (ours.is_finite() and theirs.is_finite()):
            return False
        allowed = Decimal(tolerance) * max(Decimal(1), abs(ours), abs(theirs))
        return abs(ours - theirs) <= allowed
    except (ArithmeticError, ValueError):
        return False
