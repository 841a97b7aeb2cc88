"""Messages of a chat as text, and a text as a model's response."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec

from gem_core.errors import EnvError
from gem_core.responses import read_response
from gem_core.tool import Function
from gem_core.tools import find_call

types: Any = importlib.import_module("verifiers.types")

_count = itertools.count()


class Written(NamedTuple):
    """A text as verifiers takes it."""

    response: Any
    """A `verifiers.types.Response`."""
    problem: str | None
    """Why a call in it cannot be made; the environment gets the text alone."""


def text_of(messages: Sequence[Any]) -> str:
    """What messages say. Who says it is told only where an assistant speaks too, as in worked examples.

    Raises:
        EnvError: a message has an image or a sound.
    """
    texts = [(message.role, _content(message)) for message in messages]
    if any(role == "assistant" for role, _ in texts):
        return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in texts)
    return "\n\n".join(text for _, text in texts if text)


def new_messages(messages: Sequence[Any], shown: Sequence[Any]) -> Sequence[Any]:
    """The messages after the last response, or all where the environment has rewritten what was shown before."""
    if list(messages[: len(shown)]) != list(shown):
        return messages
    rest = messages[len(shown) :]
    return rest[1:] if rest and rest[0].role == "assistant" else rest


def last_words(completion: Sequence[Mapping[str, Any]]) -> str:
    """What the environment says after the last response, in a finished rollout's messages."""
    after = itertools.takewhile(lambda message: message["role"] != "assistant", reversed(completion))
    return text_of([SimpleNamespace(role=one["role"], content=one["content"]) for one in [*after][::-1]])


def functions_of(tools: Sequence[Any] | None) -> list[Function]:
    """Tools of verifiers as functions for native calls."""
    return [Function(tool.name, tool.description, cast("Mapping[str, Any]", tool.parameters)) for tool in tools or ()]


def written(action: str, functions: Sequence[Function]) -> Written:
    """A policy's text as a model's response, with the first call of its speech where there are functions."""
    text = action.encode(errors="replace").decode()  # half a character is no text for pydantic
    thought, speech = read_response(text)
    call = find_call(speech, functions, "native") if functions else None
    calls: list[Any] | None = None
    if call is not None and call.problem is None:
        arguments = msgspec.json.encode(call.arguments).decode()
        calls = [types.ToolCall(id=f"call_{next(_count)}", name=call.function, arguments=arguments)]
        text = f"{thought}{speech[: call.start]}".strip()
    message = types.ResponseMessage(
        content=text, tool_calls=calls, finish_reason="tool_calls" if calls else "stop", is_truncated=False
    )
    response = types.Response(id=f"gem-{next(_count)}", created=int(time.time()), model=MODEL, message=message)
    return Written(response, call.problem if call else None)


MODEL = "gem-core"
"""The name that environments see for the policy's model."""


def _content(message: Any) -> str:
    content = message.content
    if isinstance(content, list):
        return "\n".join(map(_part, cast("list[Any]", content)))
    return content or ""


def _part(part: Any) -> str:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", part) if isinstance(part, dict) else part.model_dump()
    if fields.get("type") != "text":
        raise EnvError(f"a message has a part of type {fields.get('type')!r}; only texts can be played here")
    return str(fields["text"])
