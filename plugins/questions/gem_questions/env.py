"""An episode of one question and one answer."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, cast

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, near_matches
from gem_questions.questions import Questions
from gem_questions.rows import Row, Source


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth."""

    reward: float
    correct: bool = False
    found: bool = True
    """There was an answer in the text."""
    error: str | None = None
    """Why grading failed; the answer counts as wrong."""


RIGHT, WRONG = Verdict(1.0, correct=True), Verdict(0.0)


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as the only entry of one."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


class QuestionEnv(Env):
    """Shows a question; whatever is answered is graded and ends the episode (terminated and truncated, as upstream).

    | `reset(...)` | question |
    | --- | --- |
    | `task=k`, as the engine calls it | place `k` of the shuffled order, which begins anew after the last question |
    | `seed=s` | drawn from all |
    | nothing | the next in the shuffled order |
    | `index=i` | row `i` of the data as it is, for evaluation |

    The data is loaded at the first reset. All environments of a process that use it share one copy.

    `info` has `success` and, the same by upstream's name, `correct`; `invalid_action` where the text has no answer;
    `grading_error` where grading failed, which counts as wrong.

    Args:
        dataset: a hub id, the path of a .jsonl, .json, .csv or .parquet file or of a data set folder, or
            `package:<package>/<file>`.
        split, subset: of a data set that has several.
        question, answer: names of the columns.
        template: what is shown, with `{question}` where the question stands; `None` shows the question alone.
        format_reward: reward of a text without an answer.
        shuffle_seed: one order of the questions per seed; `None` asks in the order of the data.
        streaming: read rows as they are needed instead of downloading all of them first; shuffles through a window
            and cannot take `index`.

    Raises:
        EnvError: the template does not say where the question stands; on the first reset, the data cannot be had or has
            no such columns.
        MissingExtraError: on the first reset, `datasets` is needed and not installed.
    """

    takes_task = True

    def __init__(
        self,
        dataset: str,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "question",
        answer: str = "answer",
        template: str | None = None,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
    ) -> None:
        if template is not None and "{question}" not in template:
            raise EnvError(f"the template {template!r} does not show the question: put {{question}} where it belongs")
        self.questions = Questions(Source(dataset, split, subset, streaming), shuffle_seed)
        self.columns = (question, answer)
        self.template = template
        self.no_answer = Verdict(format_reward, found=False)
        self._next = 0

    @abstractmethod
    def grade(self, action: str) -> Verdict:
        """Grade a text against `self.answer`."""

    def begin(self, row: Row) -> Info:
        """Take what else is needed from a row; the info to show with the question."""
        return {}

    def reset(
        self, seed: int | None = None, *, task: int | None = None, index: int | None = None, **options: Any
    ) -> ResetResult:
        """Show a question; the table above says which."""
        super().reset(seed=seed, **options)
        row = self._row(seed, task, index)
        question, self.answer = (self.column(row, name) for name in self.columns)
        if not isinstance(question, str):
            raise EnvError(f"{self.questions.source}: the question must be text, and one is {question!r:.80}")
        info = self.begin(row)
        return question if self.template is None else self.template.replace("{question}", question), info

    def step(self, action: str) -> StepResult:
        """Grade the answer."""
        verdict = self.grade(action)
        info: Info = {"success": verdict.correct, "correct": verdict.correct}
        if not verdict.found:
            info["invalid_action"] = True
        if verdict.error is not None:
            info["grading_error"] = verdict.error
        return "", verdict.reward, True, True, info

    def column(self, row: Row, name: str) -> Any:
        """The value of a column. Raises `EnvError` where there is none, with the names of those there are."""
        if name not in row:
            known = [str(column) for column in row]
            raise EnvError(
                f"{self.questions.source} has no column {name!r}.{near_matches(name, known)} "
                f"It has: {', '.join(known)}. Name the ones to use, for example question='problem', answer='answer'"
            )
        return row[name]

    def _row(self, seed: int | None, task: int | None, index: int | None) -> Row:
        if index is not None:
            return self.questions.at(index)
        if task is not None:
            return self.questions.ask(task)
        if seed is not None:
            return self.questions.draw(self.rng)
        self._next += 1
        return self.questions.ask(self._next - 1)
