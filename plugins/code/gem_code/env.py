"""Programming problems, graded by running the program on tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from gem_code._running import Test, run_tests
from gem_core.env import Info
from gem_questions import BLOCK, RIGHT, Data, Grader, QuestionEnv, Row, Verdict, checks, published_block
from gem_sandbox import Limits, LocalSandbox, Sandbox

_OUTPUT_BYTES = 1 << 20


class CodeEnv(QuestionEnv):
    """A problem to solve with a Python program that reads standard input and prints.

    Action: the last block between three backticks.

    | program | reward |
    | --- | --- |
    | ends well in every test and prints what is wanted, up to white space at both ends | 1 |
    | does not, or exceeds a limit | 0 |
    | there is none | `format_reward` |

    `info["program_error"]` says what a program did wrong: the exception that it raised, or `wrong output`. Where it hit
    a limit or died, `info["grading_error"]` says so instead.

    Programs run in a sandbox (plugins/sandbox/README.md), all tests of a problem in one, up to the first that fails. A
    sandbox that fails itself is no verdict: `step` raises `gem_sandbox.SandboxError`, and the turn counts as failed.

    Args:
        answer: the column of the tests: `{"inputs": [...], "outputs": [...]}`, as an object or as JSON text, each entry
            a text or a list of lines; or a list of `{"input": ..., "output": ...}`.
        max_tests: of more tests, those with the longest inputs are run; 1 at least.
        timeout: seconds for each test, above 0 and 3600 at most.
        memory: bytes for each process of a test, 1 MiB at least.
        tolerance: where given, the output is compared word by word, and numbers may be apart by this much, absolutely
            or relative to the larger one; `None` compares texts, as upstream does.
        backend, allow_unsafe: how programs are confined; see `gem_sandbox.LocalSandbox`.
        sandbox: in place of one on this machine, for example a remote one.

    The others, and the errors: see `gem_questions.env.QuestionEnv`.
    """

    answer_form = (
        'tests: {"inputs": [...], "outputs": [...]} of equal length, or a list of {"input": ..., "output": ...}'
    )
    reply_form = BLOCK
    instead_of: ClassVar[Mapping[str, str]] = {
        **QuestionEnv.instead_of,
        "test_key": "Use answer=...",
        "max_workers": "Leave it out: programs share the places of the sandbox",
        "sandbox_type": "Use backend=...",
    }
    tests: list[Test]

    def __init__(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "tests",
        template: str | None = None,
        instruction: bool | str = True,
        format_reward: float = -0.1,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        grader: Grader | str | None = None,
        max_tests: int = 12,
        timeout: float = 10.0,
        memory: int = 1 << 30,
        tolerance: float | None = None,
        backend: str = "auto",
        allow_unsafe: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        super().__init__(
            dataset,
            split=split,
            subset=subset,
            question=question,
            answer=answer,
            template=template,
            instruction=instruction,
            format_reward=format_reward,
            shuffle_seed=shuffle_seed,
            streaming=streaming,
            grader=grader,
        )
        self.max_tests = checks.whole("max_tests", max_tests, 1)
        self.tolerance = tolerance
        self._limits = Limits(
            wall=checks.seconds("timeout", timeout),
            memory=checks.whole("memory", memory, 1 << 20),
            output=_OUTPUT_BYTES,
        )
        self._sandbox = sandbox or LocalSandbox(backend=backend, preload=("numpy",), allow_unsafe=allow_unsafe)

    def accepts(self, answer: Any) -> bool:
        """Are there tests?"""
        return bool(_tests(answer))

    def begin(self, row: Row) -> Info:
        """Read the tests."""
        tests = _tests(self.answer) or []
        self.tests = sorted(tests, key=_size, reverse=True)[: self.max_tests] if len(tests) > self.max_tests else tests
        return {}

    def answer_in(self, response: str) -> str | None:
        """The program in the last block."""
        return published_block(response)

    def grade(self, action: str) -> Verdict:
        """Run the tests."""
        program = self.answer_in(action)
        if program is None:
            return self.no_answer
        outcome = run_tests(self._sandbox, program, self.tests, limits=self._limits, tolerance=self.tolerance)
        if outcome.passed:
            return RIGHT
        return Verdict(0.0, info={"program_error" if outcome.graded else "grading_error": outcome.error})

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def sample_random_action(self) -> str:
        """A program that prints a number."""
        return f"```python\nprint({self.rng.randrange(100)})\n```"


def _tests(column: Any) -> list[Test] | None:
    """The tests of a row, or `None` where it holds none."""
    try:
        tests = json.loads(column) if isinstance(column, str) else column
        if isinstance(tests, list):
            pairs = [(test["input"], test["output"]) for test in cast("list[Mapping[str, Any]]", tests)]
        else:
            pairs = list(zip(tests["inputs"], tests["outputs"], strict=True))
    except (ValueError, TypeError, LookupError):
        return None
    return [Test(_text(given), _text(wanted)) for given, wanted in pairs]


def _text(value: Any) -> str:
    """A text as it is, a list as lines."""
    return "\n".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


def _size(test: Test) -> int:
    return len(test.given)
