"""Servers that attack the program which talks to them: its time, its memory and Python's lock."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections import deque
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from gem_core.errors import ToolError
from gem_mcp import traffic
from gem_mcp.tool import MCPTool
from gem_mcp.traffic import Traffic


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


# -- the limits alone ------------------------------------------------------------------------------------------------


def message(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def test_each_request_has_one_answer() -> None:
    one = Traffic()
    for number in range(3 * traffic.MOST_UNASKED):
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
        for _ in range(traffic.MOST_UNASKED):
            one.arrives(b"noise")
        now[0] += traffic.MOST_UNASKED / traffic.UNASKED_PER_SECOND


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
