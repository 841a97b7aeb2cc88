"""Calls of an MCP server with a session that stays, beside gem-llm 0.1.0, which connects anew for each call.

    python benchmarks/tools_mcp.py [--upstream PYTHON] [--calls 400] [--json out.json]

`--upstream` is a Python that has gem-llm 0.1.0 and fastmcp. The server adds two numbers; both sides call the same one,
over stdio and streamable HTTP, from one thread and from 16. Each measurement runs in a process of its own with a time
limit, the first call of each thread does not count, and a ratio says how many times shorter our median is. The load of
the machine before each measurement stands beside it: with more than its cores' number, figures say little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CALLERS = (1, 16)
LIMIT_SECONDS = 300.0
SHARE_OF_CALLS = 80
"""Upstream makes this many times fewer calls, as each takes so much longer."""
Add = Callable[[int, int], str]


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    elif sys.argv[1:2] == ["measure"]:
        side, servers, callers, calls = sys.argv[2:]
        print(json.dumps(measure(side, json.loads(servers), int(callers), int(calls))))
    else:
        report(_options())


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


# -- one measurement ------------------------------------------------------------------------------------------------


def measure(side: str, servers: Any, callers: int, calls: int) -> dict[str, float]:
    """Milliseconds of a call, and calls a second, with so many threads that call."""
    with (ours if side == "ours" else upstream)(servers) as add:
        times: list[float] = []
        ready = threading.Barrier(callers + 1)
        threads = [threading.Thread(target=_call, args=(add, calls // callers, ready, times)) for _ in range(callers)]
        for thread in threads:
            thread.start()
        ready.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        per_second = len(times) / (time.perf_counter() - began)
    cuts = statistics.quantiles(times, n=20)
    return {"p50_ms": statistics.median(times) * 1e3, "p95_ms": cuts[18] * 1e3, "per_s": per_second}


def _call(add: Add, calls: int, ready: threading.Barrier, times: list[float]) -> None:
    add(0, 0)
    ready.wait()
    for number in range(calls):
        began = time.perf_counter()
        text = add(number, 1)
        times.append(time.perf_counter() - began)
        if str(number + 1) not in text:
            raise SystemExit(f"{number} + 1 gave {text!r}")


@contextmanager
def ours(servers: Any) -> Iterator[Add]:
    from gem_core.tools import Toolbox
    from gem_core.tools.calls import Call
    from gem_mcp.tool import MCPTool

    session = Toolbox([MCPTool(servers)]).session()
    session.begin()
    yield lambda a, b: session.call(Call("add", 0, {"a": a, "b": b})).text
    session.close()


@contextmanager
def upstream(servers: Any) -> Iterator[Add]:
    from gem.tools.mcp_tool import MCPTool

    tool = MCPTool({"mcpServers": servers})

    def add(a: int, b: int) -> str:
        arguments = json.dumps({"a": a, "b": b})
        call = f"<tool_call><tool_name>add</tool_name><arguments>{arguments}</arguments></tool_call>"
        return tool.execute_action(call)[2]

    yield add
    tool.close()


# -- the table ------------------------------------------------------------------------------------------------------


def report(options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 132)
    console.print(" ".join(f"{key}={value}" for key, value in _machine().items()))
    table = Table("transport", "callers", "", "p50 ms", "p95 ms", "calls/s", "ratio of p50", "load before")
    figures: list[dict[str, Any]] = []
    with _servers() as servers:
        for transport, server in servers.items():
            for callers in CALLERS:
                own = _measured(sys.executable, "ours", server, callers, options.calls)
                other = None
                if options.upstream:
                    fewer = max(options.calls // SHARE_OF_CALLS, callers)
                    other = _measured(options.upstream, "upstream", server, callers, fewer)
                for side, figure in (("ours", own), ("upstream", other)):
                    if figure is not None:
                        ratio = f"{other['p50_ms'] / own['p50_ms']:.0f}" if own and other and side == "ours" else ""
                        cells = [f"{figure[name]:.2f}" for name in ("p50_ms", "p95_ms")]
                        table.add_row(
                            transport, str(callers), side, *cells, f"{figure['per_s']:.0f}", ratio, f"{figure['load']}"
                        )
                        figures.append({"transport": transport, "callers": callers, "side": side, **figure})
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"machine": _machine(), "figures": figures}, indent=1))


def _measured(python: str, side: str, server: Any, callers: int, calls: int) -> dict[str, float] | None:
    """The figures; none where they took too long."""
    load = round(os.getloadavg()[0], 1)
    command = [python, __file__, "measure", side, json.dumps({"adder": server}), str(callers), str(calls)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}  # upstream's servers end with a traceback
    try:
        done = subprocess.run(command, timeout=LIMIT_SECONDS, check=True, **quiet)
    except subprocess.TimeoutExpired:
        print(f"{side}, {callers} callers: not ready after {LIMIT_SECONDS:g} seconds", file=sys.stderr)
        return None
    return {**json.loads(done.stdout.splitlines()[-1]), "load": load}


@contextmanager
def _servers() -> Iterator[dict[str, Any]]:
    """How to reach the server, by transport."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    far = subprocess.Popen([sys.executable, __file__, "serve", "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield {
            "stdio": {"command": sys.executable, "args": [__file__, "serve", "stdio"]},
            "http": {"url": f"http://127.0.0.1:{port}/mcp", "transport": "http"},
        }
    finally:
        far.kill()
        far.wait()


def _machine() -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "mcp": version("mcp"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", metavar="PYTHON", help="a Python with gem-llm 0.1.0 and fastmcp")
    parser.add_argument("--calls", type=int, default=400, help="calls per measurement")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
