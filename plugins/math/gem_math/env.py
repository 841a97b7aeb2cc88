"""Mathematical questions: an answer is right if it means what the reference means, or by the published verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gem_core.env import Info
from gem_core.responses import last_box
from gem_math.references import answer_of, is_prose, need
from gem_questions import BOX, Data, Grader, QuestionEnv, Row, Verdict, as_list, checks, published_box


class MathEnv(QuestionEnv):
    """A question whose answer is a number or an expression.

    Action: the answer in the last `\\boxed{...}`.

    | answer | reward |
    | --- | --- |
    | means the same as one of the accepted ones | 1 |
    | means something else, cannot be read, or is longer than 1,000 characters | 0 |
    | none | `format_reward` |

    Two answers mean the same if they are equal as numbers, expressions, points, intervals, sets, lists, matrices,
    equations or words:

    - Numbers are exact. `0.50` is `1/2`, and `0.0` is not `1.6e-19`. Where the reference is a decimal of three digits
      or more, a more precise answer may round to it. Eight digits stand for a number that no decimal is equal to.
    - A plain number has to be carried out: `17-29` is no answer for `-12`, and `x < 6/2` is none for `x < 3`. One power
      or factorial is carried out enough, a piece of the question is not, nor is its value with another base or a
      larger fraction. A finished number counts even if it stands in the question, unless the question wants it in
      another form. Drawings (`[asy]`) are not part of the question.
    - Of a chain the last side counts, if all sides are equal: `6\\cdot 8-5 = 43`. Of `16\\pi \\approx 50.27` the exact
      side counts, and the decimal where the question or the reference is rounded. The decimal has to be rounded right.
    - An equation is solved: `2x = 10` is no answer for `x = 5`. What the question wants expanded, factored, simplified
      or rationalized has to have that form; so has a number that it wants as a decimal, a percentage, a mixed number,
      in lowest terms or in scientific notation, or rounded to a place.
    - Units, percent and words like million are factors: `100 cm` is `1 m`, `50%` is `1/2`, `5 million` is not `5`. A
      unit or percent may be left out where the question names it.
    - `101_2` is no number in base ten. A base may be left out where the question names it.
    - Order matters in points and in runs of letters. In lists it does where the question asks for an order. A point may
      be written as `x=1, y=2`; the question says in which order, or else the alphabet does.
    - The name in `x = 5` may be left out, but not be another one. A quantity that the question asks for may be named:
      `f(2) = 3`, `AB:BC = 3:4`. One that it gives, or does not ask for, may not: `a+b = 25` for `a^2+b^2`.
    - A letter before brackets is a function if the question uses it as one or no sum stands in the brackets: `s(0)` is
      not 0. Names of arguments, of constants of integration and numbers of roots mean nothing.
    - An angle is in degrees where the question asks for an angle and does not say radians.

    Args:
        answer: the column of the answer: a text, a number, or a list of them of which any will do. A text with a box
            counts by what is in it, and one that ends in `#### 18`, as those of GSM8K do, by what follows ####.
            Several boxes in one sentence are one answer; the published verdict takes the last one. A data set of
            which every such text is prose is refused; where some are, there is a warning.
        published: give the verdict that published results rest on: equal texts, numbers or values, and math-verify
            where they leave it open. It accepts some wrong answers (docs/environments.md).
        timeout: seconds of CPU time that math-verify may take for a published verdict; where it fails or takes longer,
            `info["grading_error"]` says why.

    The others, and the errors: see `gem_questions.env.QuestionEnv`.

    Raises:
        MissingExtraError: math-verify is not installed, or mpmath, which comes with it.
    """

    reply_form = BOX
    instead_of: ClassVar[Mapping[str, str]] = {
        **QuestionEnv.instead_of,
        "use_mp": "Leave it out: answers are graded in a process of their own",
    }

    def __init__(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "answer",
        template: str | None = None,
        instruction: bool | str = True,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        grader: Grader | str | None = None,
        published: bool = False,
        timeout: float = 3.0,
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
        need("math_verify" if published else "mpmath")
        self.published, self.timeout = published, checks.seconds("timeout", timeout)

    asked: str = ""
    """The question, which is part of what an answer means."""

    def begin(self, row: Row) -> Info:
        """Read the question."""
        self.asked = row[self.columns[0]]
        return {}

    def doubt(self, answer: Any) -> str | None:
        """Is every accepted answer prose?"""
        if not all(is_prose(str(each)) for each in as_list(answer)):
            return None
        return (
            "is prose that cannot be read as mathematics, so no answer means the same. Name a column of answers, or of "
            "texts with the answer in \\boxed{...} or after ####"
        )

    def answer_in(self, response: str) -> str | None:
        """The content of the last box."""
        return (published_box if self.published else last_box)(response)

    def grade(self, action: str) -> Verdict:
        """Compare with every accepted answer."""
        given = self.answer_in(action)
        if given is None:
            return self.no_answer
        from gem_math import grading

        references = [answer_of(str(each), published=self.published) for each in as_list(self.answer)]
        if self.published:
            return grading.by_published_rules(given, references, self.timeout)
        return grading.by_meaning(given, references, self.asked)

    def sample_random_action(self) -> str:
        """A number in a box."""
        return f"\\boxed{{{self.rng.randrange(100)}}}"

    def expert_action(self) -> str:
        """The first reference answer of the data, in a box."""
        return f"\\boxed{{{answer_of(str(as_list(self.answer)[0]), published=self.published)}}}"
