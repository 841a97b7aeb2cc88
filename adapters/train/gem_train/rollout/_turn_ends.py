"""Where a chat template ends an assistant's turn, as tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from gem_core.errors import TemplateError

_ANSWER = "GEMCOREANSWER"
"""Stands for the assistant's words; it survives templates that strip white space or write JSON."""
_MESSAGE = "GEMCOREMESSAGE"
"""Stands for the next message, or a thought."""
_USER = {"role": "user", "content": "."}
_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields in which templates look for the thought of a message."""


class Rendering(Protocol):
    """Renders messages with a chat template."""

    def __call__(self, messages: Sequence[Mapping[str, Any]], *, generate: bool = True) -> str:
        """The text, which ends with the header of the answer if `generate`. Raises `TemplateError`."""
        ...


class TurnEnds(NamedTuple):
    """Control tokens that end an assistant's turn."""

    ids: tuple[int, ...]
    """All at which sampling has to stop: ends of turns, and headers of messages."""
    last: int | None
    """The end of a turn after which nothing follows. Some templates end earlier turns with another one."""


class TurnEndFinder:
    """Finds where a chat template ends an assistant's turn.

    The ends are the control tokens between the assistant's words and the first word of the next message, whoever
    speaks next, and the first one of the assistant's own header. What the assistant itself writes within a turn, as
    between the channels of a reasoning model, ends nothing.

    Args:
        render: see `Rendering`.
        encode: token ids of a text.
        leading: the control tokens before the first word of some ids, in order.
        controls: all control tokens of some ids, in order.
        marks: tokens around thoughts and calls, which the assistant writes within a turn.
    """

    def __init__(
        self,
        render: Rendering,
        encode: Callable[[str], list[int]],
        leading: Callable[[Sequence[int]], list[int]],
        controls: Callable[[Sequence[int]], list[int]],
        marks: Collection[int],
    ) -> None:
        self._render = render
        self._encode = encode
        self._leading = leading
        self._controls = controls
        self._marks = marks

    def find(self) -> TurnEnds:
        """The ends; renders a dozen short conversations."""
        own = {*self._within(_thinking()), *self._within(_calling("1", "2"))}
        closing = self._leading(self._encode(self.closing))
        user, tool, system = (self.opening(role) for role in ("user", "tool", "system"))
        called = _behind_answer(self._text([_USER, _calling("1")], generate=False))
        after_call = self._controls(self._encode(called))[-1:]
        likely = [one for one in [*after_call, *self._header()] if one not in self._marks]
        found = [*user, *tool, *closing, *system, *likely]
        last = next((one for one in closing if one not in own), None)
        return TurnEnds(tuple(one for one in dict.fromkeys(found) if one not in own), last)

    @property
    def closing(self) -> str:
        """What follows the assistant's words at the end of a conversation."""
        return _behind_answer(self._text([_USER, {"role": "assistant", "content": _ANSWER}], generate=False))

    def answer_header(self) -> list[int]:
        """What the assistant itself writes before its words, if control tokens are among it."""
        answer = {"role": "assistant", "content": _ANSWER}
        before, found, _ = self._text([_USER, answer, _USER]).rpartition(_ANSWER)
        header = self._beyond(self._text([_USER]), before) if found else []
        return header if self._controls(header) else []

    def opening(self, role: str) -> tuple[int, ...]:
        """Control tokens between the assistant's words and the first word of a message of this role, in order."""
        answer = {"role": "assistant", "content": _ANSWER}
        text = self._text([_USER, answer, {"role": role, "content": _MESSAGE}])
        frame, found, _ = _behind_answer(text).partition(_MESSAGE)
        return (*self._leading(self._encode(frame)),) if found else ()

    def _within(self, message: Mapping[str, Any]) -> list[int]:
        """Control tokens that the assistant itself writes before the last of its words."""
        whole, found, _ = self._text([_USER, message], generate=False).rpartition(_ANSWER)
        return self._controls(self._beyond(self._text([_USER]), whole)) if found else []

    def _header(self) -> list[int]:
        """The first control token of the assistant's own header."""
        return self._leading(self._beyond(self._text([_USER], generate=False), self._text([_USER])))[:1]

    def _beyond(self, text: str, longer: str) -> list[int]:
        """The ids of a text from where they differ from those of another one."""
        ids, before = self._encode(longer), self._encode(text)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(ids, before, strict=False))
        return ids[len([*same]) :]

    def _text(self, messages: Sequence[Mapping[str, Any]], *, generate: bool = True) -> str:
        """The rendering; empty where the template refuses such messages."""
        with suppress(TemplateError):
            return self._render(messages, generate=generate)
        return ""


def _behind_answer(text: str) -> str:
    _, found, after = text.rpartition(_ANSWER)
    return after if found else ""


def _thinking() -> Mapping[str, Any]:
    return {"role": "assistant", "content": _ANSWER, **dict.fromkeys(_REASONING, _MESSAGE)}


def _calling(*ids: str) -> Mapping[str, Any]:
    function = {"name": "probe", "arguments": {"text": _ANSWER}}
    calls = [{"id": one.rjust(9, "0"), "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}
