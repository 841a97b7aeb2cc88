"""Servers that attack the program which talks to them: its time, its memory and Python's lock."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gem_core.errors import ToolError
from gem_mcp import _http as http
from gem_mcp import _traffic as traffic
from gem_mcp._http import Checked, TimedClient
from gem_mcp._traffic import Traffic
from gem_mcp.tool import MCPTool
from gem_support.waiting import wait_until


def memory() -> int:
    """The most that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def test_a_pattern_of_a_server_is_never_tried(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("pattern")}))
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    beside = threading.Thread(target=tick)
    beside.start()
    assert call("ping") == "pong"
    done.set()
    beside.join()
    assert ticks


@pytest.mark.parametrize("kind", ["requests", "notifications", "progress", "answers", "nothing"])
def test_a_server_that_talks_without_end_is_stopped(use: Any, raw: Any, kind: str) -> None:
    call = use(MCPTool({"raw": raw("noisy", kind)}, timeout=60.0))
    before, cpu = memory(), time.process_time()
    assert "'raw' sent too much that nobody asked for: more than 2,000 messages" in call.error("ping")
    assert memory() - before < 100
    assert time.process_time() - cpu < 30


def test_more_values_than_anybody_reads_stop_a_server(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("many_values")}))
    before = memory()
    assert "'raw' sent a message of more than 50,000 values" in call.error("ping")
    assert memory() - before < 100


def test_long_texts_and_much_progress_are_welcome(use: Any, raw: Any) -> None:
    assert use(MCPTool({"raw": raw("long_text")}), max_output=10)("ping").startswith('1,"2"')
    call = use(MCPTool({"raw": raw("chatty")}))
    assert call("ping") == "pong"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("events", "sent too much that nobody asked for"),
        ("comments", "sent too much that nobody asked for"),
        ("large", "sent a message of more than 8 MiB"),
        ("compressed", "sent a compressed message"),
    ],
)
def test_a_server_with_an_address_has_the_same_limits(
    use: Any, marker: str, port: int, kind: str, message: str
) -> None:
    program = Path(__file__).with_name("raw_server.py")
    server = subprocess.Popen(
        [sys.executable, str(program), "sessions", str(port), kind, marker], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _listens(port))
        headers = {"Authorization": "Bearer sesame"}
        call = use(MCPTool({"far": {"url": f"http://127.0.0.1:{port}", "headers": headers}}))
        before = memory()
        assert message in call.error("ping")
        assert memory() - before < 100
    finally:
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as one:
        return not one.connect_ex(("127.0.0.1", port))


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def ask(beginning: bytes, use: Callable[[str], Awaitable[bytes]]) -> bytes:
    """Use a server that begins each answer and never finishes it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        return await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200", EVENTS, EVENTS + b":"])
def test_an_answer_that_never_ends_keeps_no_connection(beginning: bytes) -> None:
    async def use(url: str) -> bytes:
        async with TimedClient(0.05) as client, client.stream("POST", url) as response:
            return b"".join([one async for one in Checked(response, Traffic(), print)])

    assert asyncio.run(ask(beginning, use)) == b""


def test_a_server_that_will_not_hear_of_an_end_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_LEAVE_SECONDS", 0.05)

    async def use(url: str) -> bytes:
        async with TimedClient(3600.0) as client:
            return str((await client.delete(url)).status_code).encode()

    assert asyncio.run(ask(b"", use)) == b"504"


def test_cookies_without_end_are_not_kept() -> None:
    numbers = iter(range(1 << 30))

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=[("Set-Cookie", f"a{next(numbers)}=b") for _ in range(50)])

    async def use() -> int:
        async with TimedClient(60.0, transport=httpx2.MockTransport(answer)) as client:
            for _ in range(20):
                await client.post("http://far")
            return len(client.cookies)

    assert asyncio.run(use()) <= 150


def events(*chunks: bytes) -> bytes:
    """What the SDK gets of a stream of events."""

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def read() -> bytes:
        response = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())
        return b"".join([one async for one in Checked(response, Traffic(), print)])

    return asyncio.run(read())


def test_a_server_does_not_say_how_often_it_is_asked_nor_what_is_logged() -> None:
    assert events(b"event: message\nid: 1\nretry: 0\ndata: {}\n\n") == b"event: message\nid: 1\ndata: {}\n\n"
    assert events(b": a\n\nretry: 0\n\nevent: gossip\ndata: {}\n\n", b"data: 1\r", b"\n\r\n") == b"data: 1\n\n"


@pytest.mark.parametrize("beside", [b"event: ", b": ", b"id: "])
def test_what_comes_with_an_event_counts(beside: bytes) -> None:
    with pytest.raises(httpx2.StreamError, match="8 MiB at once"):
        events(*[beside + b"x" * (3 << 20) + b"\ndata: 1\n\n"] * 3)


@pytest.mark.parametrize("end", [b"\n\r\n", b"\r\n\n", b"\n\r\r", b"\r\r\n", b"\n"])
def test_no_event_is_read_before_it_is_checked(end: bytes) -> None:
    many = b"data: [" + b"1," * 60_000 + b"1]" + end
    with suppress(httpx2.StreamError):
        assert events(many) == b""


# -- the limits alone ------------------------------------------------------------------------------------------------


def message(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def test_each_request_has_one_answer() -> None:
    one = Traffic()
    for number in range(3 * traffic.MAX_UNASKED):
        one.leaves(message(id=number, method="tools/call"))
        one.arrives(message(id=number, result={}))
    with pytest.raises(ToolError, match="sent too much that nobody asked for"):
        deque(map(one.arrives, repeat(message(id=1, result={}))))


def test_what_is_unasked_has_a_limit_in_bytes() -> None:
    one, large = Traffic(), message(method="notifications/message", params="x" * (1 << 20))
    with pytest.raises(ToolError, match="8 MiB at once"):
        deque(map(one.arrives, repeat(large)))


def test_an_allowance_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    one = Traffic()
    for _ in range(20):
        for _ in range(traffic.MAX_UNASKED):
            one.arrives(b"noise")
        now[0] += traffic.MAX_UNASKED / traffic.UNASKED_PER_SECOND


@pytest.mark.parametrize(
    "attack",
    [b"[" * 100_000, b'"' * 300_000 + b"," * 60_000, b'{"a":' * 60_000, b"[" + b'"",' * 60_000, b"[" + b"1," * 60_000],
)
def test_many_values_are_noticed_in_any_form(attack: bytes) -> None:
    with pytest.raises(ToolError, match="more than 50,000 values"):
        Traffic().arrives(attack)


def test_signs_in_texts_are_no_values() -> None:
    texts = {"text": ',[{"' * 100_000, "other": "\\" * 1000 + '",' * 50_000}
    Traffic().arrives(message(method="m", params=texts))


def test_a_message_has_a_greatest_size() -> None:
    with pytest.raises(ToolError, match="more than 8 MiB"):
        Traffic().arrives(b" " * ((8 << 20) + 1))
