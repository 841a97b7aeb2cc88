"""Grading a program without an environment."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gem_code._comparison import Comparison
from gem_code._programs import last_program
from gem_code._running import run_tests
from gem_code._tests import Called, Test, UnreadableTests, function_named_in, read_tests
from gem_core.env import Info
from gem_core.errors import EnvError
from gem_core.responses import blocks
from gem_questions import RIGHT, Verdict, checks, published_block, speech_in
from gem_sandbox import Limits, LocalSandbox, Sandbox


def verify(
    answer: str,
    reference: Any,
    question: str = "",
    *,
    row: Mapping[str, Any] | None = None,
    max_tests: int = 12,
    timeout: float = 10.0,
    memory: int = 1 << 30,
    output: int = 1 << 20,
    tolerance: float | None = None,
    reward: Literal["all", "fraction"] = "all",
    published: bool = False,
    sandbox: Sandbox | None = None,
) -> Verdict:
    """Does a Python program pass tests? The verdict of the `code:` ids. It runs in a sandbox.

    Args:
        answer: the program, or a whole response with the program in its last block of Python between lines of three
            backticks; thoughts are left out.
        reference: the tests, in any of the forms of `gem_code.env.CodeEnv`.
        question: not used; the graders of other kinds of question need it.
        row: of the data set. It may name the function that the tests call, for example `{"fn_name": "add"}`.
        max_tests, timeout, memory, output, tolerance, reward, published: as of `gem_code.env.CodeEnv`.
        sandbox: in place of one on this machine, which all calls of the process share.

    Returns:
        A verdict, which is true if all tests passed. `found` is false where a response has blocks, and none is a
        program. `info["program_error"]` says what the program did wrong, or `info["grading_error"]` which limit it hit.

    Raises:
        TypeError: the answer is no text.
        ValueError: the reference holds no tests that can be run.
        EnvError: a limit that cannot be.
        SandboxError: the machine cannot run programs safely.

    Example:
        >>> from gem_code import verify
        >>> tests = {"inputs": ["3 4", "1 1"], "outputs": ["7", "2"]}
        >>> verify("print(sum(map(int, input().split())))", tests).correct
        True
        >>> verify("print(7)", tests, reward="fraction").reward
        0.5
        >>> verify("print(x)", tests).info["program_error"]
        "NameError: name 'x' is not defined"
        >>> bool(verify("def add(a, b): return a + b", ["assert add(3, 4) == 7"]))
        True
    """
    speech = speech_in(answer)
    try:
        tests = read_tests(reference, function_named_in(row or {}))
    except UnreadableTests as error:
        raise ValueError(f"these are no tests that can be run: {error}. They are {reference!r:.200}") from error
    program = program_in(speech, function_of(tests), published) if blocks(speech) else speech
    if program is None:
        return Verdict(0.0, found=False)
    return by_tests(
        sandbox or _sandbox(),
        program,
        longest(tests, checks.whole("max_tests", max_tests, 1)),
        limits=limits_of(timeout, memory, output),
        by=comparison_of(tolerance, published),
        parts=checked_reward(reward) == "fraction",
    )


def by_tests(
    sandbox: Sandbox, program: str, tests: Sequence[Test], *, limits: Limits, by: Comparison, parts: bool
) -> Verdict:
    """Run a program on tests. With `parts`, the part that it passes is paid, otherwise all or nothing."""
    done = run_tests(sandbox, program, tests, limits=limits, by=by, to_the_end=parts)
    score = done.passed / len(tests)
    info: Info = {"score": score} if parts else {}
    if done.error is None:
        return Verdict(1.0, correct=True, info=info) if parts else RIGHT
    info["program_error" if done.error.graded else "grading_error"] = done.error.text
    return Verdict(score if parts else 0.0, info=info)


def program_in(response: str, function: str | None, published: bool) -> str | None:
    """The program in a response, or `None`."""
    return published_block(response) if published else last_program(response, function)


def function_of(tests: Sequence[Test]) -> str | None:
    """The function that tests call, if they call one."""
    return next((test.function for test in tests if isinstance(test, Called)), None)


def longest(tests: Sequence[Test], most: int) -> list[Test]:
    """All tests, or of more than `most` those with the longest inputs."""
    return sorted(tests, key=lambda test: len(test.given), reverse=True)[:most] if len(tests) > most else list(tests)


def limits_of(timeout: float, memory: int, output: int) -> Limits:
    """The limits of a test. Raises `EnvError` for those that cannot be."""
    return Limits(
        wall=checks.seconds("timeout", timeout),
        memory=checks.whole("memory", memory, 1 << 20),
        output=checks.whole("output", output, 0),
    )


def comparison_of(tolerance: float | None, published: bool) -> Comparison:
    """How outputs are compared. Raises `EnvError` for a tolerance that cannot be."""
    if tolerance is not None and checks.finite("tolerance", tolerance) < 0:
        raise EnvError(f"tolerance must not be negative, and is {tolerance!r}")
    return Comparison(tolerance, published)


def checked_reward(reward: Any) -> str:
    """`all` or `fraction`. Raises `EnvError` for anything else."""
    if reward not in ("all", "fraction"):
        raise EnvError(f"reward must be 'all' or 'fraction', and is {reward!r:.80}")
    return reward


@functools.cache
def _sandbox() -> Sandbox:
    return LocalSandbox(preload=("numpy",))
