"""A server written with the official SDK: `sdk_server.py stdio|http [PORT] [MARKER]`."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent, TextContent
from pydantic import BaseModel

server = MCPServer("tester")
calls = 0


class City(BaseModel):
    name: str
    population: int


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """The same again."""
    return text


@server.tool()
async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "awake"


@server.tool()
def fail(reason: str) -> str:
    """Raise."""
    raise ToolError(reason)


@server.tool()
def leave(code: int) -> str:
    """End the process."""
    print("these are my last words", file=sys.stderr, flush=True)
    os._exit(code)


@server.tool()
def letters(count: int) -> str:
    """Much text."""
    return "x" * count


@server.tool()
def city() -> City:
    """Something structured."""
    return City(name="Zürich", population=400_000)


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A caption and an image."""
    return [TextContent(text="look"), ImageContent(data="AAAA", mime_type="image/png")]


@server.tool()
def variable(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "not set")


@server.tool()
async def progress(steps: int, context: Context) -> str:
    """Report progress, then answer."""
    for step in range(steps):
        await context.report_progress(step, steps)
    return "done"


@server.tool()
def count() -> str:
    """How many calls of this there were in this process, and which process it is."""
    global calls
    calls += 1
    return f"{calls} {os.getpid()}"


class Wish(BaseModel):
    wish: str


@server.tool()
async def ask(context: Context) -> str:
    """Ask whoever sits there."""
    answer = await context.elicit("What do you wish?", Wish)
    return f"{answer.action}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http" if sys.argv[1] == "http" else "sse", port=int(sys.argv[2]))
