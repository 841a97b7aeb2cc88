"""Where a chat template ends an assistant's turn, as tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os.path import commonprefix
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
    closing: frozenset[int]
    """Those that end a turn after which nothing follows."""


class TurnEndFinder:
    """Finds where a chat template ends an assistant's turn.

    The ends are the control tokens between the assistant's words and the first word of the next message, whoever
    speaks next, and the first one of the assistant's own header. What the assistant itself writes within a turn, as
    between the channels of a reasoning model, ends nothing.

    Args:
        render: see `Rendering`.
        leading: the control tokens of a text before its first word, in order.
        controls: all control tokens of a text, in order.
    """

    def __init__(
        self, render: Rendering, leading: Callable[[str], list[int]], controls: Callable[[str], list[int]]
    ) -> None:
        self._render = render
        self._leading = leading
        self._controls = controls

    def find(self) -> TurnEnds:
        """The ends; renders a dozen short conversations."""
        own = {*self._within(_thinking()), *self._within(_calling("1", "2"))}
        closing = [*self._leading(self._after({"role": "assistant", "content": _ANSWER})), *self._after_call()]
        following = [self.opening(role) for role in ("user", "tool", "system")]
        found = dict.fromkeys([*following[0], *following[1], *closing, *following[2], *self._header()])
        return TurnEnds(tuple(one for one in found if one not in own), frozenset(closing) - own)

    def opening(self, role: str) -> tuple[int, ...]:
        """Control tokens between the assistant's words and the first word of a message of this role, in order."""
        answer = {"role": "assistant", "content": _ANSWER}
        text = self._text([_USER, answer, {"role": role, "content": _MESSAGE}])
        frame, found, _ = _behind_answer(text).partition(_MESSAGE)
        return (*self._leading(frame),) if found else ()

    def _after(self, message: Mapping[str, Any]) -> str:
        """What follows the last of the assistant's words if the conversation ends with this message."""
        return _behind_answer(self._text([_USER, message], generate=False))

    def _after_call(self) -> list[int]:
        """The last control token after a function call."""
        return self._controls(self._after(_calling("1")))[-1:]

    def _within(self, message: Mapping[str, Any]) -> list[int]:
        """Control tokens that the assistant itself writes before the last of its words."""
        before = self._text([_USER])
        whole, found, _ = self._text([_USER, message], generate=False).rpartition(_ANSWER)
        return self._controls(whole[len(commonprefix([before, whole])) :]) if found else []

    def _header(self) -> list[int]:
        """The first control token of the assistant's own header."""
        header, bare = self._text([_USER]), self._text([_USER], generate=False)
        return self._leading(header[len(bare) :])[:1] if header.startswith(bare) else []

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
