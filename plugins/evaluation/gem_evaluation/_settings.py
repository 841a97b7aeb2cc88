"""What is evaluated, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from gem_core.env import Env
from gem_core.registry import build, provenance, spec
from gem_core.tools import Toolbox, ToolEnv
from gem_evaluation._conversation import ConversationSettings
from gem_evaluation._errors import EvaluationError
from gem_train.arguments import recorded
from gem_train.rollout import Thoughts

DEFAULT_TASKS = 100
"""Tasks of an environment that has no number of its own."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An environment, and how it is played. Fields are those of the command's options."""

    id: str
    tasks: int | None = None
    """`None`: all rows of a data set, otherwise 100."""
    repeats: int = 1
    env_kwargs: dict[str, Any] = {}
    tools: list[str] = []
    """Ids of tools."""
    tool_form: Literal["text", "native"] = "text"
    max_tool_uses: int | None = 10
    system_prompt: str | None = None
    history: int | None = None
    thoughts: Thoughts = "keep"
    """Whether later prompts have the thoughts of earlier responses; see docs/thinking.md."""
    name: str | None = None
    """How reports call it; needed where one environment is played in several ways."""

    @property
    def label(self) -> str:
        """Its name, or the id."""
        return self.name or self.id

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that could change a number: all but how much is played."""
        fields = msgspec.to_builtins(msgspec.structs.replace(self, env_kwargs=recorded(self.env_kwargs)))
        for name in ("tasks", "repeats", "name"):
            del fields[name]
        return {**fields, "provenance": str(provenance(self.id))}

    @property
    def conversation(self) -> ConversationSettings:
        """How its episodes become prompts."""
        limit = self.max_tool_uses if self.tools else None
        return ConversationSettings(self.system_prompt, self.history, limit, thoughts=self.thoughts)

    def wrappers(self) -> list[Callable[[Env], Env]]:
        """What the environment is wrapped in.

        Raises:
            NotFoundError, ToolError: as `Toolbox`.
        """
        if not self.tools:
            return []
        return [partial(ToolEnv, tools=Toolbox(self.tools), form=self.tool_form, max_tool_uses=self.max_tool_uses)]

    def count(self) -> int:
        """How many tasks are played.

        Raises:
            EvaluationError: more tasks are asked for than there are.
            NotFoundError, EnvError, ToolError: the environment or a tool cannot be built.
        """
        with build(spec(self.id), self.env_kwargs, self.wrappers()) as env:
            known = env.data_size
        if self.tasks is None:
            return DEFAULT_TASKS if known is None else known
        if known is not None and self.tasks > known:
            raise EvaluationError(f"{self.id} has {known} tasks, and {self.tasks} were asked for")
        return self.tasks


def check_entries(entries: Sequence[Entry]) -> None:
    """Raises `EvaluationError` for entries that cannot be told apart, or numbers that cannot be."""
    if not entries:
        raise EvaluationError("nothing to evaluate: name at least one environment; `gem-core list` shows them")
    labels = [entry.label for entry in entries]
    if twice := sorted(label for label, number in Counter(labels).items() if number > 1):
        raise EvaluationError(f"{', '.join(twice)}: named twice. Give each entry a name of its own")
    for entry in entries:
        check_entry(entry)


def check_entry(entry: Entry) -> None:
    """Raises `EvaluationError` for numbers that cannot be."""
    for field, least in (("tasks", 1), ("repeats", 1), ("history", 1), ("max_tool_uses", 0)):
        number = getattr(entry, field)
        if number is not None and not least <= number < 2**31:
            raise EvaluationError(f"{entry.label}: {field} must be at least {least} and below 2**31, not {number}")


def identity(
    entries: Sequence[Entry], seed: int, model: Mapping[str, Any], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that could change a number of an evaluation."""
    return {
        "seed": seed,
        "model": dict(model),
        "environments": {entry.label: entry.identity for entry in entries},
        "versions": dict(versions),
    }
