"""The token state of one episode: the one place where prompts are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gem_core.env import Info, shown_text
from gem_core.rollout.template import ChatTemplate


@dataclass
class _Exchange:
    message: str
    role: str
    glue: list[int]
    response: list[int] = field(default_factory=list[int])


class Conversation:
    """Token in, token out.

    Sampled ids are appended unchanged and never decoded and encoded again; only the template's own glue is added
    between them. With a full history every prompt starts with the exact ids of the previous prompt and response.

    Args:
        template: the chat template.
        history: `None` shows the whole episode, `1` only the present observation, `k` the last `k` observations and
            the responses between them.

    Raises:
        ValueError: `history` below 1.
    """

    def __init__(self, template: ChatTemplate, history: int | None = None) -> None:
        if history is not None and history < 1:
            raise ValueError(f"history must be None (all) or at least 1 observation, not {history}")
        self._template = template
        self._history = history
        self._exchanges: list[_Exchange] = []
        self._opening: list[int] = []

    def observe(self, observation: str, info: Info) -> str:
        """Add an observation, with its info's `prefix` and `suffix`; returns the message as it stands in the prompt."""
        message = shown_text(observation, info)
        role = "tool" if info.get("use_tool") else "user"
        if tools := info.get("tools"):
            self._template = self._template.with_tools(tools)
        if self._exchanges:
            glue = self._template.glue(message, role)
            previous = self._exchanges[-1].response
            # Where the policy sampled the end of turn itself, the template's must not follow it.
            if previous and glue and previous[-1] == glue[0]:
                glue = glue[1:]
            self._exchanges.append(_Exchange(message, role, glue))
        else:
            self._exchanges.append(_Exchange(message, role, []))
            self._opening = self._template.opening(message, role)
        return message

    def prompt(self) -> list[int]:
        """Token ids of the prompt for the next response."""
        start = 0 if self._history is None else max(0, len(self._exchanges) - self._history)
        first = self._exchanges[start]
        ids = list(self._opening) if start == 0 else self._template.opening(first.message, first.role)
        for before, after in zip(self._exchanges[start:], self._exchanges[start + 1 :], strict=False):
            ids += before.response
            ids += after.glue
        return ids

    def respond(self, ids: Sequence[int]) -> str:
        """Add the sampled ids, unchanged; returns their text."""
        self._exchanges[-1].response = list(ids)
        return self._template.decode(ids)
