"""Calls of an MCP server with a persistent session, and those of gem-llm 0.1.0, which connects for each call.

Part of tools.py. The server adds two numbers; both sides call the same one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from report import Line

CALLERS = 16
Add = Callable[[int], str]


def measure(quick: bool) -> list[Line]:
    """Both transports, one caller and many."""
    calls = 100 if quick else 400
    lines: list[Line] = []
    with _servers() as servers:
        for transport, server in servers.items():
            with _ours(server) as add:
                own = _latencies(add, calls)
                rate = _rate(add, calls)
            with _upstream(server) as add:
                other = _latencies(add, 2 if quick else 4)
            p50, theirs = statistics.median(own), statistics.median(other)
            lines.append(Line(f"{transport}, one call, p50, ms", p50, theirs, theirs / p50))
            lines.append(Line(f"{transport}, one call, p95, ms", statistics.quantiles(own, n=20)[18]))
            lines.append(Line(f"{transport}, {CALLERS} callers, calls per second", rate))
    return lines


@contextlib.contextmanager
def _ours(server: Any) -> Iterator[Add]:
    from gem_core.tools import Toolbox, ToolSession
    from gem_core.tools._calls import ParsedCall
    from gem_mcp.tool import MCPTool

    session = ToolSession(Toolbox([MCPTool({"adder": server})]))
    session.begin()
    yield lambda number: session.call(ParsedCall("add", 0, {"a": number, "b": 1})).text
    session.close()


@contextlib.contextmanager
def _upstream(server: Any) -> Iterator[Add]:
    from gem.tools.mcp_tool import MCPTool

    tool = MCPTool({"mcpServers": {"adder": server}})

    def add(number: int) -> str:
        arguments = json.dumps({"a": number, "b": 1})
        call = f"<tool_call><tool_name>add</tool_name><arguments>{arguments}</arguments></tool_call>"
        return tool.execute_action(call)[2]

    yield add
    tool.close()


def _latencies(add: Add, calls: int) -> list[float]:
    """Milliseconds; the first call does not count."""
    _checked(add, 0)
    return [_checked(add, number) for number in range(calls)]


def _rate(add: Add, calls: int) -> float:
    with ThreadPoolExecutor(CALLERS) as callers:
        begin = time.perf_counter()
        list(callers.map(lambda number: _checked(add, number), range(calls)))
        return calls / (time.perf_counter() - begin)


def _checked(add: Add, number: int) -> float:
    begin = time.perf_counter()
    text = add(number)
    if str(number + 1) not in text:
        raise SystemExit(f"{number} + 1 gave {text!r}")
    return 1000 * (time.perf_counter() - begin)


@contextlib.contextmanager
def _servers() -> Iterator[dict[str, Any]]:
    """How to reach the server, by transport."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    far = subprocess.Popen([sys.executable, __file__, "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield {
            "stdio": {"command": sys.executable, "args": [__file__, "stdio"]},
            "http": {"url": f"http://127.0.0.1:{port}/mcp", "transport": "http"},
        }
    finally:
        far.kill()
        far.wait()


def serve(transport: str, port: str = "0") -> None:
    """The server, written with the SDK."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("adder", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> int:
        """The sum of two numbers."""
        return a + b

    if transport == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(port))


if __name__ == "__main__":
    serve(*sys.argv[1:])
