"""Programming problems, graded by running the program on tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from gem_code.running import Test, run_tests
from gem_core.env import Info
from gem_core.errors import EnvError
from gem_questions.env import RIGHT, WRONG, QuestionEnv, Verdict
from gem_questions.extraction import last_fence
from gem_questions.rows import Row


class CodeEnv(QuestionEnv):
    """A problem to solve with a Python program that reads standard input and prints.

    Action: the last block between three backticks.

    | program | reward |
    | --- | --- |
    | prints what is wanted in every test, up to white space at both ends | 1 |
    | does not, or exceeds a limit | 0 |
    | there is none | `format_reward` |

    Args:
        answer: the column of the tests: `{"inputs": [...], "outputs": [...]}`, as an object or as JSON text, each entry
            a text or a list of lines; or a list of `{"input": ..., "output": ...}`.
        max_tests: of more tests, those with the longest inputs are run.
        timeout: seconds for each test.
        memory: bytes for each test.

    The others, and the errors: see `gem_questions.env.QuestionEnv`.
    """

    tests: list[Test]

    def __init__(
        self,
        dataset: str,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "tests",
        template: str | None = None,
        format_reward: float = -0.1,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        max_tests: int = 12,
        timeout: float = 10.0,
        memory: int = 1 << 30,
    ) -> None:
        super().__init__(
            dataset,
            split=split,
            subset=subset,
            question=question,
            answer=answer,
            template=template,
            format_reward=format_reward,
            shuffle_seed=shuffle_seed,
            streaming=streaming,
        )
        if max_tests < 1 or timeout <= 0 or memory <= 0:
            raise EnvError(f"max_tests={max_tests}, timeout={timeout} and memory={memory} must all be above 0")
        self.max_tests, self.timeout, self.memory = max_tests, timeout, memory

    def begin(self, row: Row) -> Info:
        """Read the tests."""
        tests = _tests(self.answer)
        if not tests:
            raise EnvError(
                f"{self.questions.source}: column {self.columns[1]!r} {_FORM}, and one is {self.answer!r:.80}"
            )
        self.tests = sorted(tests, key=_size, reverse=True)[: self.max_tests] if len(tests) > self.max_tests else tests
        return {}

    def grade(self, action: str) -> Verdict:
        """Run the tests."""
        program = last_fence(action)
        if program is None:
            return self.no_answer
        outcome = run_tests(program, self.tests, timeout=self.timeout, memory=self.memory)
        if outcome.passed:
            return RIGHT
        return WRONG if outcome.error is None else Verdict(0.0, error=outcome.error)

    def sample_random_action(self) -> str:
        """A program that prints a number."""
        return f"```python\nprint({self.rng.randrange(100)})\n```"


_FORM = 'must hold {"inputs": [...], "outputs": [...]} of equal length or a list of {"input": ..., "output": ...}'


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
