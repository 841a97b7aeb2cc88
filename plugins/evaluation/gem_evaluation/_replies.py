"""Replies of an endpoint: untrusted bytes, read within limits."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import httpx2
import msgspec

from gem_evaluation._conversation import THINKING, Count, Reasoning, Reply, ToolCall, Usage
from gem_evaluation._secret import Secret
from gem_train.rollout import as_utf8

MAX_BYTES = 8 << 20
"""Of one body, after decompression."""
_CHUNK = 64 << 10
_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Window bits of zlib, by the name of an encoding."""


class ReplyError(Exception):
    """A reply that cannot be read."""


async def limit_body(response: httpx2.Response) -> None:
    """A hook of the client: the body of the response ends with a `ReplyError` after `MAX_BYTES`."""
    response.encoding = "utf-8"  # a charset is a choice of codecs, of which one takes hours for a megabyte
    encoding = response.headers.pop("content-encoding", "").strip().lower()
    response.stream = _LimitedBody(cast("httpx2.AsyncByteStream", response.stream), encoding)


class _LimitedBody(httpx2.AsyncByteStream):
    """A body, decompressed."""

    def __init__(self, body: httpx2.AsyncByteStream, encoding: str) -> None:
        self._body = body
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = size = 0
        inflating = self._inflating()
        async for piece in self._body:
            read += len(piece)
            for part in (piece,) if inflating is None else _inflated(inflating, piece):
                size += len(part)
                if max(read, size) > MAX_BYTES:
                    raise ReplyError(f"the reply has more than {MAX_BYTES >> 20} MiB")
                yield part
        if inflating is not None and not inflating.eof:
            raise ReplyError("the reply is cut off")

    def _inflating(self) -> Any:
        if self._encoding in ("", "identity"):
            return None
        if self._encoding not in _ENCODINGS:
            raise ReplyError(f"the reply is compressed as {self._encoding[:40]!r}, which it was asked not to be")
        return zlib.decompressobj(_ENCODINGS[self._encoding])

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


def _inflated(inflating: Any, piece: bytes) -> Iterator[bytes]:
    try:
        while piece and not inflating.eof:
            yield inflating.decompress(piece, _CHUNK)
            piece = inflating.unconsumed_tail
    except zlib.error as error:
        raise ReplyError(f"the reply is damaged: {error}") from error


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text with JSON; some servers send the JSON itself."""


class _Call(msgspec.Struct):
    id: str | int | None = None
    function: _Function | None = None


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: Any = None
    """A text, or parts of one."""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    """A text, of vLLM, SGLang and DeepSeek. Others use these names for something else, which is no reason to lose the
    response."""
    reasoning: Any = None
    """A text, of newer vLLM and OpenRouter."""


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    """The fields of a response that are read."""

    choices: list[_Choice]
    usage: Any = None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def read_models(body: bytes) -> list[str]:
    """The names in a list of models. Raises `ReplyError` if it is none."""
    try:
        return [as_utf8(one.id) for one in msgspec.convert(decoded(body), _Models).data]
    except msgspec.ValidationError as error:
        raise ReplyError(f"no list of models: {error}") from error


def read_reply(body: bytes, secret: Secret) -> Reply:
    """A response as a reply. Raises `ReplyError` if it has no choice or another form, as overloaded servers give."""
    try:
        read = msgspec.convert(decoded(body), _Completion, strict=False)
        choice = read.choices[0]
        if choice.finish_reason == "error":  # as OpenRouter says that the provider broke off
            raise ReplyError("the endpoint says that the response ended with an error")
        message = choice.message
        calls = tuple(
            ToolCall(
                _clean(f"call_{number}" if call.id is None else str(call.id), secret),
                _clean(call.function.name or "", secret),
                _clean(_arguments(call.function), secret),
            )
            for number, call in enumerate(message.tool_calls or ())
            if call.function is not None
        )
        text, reasoning = _clean(_text(message.content), secret), _reasoning(message, secret)
    except (msgspec.ValidationError, IndexError, RecursionError) as error:
        shown = secret.line(body.decode(errors="replace"), 200)
        raise ReplyError(f"a response without a choice that can be read: {shown}") from error
    usage = Usage(_count(read.usage, "prompt_tokens"), _count(read.usage, "completion_tokens"))
    return Reply(text, calls, choice.finish_reason == "length", usage=usage, reasoning=reasoning)


def decoded(body: bytes) -> Any:
    """A JSON document. Whole numbers that no field of a reply can have are infinite. Raises `ReplyError`."""
    try:
        return json.loads(body, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"no JSON: {type(error).__name__}: {error}") from error


def _number(text: str) -> int | float:
    return int(text) if len(text) < 20 else float(text)


def _count(usage: Any, field: str) -> int:
    """A number of tokens; 0 if the endpoint gives none that can be."""
    try:
        return msgspec.convert(as_object(usage).get(field), Count, strict=False)
    except msgspec.ValidationError:
        return 0


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, otherwise an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _reasoning(message: _Message, secret: Secret) -> Reasoning | None:
    """The thought of a message, if it has one apart from its text."""
    parts = [part.thinking for part in message.content if part.thinking] if isinstance(message.content, list) else []
    found = {
        "reasoning_content": _text(message.reasoning_content),
        "reasoning": _text(message.reasoning),
        THINKING: "".join(map(_text, parts)),
    }
    given = [field for field in ("reasoning_content", "reasoning") if getattr(message, field) == ""]
    # A field without a thought is sent back as well: some endpoints ask for it in each message with function calls.
    chosen = next((field for field, text in found.items() if text), given[0] if given else None)
    return None if chosen is None else Reasoning(_clean(found[chosen], secret), chosen)


def _clean(text: str, secret: Secret) -> str:
    return secret.hidden_in_answer(as_utf8(text))


def _text(content: Any) -> str:
    """A text that is given as a whole or in parts; empty for anything else."""
    if isinstance(content, str):
        return content
    return "".join(map(_part_text, cast("list[Any]", content))) if isinstance(content, list) else ""


def _part_text(part: Any) -> str:
    found: Any = part.text if isinstance(part, _Part) else as_object(part).get("text")
    return found if isinstance(found, str) else ""


def _arguments(function: _Function) -> str:
    given = function.arguments or ""
    return given if isinstance(given, str) else json.dumps(given)
