"""Broken and hostile replies of an endpoint."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from gem_evaluation._refusals import Refusal
from gem_evaluation._replies import MAX_BYTES, ReplyError, limit_body, read_models, read_reply
from gem_evaluation._secret import Secret

KEY = "sk-proj-Zq8vT3mWx5Lr9KpY2nBd7JfHcG4sAeU6"
SECRET = Secret(KEY)
NO_SECRET = Secret("")


def reply_of(message: Any, **fields: Any) -> bytes:
    return json.dumps({"choices": [{"message": message}], **fields}).encode()


NESTED = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        NESTED,
        b'{"choices":' + NESTED + b"}",
        b'{"choices":[{"message":{"content":"fine","reasoning":' + NESTED + b"}}]}",
        b'{"choices":[{"message":{"tool_calls":[{"function":{"arguments":{"a":' + NESTED + b"}}}]}}]}",
        b'{"choices":[{"message":{"content":' + b"9" * 10_000 + b"}}]}",
        b'{"choices":[{"message":{"content":NaN}}]}',
        b'{"choices":[{"message":null}]}',
        b'{"choices":[]}',
        b"5",
        b"null",
    ],
    ids=range(12),
)
def test_a_reply_that_is_none_is_one_error(body: bytes) -> None:
    with pytest.raises(ReplyError) as error:
        read_reply(body, SECRET)
    assert len(str(error.value)) < 400
    with pytest.raises(ReplyError):
        read_models(body)
    assert len(Refusal(400, body).line(SECRET)) < 70_000


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ('{"prompt_tokens": 3, "completion_tokens": 4}', (3, 4)),
        ('{"prompt_tokens": "3", "completion_tokens": 4.0}', (3, 4)),
        (f'{{"prompt_tokens": {"1" * 400}, "completion_tokens": 4}}', (0, 4)),
        (f'{{"prompt_tokens": {"1" * 5000}, "completion_tokens": 4}}', (0, 4)),
        (f'{{"prompt_tokens": "{"1" * 5000}", "completion_tokens": 4}}', (0, 4)),
        (f'{{"prompt_tokens": {2**63}, "completion_tokens": {2**53 + 1}}}', (0, 0)),
        ('{"prompt_tokens": -5, "completion_tokens": 1e400}', (0, 0)),
        ('{"prompt_tokens": NaN, "completion_tokens": -Infinity}', (0, 0)),
        ('{"prompt_tokens": 1.5, "completion_tokens": true}', (0, 0)),
        ('{"prompt_tokens": [3], "completion_tokens": {}}', (0, 0)),
        ("[3, 4]", (0, 0)),
        ("null", (0, 0)),
    ],
)
def test_a_count_that_cannot_be_costs_no_response(usage: str, counted: tuple[int, int]) -> None:
    body = f'{{"choices": [{{"message": {{"content": "fine"}}}}], "usage": {usage}}}'.encode()
    reply = read_reply(body, SECRET)
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.completion_tokens) == ("fine", *counted)


def read(data: bytes, encoding: str, piece: int = 1 << 16) -> bytes:
    """A body as the client reads it."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), piece):
            yield data[start : start + piece]

    async def whole() -> bytes:
        response = httpx2.Response(200, headers={"content-encoding": encoding}, content=pieces())
        await limit_body(response)
        return await response.aread()

    return asyncio.run(whole())


@pytest.mark.parametrize("piece", [1, 1000, 1 << 20])
def test_a_compressed_body_is_read(piece: int) -> None:
    text = b"fine " * 100
    assert read(text, "identity", piece) == text
    assert read(gzip.compress(text), "gzip", piece) == text
    assert read(gzip.compress(text), "X-GZIP", piece) == text
    assert read(zlib.compress(text), "deflate", piece) == text


def test_a_body_without_content_ends_as_well() -> None:
    nothing = zlib.compress(b"")[:2] + b"\0\0\0\xff\xff" * (MAX_BYTES // 5 + 1)  # blocks of no bytes
    with pytest.raises(ReplyError, match="more than 8 MiB"):
        read(nothing, "deflate")


def test_a_body_ends_at_a_number_of_bytes() -> None:
    assert len(read(gzip.compress(b"x" * MAX_BYTES), "gzip")) == MAX_BYTES
    for data, encoding in ((b"x" * (MAX_BYTES + 1), "identity"), (gzip.compress(b"x" * (MAX_BYTES + 1)), "gzip")):
        with pytest.raises(ReplyError, match="more than 8 MiB"):
            read(data, encoding)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"fine", "gzip"),
        (gzip.compress(b"fine", mtime=0)[:-3], "gzip"),  # a time would be in the name of the test
        (b"", "gzip"),
        (b"fine", "br"),
        (b"fine", "gzip, gzip"),
        (b"fine", "x" * 10_000),
    ],
)
def test_a_body_that_cannot_be_decompressed_is_an_error(data: bytes, encoding: str) -> None:
    with pytest.raises(ReplyError) as error:
        read(data, encoding)
    assert len(str(error.value)) < 200


def test_a_small_body_that_would_fill_the_memory_takes_none() -> None:
    import tracemalloc

    bomb = gzip.compress(b"\0" * (64 << 20), 1)
    tracemalloc.start()
    try:
        with pytest.raises(ReplyError, match="more than 8 MiB"):
            read(bomb, "gzip", len(bomb))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


# -- the key -----------------------------------------------------------------------------------------------------


def shows(text: str, part: int = 8) -> bool:
    """Whether a part of the key is there to be read."""
    return any(KEY[start : start + part] in text for start in range(len(KEY) - part + 1))


@pytest.mark.parametrize("text", [KEY, KEY * 3, KEY[:-1], KEY[3:20], KEY[-9:] + KEY[:9], "x".join(KEY[:30]) + KEY[20:]])
def test_a_key_and_its_parts_are_hidden(text: str) -> None:
    hidden = SECRET.hidden(f"a {text} z")
    assert hidden.startswith("a ")
    assert hidden.endswith(" z")
    assert "***" in hidden
    assert not shows(hidden)


def test_other_text_is_left_as_it_is() -> None:
    for text in ("", "fine", KEY[:7], KEY[::-1], "sk-proj", "a" * 10_000):
        assert SECRET.hidden(text) == SECRET.hidden_in_answer(text) == text
    assert NO_SECRET.hidden("fine") == "fine"


def test_a_short_key_is_a_word_that_a_model_may_write() -> None:
    assert Secret("EMPTY").hidden_in_answer("The box is EMPTY.") == "The box is EMPTY."
    assert Secret("EMPTY").hidden("wrong key EMPTY") == "wrong key ***"
    assert Secret("token-abc123").hidden_in_answer("It is token-abc123.") == "It is ***."


@pytest.mark.parametrize("start", range(0, 560, 7))
def test_no_cut_leaves_a_part_of_the_key(start: int) -> None:
    text = "x" * start + KEY
    bodies = [json.dumps({"error": {"message": text}}), json.dumps({"error": text}), json.dumps([text]), text]
    for body in bodies:
        assert not shows(Refusal(400, body.encode()).line(SECRET)[:500])
    with pytest.raises(ReplyError) as error:
        read_reply(json.dumps({"choices": text}).encode(), SECRET)
    assert not shows(str(error.value))


def test_a_key_is_hidden_wherever_a_reply_has_it() -> None:
    calls = [{"id": KEY, "function": {"name": KEY, "arguments": {KEY: [KEY]}}}, {"function": {"arguments": KEY}}]
    parts = [{"type": "text", "text": KEY}, {"type": "thinking", "thinking": [{"text": KEY}]}]
    for message in (
        {"content": KEY, "reasoning_content": KEY, "tool_calls": calls},
        {"content": parts},
        {"content": "fine", "reasoning": KEY},
    ):
        reply = read_reply(reply_of(message), SECRET)
        assert "***" in repr(reply)
        assert not shows(repr(reply), 16)
