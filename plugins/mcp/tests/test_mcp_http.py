"""Servers with an address."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from gem_core.errors import ToolError
from gem_mcp.tool import MCPTool


@pytest.mark.uncertain("a call must finish before others that take five seconds")
def test_streamable_http(use: Any, listen: Any, port: int, raw: Any) -> None:
    server = listen("sdk_server.py", "http", port)
    call = use(MCPTool({"far": {"url": f"http://127.0.0.1:{port}/mcp"}, "near": raw("serve")}))
    assert call("far_add", a=2, b=3) == "5"
    assert call("near_ping") == "pong"
    assert [call("far_count").split()[0] for _ in range(3)] == ["1", "2", "3"]
    assert call("far_progress", steps=5) == "done"
    assert len(call("far_letters", count=3_000_000)) > 8000
    naps = [threading.Thread(target=call, args=["far_nap"], kwargs={"seconds": 5.0}) for _ in range(16)]
    began = time.monotonic()
    for nap in naps:
        nap.start()
    assert call("far_add", a=1, b=1) == "2"
    assert time.monotonic() - began < 5
    for nap in naps:
        nap.join()
    call.error("far_leave", code=0)
    server.wait()
    assert "'far'" in call.error("far_count")
    listen("sdk_server.py", "http", port)
    assert call("far_count").split()[0] == "1"


def test_server_sent_events(use: Any, listen: Any, port: int) -> None:
    server = listen("sdk_server.py", "sse", port)
    call = use(MCPTool({"old": {"url": f"http://127.0.0.1:{port}/sse", "type": "sse"}}, timeout=20.0))
    assert [call("count").split()[0] for _ in range(2)] == ["1", "2"]
    server.kill()
    server.wait()
    call.error("count")
    listen("sdk_server.py", "sse", port)
    assert call("count").split()[0] == "1"


def test_a_lost_session_is_opened_anew(use: Any, listen: Any, port: int) -> None:
    server = listen("raw_server.py", "sessions", port)
    sesame = {"Authorization": "Bearer sesame"}
    call = use(MCPTool({"far": {"url": f"http://127.0.0.1:{port}/mcp", "headers": sesame}}))
    assert call("ping") == str(server.pid)
    server.kill()
    server.wait()
    server = listen("raw_server.py", "sessions", port)
    assert [call("ping") for _ in range(2)] == [str(server.pid)] * 2


def test_wrong_headers(use: Any, listen: Any, port: int) -> None:
    listen("raw_server.py", "sessions", port)
    with pytest.raises(ToolError, match=r"'127\.0\.0\.1' answered HTTP 401 Unauthorized; check its headers"):
        use(MCPTool(f"http://127.0.0.1:{port}/mcp"))


def test_nobody_listens(use: Any, port: int) -> None:
    with pytest.raises(ToolError, match=r"'127\.0\.0\.1' .*onnect"):
        use(MCPTool(f"http://127.0.0.1:{port}/mcp"))
