"""Mathematical questions: answers are compared as texts, numbers and values first, by math-verify where that leaves it
open."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Sequence

from gem_core.env import Info
from gem_core.errors import MissingExtraError
from gem_grading import grade
from gem_math import exact, values
from gem_math.degenerate import is_degenerate
from gem_questions import checks
from gem_questions.env import RIGHT, WRONG, QuestionEnv, Verdict, as_list
from gem_questions.extraction import last_box
from gem_questions.rows import Row

_GRADER = "gem_math.verification:any_equal"


class MathEnv(QuestionEnv):
    """A question whose answer is a number or an expression.

    Action: the answer in the last `\\boxed{...}`.

    | answer | reward |
    | --- | --- |
    | equal to one of the accepted ones: the same text, number or value, or the same for math-verify | 1 |
    | another, longer than 1,000 characters, degenerate, or one that exceeds a limit of the grader | 0 |
    | none | `format_reward` |

    Degenerate are brackets that do not close or nest more than 40 deep, towers of more than two powers, and more than
    three factorials in a row. Where the grader fails or takes too long, `info["grading_error"]` says why.

    Args:
        answer: the column of the answer: a text, a number, or a list of them of which any will do. A text with a box
            counts by what is in it.
        verify: compare values too (`gem_math.values`), and ask math-verify where that leaves it open. Without it, only
            texts and plain numbers are compared, and nothing needs to be installed.
        timeout: seconds that math-verify may take; ordinary answers take 0.05 to 0.3 on a free core.

    The others, and the errors: see `gem_questions.env.QuestionEnv`.

    Raises:
        MissingExtraError: `verify`, and math-verify is not installed.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str],
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "answer",
        template: str | None = None,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        verify: bool = True,
        timeout: float = 3.0,
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
        if verify and importlib.util.find_spec("math_verify") is None:
            raise MissingExtraError(
                "grading mathematics needs the module 'math_verify', which is not installed. "
                'Next: pip install "gem-core[math]", or verify=False, which compares texts and plain numbers only'
            )
        self.verify, self.timeout = verify, checks.seconds("timeout", timeout)

    def begin(self, row: Row) -> Info:
        """Read the accepted answers."""
        self.golds = [_unboxed(str(each)) for each in as_list(self.answer)]
        return {}

    def grade(self, action: str) -> Verdict:
        """Compare with every accepted answer."""
        given = last_box(action)
        if given is None:
            return self.no_answer
        compare = _compared if self.verify else exact.equal
        outcomes = [compare(given, gold) for gold in self.golds]
        if True in outcomes:
            return RIGHT
        unclear = [gold for gold, outcome in zip(self.golds, outcomes, strict=True) if outcome is None]
        if not self.verify or not unclear or not given.strip() or len(given) > exact.MAX_CHARACTERS:
            return WRONG
        return WRONG if is_degenerate(given) else self._verified(given, unclear)

    def sample_random_action(self) -> str:
        """A number in a box."""
        return f"\\boxed{{{self.rng.randrange(100)}}}"

    def _verified(self, given: str, golds: Sequence[str]) -> Verdict:
        try:
            return RIGHT if _are_equal(given, tuple(golds), self.timeout) else WRONG
        except _Ungraded as failure:
            return Verdict(0.0, info={"grading_error": str(failure)})


class _Ungraded(Exception):
    """The grader came to no verdict."""


@functools.lru_cache(maxsize=4096)  # the answers of a group repeat each other; failures are raised, so not kept
def _are_equal(given: str, golds: tuple[str, ...], timeout: float) -> bool:
    equal, error = grade(_GRADER, given, list(golds), timeout=timeout)
    if error is not None:
        raise _Ungraded(error)
    return equal is True


def _compared(given: str, gold: str) -> bool | None:
    outcome = exact.equal(given, gold)
    return values.equal(given, gold) if outcome is None else outcome


def _unboxed(gold: str) -> str:
    inside = last_box(gold)
    return gold if inside is None else inside
