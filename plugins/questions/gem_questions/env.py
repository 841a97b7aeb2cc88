"""An episode of one question and one answer."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, near_matches
from gem_questions import checks
from gem_questions._given import Data, Row
from gem_questions._questions import Questions
from gem_questions._rows import Source
from gem_questions.forms import ReplyForm, checked_instruction, instructed
from gem_questions.graders import Grader, UserGrader
from gem_questions.verdict import Verdict


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as the only entry of one."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


class QuestionEnv(Env):
    """Shows a question; whatever is answered is graded and ends the episode (terminated and truncated, as upstream).

    | `reset(...)` | question |
    | --- | --- |
    | `data_index=k`, as the engine calls it | place `k` of the shuffled order, which begins anew after the last one |
    | `seed=s` | drawn from all |
    | nothing | the next in the shuffled order |
    | `row=i` | row `i` of the data as it is, for evaluation |

    The data is loaded at the first reset. All environments of a process that use it share one copy.

    The shuffled order depends on `shuffle_seed` alone, and not on the seed of a run: give each run another one, or all
    ask the same questions in the same order. `len(env.unwrapped.questions)` is the number of questions, and loads them:
    an evaluation with that many episodes asks each once.

    `info` has `success` and, the same by upstream's name, `correct`; `invalid_action` where the text has no answer;
    `grading_error` where grading failed, which counts as wrong.

    Args:
        dataset: a hub id, the path of a .jsonl, .json, .csv or .parquet file or of a data set folder, or
            `package:<package>/<file>`; a text or a `pathlib.Path`. Or the data itself: a list of rows, each a dict, a
            `datasets.Dataset` or a `datasets.DatasetDict`. Processes that play get a copy of it. Records name it by the
            number of its rows and a fingerprint of what they hold.
        split, subset: of a data set that has several; a file is the split `train`.
        question, answer: names of the columns.
        template: what is shown, with `{question}` where the question stands; `None` shows the question alone.
        instruction: `True` says the form of the answer in `info["suffix"]`, unless the template does; `False` does
            not; a text is shown in place of the usual one.
        format_reward: reward of a text without an answer.
        shuffle_seed: one order of the questions per seed; `None` asks in the order of the data.
        streaming: read rows as they are needed instead of downloading all of them first; shuffles through a window
            and cannot take `row`.
        grader: a function that grades in place of the environment, or `"package.module:function"`. It names what it
            wants of `question`, `response`, `answer`, `reference` and `row`, and returns a number (a success from 1),
            `True` or `False`, or a `Verdict`. One that names `answer` is called only if the response has one. See
            docs/tutorials/own_grader.md.

    Raises:
        EnvError: a value that cannot be; there is no such file, folder or bundled sample; the template does not say
            where the question stands. On the first reset: the data cannot be had, or a row of a file lacks a column or
            holds what is no question or no answer. What `datasets` reads is checked row by row, as it is asked.
        MissingExtraError: `datasets` is needed and not installed.
    """

    takes_data_index = True
    instead_of: ClassVar[Mapping[str, str]] = {
        "dataset_name": "Use dataset=...",
        "question_key": "Use question=...",
        "answer_key": "Use answer=...",
        "seed": "Use shuffle_seed=... for the order of the questions, and reset(seed=...) for a drawn one",
        "eval": "Use shuffle_seed=None for the order of the data",
        "idx": "Use reset(row=...)",
        "task": Env.instead_of["task"],
    }
    answer_form: ClassVar[str] = "a text, a number, or a list of them, none of them empty"
    """What the column of the answer holds, in words."""
    reply_form: ReplyForm | None = None
    """Where `grade` looks for the answer, as the question says it; read after `begin`."""

    def __init__(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "question",
        answer: str = "answer",
        template: str | None = None,
        instruction: bool | str = True,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        grader: Grader | str | None = None,
    ) -> None:
        if template is not None and "{question}" not in template:
            raise EnvError(f"the template {template!r} does not show the question: put {{question}} where it belongs")
        self.ask_from(dataset, split=split, subset=subset, shuffle_seed=shuffle_seed, streaming=streaming)
        self.columns = (question, answer)
        self.template = template
        self.instruction = checked_instruction(instruction)
        self.no_answer = Verdict(checks.finite("format_reward", format_reward), found=False)
        self._grader = None if grader is None else UserGrader(grader)

    def ask_from(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
    ) -> None:
        """Ask the questions of another data set from the next reset on. Arguments and errors: as of the class."""
        self.questions = Questions(Source.of(dataset, split, subset, streaming), shuffle_seed)
        self.asked_count = 0
        """Questions that were asked by `reset()` without arguments."""

    @property
    def data_size(self) -> int | None:
        """The number of questions, which loads them; `None` for a stream."""
        return None if self.questions.source.streaming else len(self.questions)

    @property
    def dataset(self) -> Any:
        """The data, in its own order: a `datasets.Dataset` from the hub or as it was given, otherwise a list of rows; a
        `datasets.IterableDataset` of a stream. Loads it."""
        return self.questions.data

    @abstractmethod
    def grade(self, action: str) -> Verdict:
        """Grade a text against `self.answer`."""

    def answer_in(self, response: str) -> str | None:
        """The part of a response that is its answer, or `None` where there is none: here the whole response."""
        return response

    def accepts(self, answer: Any) -> bool:
        """Is this an answer to grade against?"""
        answers = as_list(answer)
        return bool(answers) and all(_is_plain(each) for each in answers)

    def refusal(self, row: Row) -> str | None:
        """Why a row cannot be asked whose question and answer are accepted, or `None`."""
        return None

    def doubt(self, answer: Any) -> str | None:
        """Why no answer is likely to be right with this reference, as the rest of a sentence; `None` without doubt."""
        return None

    def begin(self, row: Row) -> Info:
        """Take what else is needed from a row; the info to show with the question."""
        return {}

    def reset(
        self, seed: int | None = None, *, data_index: int | None = None, row: int | None = None, **options: Any
    ) -> ResetResult:
        """Show a question; the table above says which."""
        super().reset(seed=seed, **options)
        sound = self.questions.checked((type(self), self.columns, self._needs_answer), self._fault)
        if self._grader is None:
            self.questions.look_over((type(self), self.columns), self._doubt)
        found = self._row(seed, data_index, row)
        if not sound and (fault := self._fault(found)) is not None:
            raise EnvError(f"{self.questions.source}: {fault}")
        question, self.answer = found[self.columns[0]], found.get(self.columns[1])
        if self._grader is not None:
            self._asked = found
        info = instructed(self.begin(found), self.reply_form, self.instruction, self.template)
        return question if self.template is None else self.template.replace("{question}", question), info

    def step(self, action: str) -> StepResult:
        """Grade the answer."""
        verdict = self.grade(action) if self._grader is None else self._graded(self._grader, action)
        info: Info = {"success": verdict.correct, "correct": verdict.correct}
        if not verdict.found:
            info["invalid_action"] = True
        info.update(verdict.info)
        return "", verdict.reward, True, True, info

    def _graded(self, grader: UserGrader, response: str) -> Verdict:
        answer = self.answer_in(response) if "answer" in grader.wants else None
        if answer is None and "answer" in grader.wants:
            return self.no_answer
        asked = self._asked
        known = {"question": asked[self.columns[0]], "reference": self.answer, "row": dict(asked)}
        return grader({**known, "response": response, "answer": answer})

    @property
    def _needs_answer(self) -> bool:
        return self._grader is None or "reference" in self._grader.wants

    def column(self, row: Row, name: str) -> Any:
        """The value of a column. Raises `EnvError` where there is none, with the names of those there are."""
        if name not in row:
            raise EnvError(f"{self.questions.source}: {_no_column(row, name)}")
        return row[name]

    def _fault(self, row: Row) -> str | None:
        question, answer = self.columns
        for name in self.columns if self._needs_answer else [question]:
            if name not in row:
                return _no_column(row, name)
        if not isinstance(row[question], str):
            return f"column {question!r} must hold a text, and holds {row[question]!r:.80}"
        if self._grader is None and not self.accepts(row[answer]):
            return f"column {answer!r} must hold {self.answer_form}, and holds {row[answer]!r:.80}"
        return self.refusal(row) if self._grader is None else None

    def _doubt(self, row: Row) -> str | None:
        answer = row.get(self.columns[1])
        if not self.accepts(answer) or (doubt := self.doubt(answer)) is None:
            return None
        return f"column {self.columns[1]!r} holds {answer!r:.200}, which {doubt}"

    def _row(self, seed: int | None, data_index: int | None, row: int | None) -> Row:
        if row is not None:
            return self.questions.at(checks.whole("row", row, 0))
        if data_index is not None:
            return self.questions.ask(checks.whole("data_index", data_index, 0))
        if seed is not None:
            return self.questions.draw(self.rng)
        self.asked_count += 1
        return self.questions.ask(self.asked_count - 1)


def _is_plain(answer: Any) -> bool:
    if isinstance(answer, str):
        return bool(answer.strip())
    return isinstance(answer, numbers.Number) and not (isinstance(answer, float) and not math.isfinite(answer))


def _no_column(row: Row, name: str) -> str:
    known = [str(column) for column in row]
    return (
        f"there is no column {name!r}.{near_matches(name, known)} "
        f"It has: {', '.join(known)}. Name the ones to use, for example question='problem', answer='answer'"
    )
