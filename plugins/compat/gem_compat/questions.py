"""Upstream's attributes of environments over data, which its programs read and set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem_compat.lenient import Kept, Lenient, named
from gem_compat.utils.constants import TERMINAL_STATE
from gem_core.env import ResetResult, StepResult
from gem_core.errors import EnvError
from gem_questions import QuestionEnv, as_table, order


class Questions(Lenient, QuestionEnv):
    """A question and an answer, with upstream's attributes.

    Args:
        dataset_name: a hub id, a file or a folder.
        split: of a data set that has several.
        dataset: the data in place of its name: a `datasets.Dataset`, a `datasets.DatasetDict` or a list of rows.
        arguments: as of `Lenient`.
    """

    def __init__(self, dataset_name: Any = "", split: str | None = None, dataset: Any = None, **arguments: Any) -> None:
        data = dataset_name if dataset is None else dataset
        is_part = not isinstance(data, (str, Mapping)) and not hasattr(data, "__fspath__")
        part = {"subset": None} if is_part else {"split": split}
        super().__init__(**{**arguments, **part, "dataset": data})
        self.seed = arguments.get("seed", 0)
        self.question_key, self.answer_key = self.test_key = self.columns[0], self.columns[1]
        self.first_obs = ""
        self._shown: Kept | None = None

    @property
    def dataset(self) -> Any:
        """The data as a `datasets.Dataset`, in the order in which it is asked, with the questions as they are shown."""
        if self._shown is None:
            self._shown = Kept(dataset=self._as_shown())
        return self._shown["dataset"]

    @dataset.setter
    def dataset(self, data: Any) -> None:
        self.ask_from(data, shuffle_seed=None)
        self.template = None  # what is shown is what is set
        self._shown = Kept(dataset=data)

    @property
    def idx(self) -> int:
        """The place of the next question in `dataset`."""
        return self.asked_count % len(self.questions)

    @idx.setter
    def idx(self, place: int) -> None:
        self.asked_count = place

    @property
    def epoch(self) -> int:
        """How often all questions were asked."""
        return max(self.asked_count - 1, 0) // len(self.questions)

    def reset(self, seed: int | None = None, idx: int | None = None, **options: Any) -> ResetResult:
        """Ask a question: the one at a place of `dataset`, one drawn by a seed, or the next."""
        if idx is not None:
            if not 0 <= idx < len(self.questions):
                raise EnvError(
                    f"{self!r} has {len(self.questions)} questions, so there is no idx {idx}: 0 is the first"
                )
            self.asked_count, seed = idx, None
        self.first_obs, info = super().reset(seed=seed, **options)
        return self.first_obs, info

    def step(self, action: str) -> StepResult:
        """Grade the answer. What is shown then is upstream's mark of the end."""
        return TERMINAL_STATE, *super().step(action)[1:]

    def _as_shown(self) -> Any:
        data = as_table(super().dataset)
        if self.questions.shuffle_seed is not None:
            data = data.select(order(len(data), self.questions.shuffle_seed, 0))
        template, column = self.template, self.columns[0]
        if template is None:
            return data
        texts = [template.replace("{question}", text) for text in data[column]]
        return data.remove_columns(column).add_column(column, texts)


class Entries(Lenient):
    """A question of reasoning-gym, with upstream's attributes."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.name, self.size = arguments["dataset"], arguments.get("size", 500)
        self.seed = arguments.get("seed", 42)

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a data set are known."""
        from gem_reasoning_gym import settings_of  # imports reasoning-gym

        return named(self.ours, arguments, settings_of(arguments["dataset"]))

    def reset(self, seed: int | None = None, idx: int | None = None, **options: Any) -> ResetResult:
        """Ask a question: the one of a number, one drawn by a seed, or the next."""
        return super().reset(seed=seed, **options, **({} if idx is None else {"row": idx}))

    def step(self, action: str) -> StepResult:
        """Grade the answer. What is shown then is upstream's mark of the end."""
        return TERMINAL_STATE, *super().step(action)[1:]
