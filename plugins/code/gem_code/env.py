"""Programming problems, graded by running the program on tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from gem_code import grading
from gem_code._tests import Test, UnreadableTests, function_named_in, read_tests
from gem_core.env import Info
from gem_questions import BLOCK, Data, Grader, QuestionEnv, ReplyForm, Row, Verdict, checks
from gem_sandbox import LocalSandbox, Sandbox


class CodeEnv(QuestionEnv):
    """A problem to solve with a Python program that reads standard input and prints, or that defines a function.

    Action: the last block of Python between lines of three backticks. A block without a language counts if it prints,
    writes, imports or defines something. What shows output, a session or a line for a shell is no program.

    | program | reward |
    | --- | --- |
    | ends well in every test and does what is wanted | 1 |
    | does not, or exceeds a limit | 0, or with `reward="fraction"` the part of the tests that it passes |
    | there is none | `format_reward` |

    What it prints is compared line by line, with any line end and without white space behind a line; an empty line
    between others is another output, and case counts. A decimal number may be written in another way: `0.5` for `0.50`.

    A function is called in a fresh process per test, and what it returns is compared here: as JSON has it, so that a
    tuple may stand for a list. Its program may print what it likes. In `assert` the call is taken and compared as
    Python does; the assertion itself is never run beside the program, which could make anything equal.

    `info["program_error"]` says what a program did wrong: the exception that it raised, or `wrong output`. Where it hit
    a limit or died, `info["grading_error"]` says so instead.

    Programs run in a sandbox (plugins/sandbox/README.md), all tests of a problem in one, up to the first that fails. A
    sandbox that fails itself is no verdict: `step` raises `gem_sandbox.SandboxError`, and the turn counts as failed.

    Args:
        answer: the column of the tests, as an object or as JSON text:

            - `{"inputs": [...], "outputs": [...]}`, each entry a text or a list of lines; or a list of
              `{"input": ..., "output": ...}`: what is read and printed.
            - The same with `"fn_name"`, or entries with `"testtype": "functional"`: the arguments of a function, as a
              list or as lines of JSON, and what it returns. A method of a class `Solution` is called if there is one.
              If the tests do not name it, the row has to: in a column `fn_name`, `func_name` or `entry_point`, in
              `metadata`, or by the first `def` of `starter_code`.
            - a list of texts `assert function(values) == value`, also with `is`, `not`, or nothing but the call, and
              with `set`, `sorted`, `list` or `tuple` around it.
        max_tests: of more tests, those with the longest inputs are run; 1 at least.
        timeout: seconds for each test, above 0 and 3600 at most.
        memory: bytes for each process of a test, 1 MiB at least.
        output: bytes that a program may print in a test. What is wanted is never too much: twice of it may be printed.
        tolerance: where given, the output is compared word by word, and numbers may be apart by this much, absolutely
            or relative to the larger one; so are numbers that a function returns. A whole number that is
            wanted may be off by this much, however large it is.
        reward: `all` pays for passing all tests, `fraction` for each part of them; then all are run, and
            `info["score"]` is that part.
        published: give the verdict that published results rest on: texts have to be equal up to white space at both
            ends, and the program is what stands between the last two of three backticks, whatever it is.
        backend, allow_unsafe: how programs are confined; see `gem_sandbox.LocalSandbox`.
        sandbox: in place of one on this machine, for example a remote one.

    The others, and the errors: see `gem_questions.env.QuestionEnv`. Tests that cannot be run are refused at the reset.
    """

    answer_form = (
        'tests: {"inputs": [...], "outputs": [...]} of equal length, or a list of {"input": ..., "output": ...}, both '
        'with the name of a function where one is called; or a list of "assert function(values) == value"'
    )
    reply_form: ReplyForm | None = BLOCK
    instead_of: ClassVar[Mapping[str, str]] = {
        **QuestionEnv.instead_of,
        "test_key": "Use answer=...",
        "max_workers": "Leave it out: programs share the places of the sandbox",
        "sandbox_type": "Use backend=...",
    }
    tests: list[Test]
    _function: str | None = None

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
        output: int = 1 << 20,
        tolerance: float | None = None,
        reward: Literal["all", "fraction"] = "all",
        published: bool = False,
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
        self.comparison = grading.comparison_of(tolerance, published)
        self.reward = grading.checked_reward(reward)
        self._limits = grading.limits_of(timeout, memory, output)
        self._sandbox = sandbox or LocalSandbox(backend=backend, preload=("numpy",), allow_unsafe=allow_unsafe)

    def accepts(self, answer: Any) -> bool:
        """Whether there is something; `refusal` reads it."""
        return bool(answer)

    def refusal(self, row: Row) -> str | None:
        """Why the tests cannot be run."""
        column = self.columns[1]
        try:
            read_tests(row[column], function_named_in(row))
        except UnreadableTests as error:
            return f"column {column!r} must hold {self.answer_form}, and holds {row[column]!r:.80}: {error}"
        return None

    def begin(self, row: Row) -> Info:
        """Read the tests."""
        try:
            tests = read_tests(self.answer, function_named_in(row))
        except UnreadableTests:  # for a grader of the user's
            tests = []
        self._function = grading.function_of(tests)
        self.reply_form = BLOCK if self._function is None else _form_of(self._function)
        self.tests = grading.longest(tests, self.max_tests)
        return {}

    def answer_in(self, response: str) -> str | None:
        """The last program."""
        return grading.program_in(response, self._function, self.comparison.published)

    def grade(self, action: str) -> Verdict:
        """Run the tests."""
        program = self.answer_in(action)
        if program is None:
            return self.no_answer
        parts = self.reward == "fraction"
        return grading.by_tests(
            self._sandbox, program, self.tests, limits=self._limits, by=self.comparison, parts=parts
        )

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def sample_random_action(self) -> str:
        """A program that prints a number."""
        return f"```python\nprint({self.rng.randrange(100)})\n```"


def _form_of(function: str) -> ReplyForm:
    return ReplyForm(
        BLOCK.mark,
        f"Answer with Python that defines {function}, as a function or as a method of a class Solution. "
        "Put the whole program in one block:\n```python\n# your program\n```",
    )
