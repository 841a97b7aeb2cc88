"""Running a program on tests: the seam behind which programs run.

`run_tests` is all that the environments know. At present it uses `gem_core.grading`: one child process per test, with a
time and a memory limit, which may neither write files nor start processes or threads, and prints 1 MiB at most. That is
no sandbox against code that sets its mind to it. A real one (issue 5 of 8) will replace what is behind this function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gem_core.grading import grade


class Test(NamedTuple):
    """What a program is given, and what it must print."""

    __test__ = False  # no test for pytest
    given: str
    """Its standard input."""
    wanted: str
    """Its standard output, up to white space at both ends."""


class Outcome(NamedTuple):
    """How a program did."""

    passed: bool
    """It printed what was wanted in every test."""
    error: str | None = None
    """Why it did not: the exception that it raised, `wrong output`, or the limit that it hit."""
    graded: bool = True
    """Every test that was run came to an end; otherwise it hit a limit, or died."""


def run_tests(program: str, tests: Sequence[Test], *, timeout: float, memory: int) -> Outcome:
    """Run a Python program on one test after another, up to the first that it fails.

    What is wanted never comes near the program: the output is compared here.

    Args:
        program: reads standard input and prints; no module-level state is kept from one test to the next.
        tests: at least one.
        timeout: seconds for each test.
        memory: bytes for each test.
    """
    for test in tests:
        result, error = grade("gem_code.program:run", program, test.given, timeout=timeout, memory=memory)
        if error is not None:
            return Outcome(False, error, graded=False)
        match result:
            case {"printed": str(printed)} if printed.strip() == test.wanted.strip():
                continue
            case {"raised": str(raised)}:
                return Outcome(False, raised)
            case _:
                return Outcome(False, "wrong output")
    return Outcome(True)
