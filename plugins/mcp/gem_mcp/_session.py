"""Sessions with servers, kept as long as both sides live."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from mcp import Client, MCPError, types

from gem_core import __version__
from gem_core.errors import ToolError
from gem_mcp._config import HttpServer, ServerConfig
from gem_mcp._http import http_transport
from gem_mcp._stdio import stdio_transport
from gem_mcp._traffic import Traffic

MAX_STARTS, WITHIN_SECONDS = 10, 60.0
"""The most starts of one server, and the seconds that they are counted over."""
_MAX_TOOLS, _MAX_LISTED_BYTES = 10_000, 32 << 20
"""Tools of a server, and bytes of all that it sends until it has listed them."""
_CLIENT = types.Implementation(name="gem-core", version=__version__)


class _Expired(ToolError):
    """The server does not know the session of a call, because the server was restarted."""


class Server:
    """A server that is started again after it was lost. Lives on one event loop.

    Args:
        name: of the server, for messages.
        config: how to reach it.
        timeout: seconds that one call may take.
        start_timeout: seconds within which it must list its tools.
    """

    def __init__(self, name: str, config: ServerConfig, timeout: float, start_timeout: float) -> None:
        self._name = name
        self._config = config
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._sessions: list[McpSession] = []
        """The current session, and earlier ones that have not closed yet."""
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._doubt: asyncio.Task[None] | None = None
        self._closed = False

    async def tools(self) -> list[types.Tool]:
        """The tools of the server. Raises as `call`."""
        return (await self._live()).tools

    async def call(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Call a tool. A lost call is not repeated, because the server may have carried it out.

        Raises:
            ToolError: there is no session, or it was lost; an error of the protocol; an answer that is not a result.
        """
        session = await self._live()
        try:
            return await self._called(session, tool, arguments)
        except _Expired:  # so the call was not carried out
            session.abandon("does not know the session any more")
        return await self._called(await self._live(), tool, arguments)

    async def close(self) -> None:
        """End the session and the process that was started for it. No session can follow."""
        self._closed = True
        if self._doubt is not None:
            self._doubt.cancel()
        await asyncio.gather(*(session.close() for session in self._sessions))

    async def _called(self, session: McpSession, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        try:
            return await session.client.call_tool(tool, arguments)
        except asyncio.CancelledError:
            if not session.lost and (self._doubt is None or self._doubt.done()):
                self._doubt = asyncio.create_task(self._check(session))
            raise
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                await self._check(session)
            elif session.expired:
                raise _Expired from error
            if session.lost:
                said = f"MCP server {self._name!r} {session.cause}. It is started again for the next call."
                raise ToolError(said) from error
            raise ToolError(error.message) from error
        except (RuntimeError, ValueError) as error:  # the server breaks the protocol, or the schema of its own tool
            raise ToolError(f"MCP server {self._name!r}: {error}") from error

    async def _check(self, session: McpSession) -> None:
        """After a failed call, find out whether the call or the server is at fault."""
        if session.lost:
            return
        try:
            await asyncio.wait_for(session.client.list_tools(), self._start_timeout)
        except asyncio.TimeoutError:
            session.abandon(f"did not answer any more within {self._start_timeout:g} seconds")
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                session.abandon("closed the connection")
        except Exception:  # any answer shows that the server is alive
            pass

    async def _live(self) -> McpSession:
        session = self._sessions[-1] if self._sessions else None
        if session is None or session.lost:
            session = self._started()
        if not await session.opened():
            raise ToolError(f"MCP server {self._name!r} {session.cause}")
        return session

    def _started(self) -> McpSession:
        now = time.monotonic()
        if self._closed:
            raise ToolError(f"MCP server {self._name!r} was closed")
        if len(self._starts) == MAX_STARTS and (wait := self._starts[0] + WITHIN_SECONDS - now) > 0:
            often = f"was started {MAX_STARTS} times in {WITHIN_SECONDS:g} seconds and lost each time"
            raise ToolError(f"MCP server {self._name!r} {often}; the next start is in {wait:.0f} seconds")
        self._starts.append(now)
        self._sessions = [session for session in self._sessions if not session.ended]
        self._sessions.append(McpSession(self._name, self._config, self._timeout, self._start_timeout))
        return self._sessions[-1]


class McpSession:
    """One session. The SDK demands that one task opens, keeps and closes it; any task may call tools."""

    def __init__(self, name: str, config: ServerConfig, timeout: float, start_timeout: float) -> None:
        self.client: Client
        self.tools: list[types.Tool]
        self.expired = False
        """The server no longer knows the session."""
        self.cause = f"did not say within {start_timeout:g} seconds what it offers"
        """Why the session is over."""
        self._name = name
        self._config = config
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._traffic = Traffic()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._task = asyncio.create_task(self._keep())

    @property
    def ended(self) -> bool:
        """Whether it is over and everything is released."""
        return self._task.done()

    @property
    def lost(self) -> bool:
        """Whether it is over or ending."""
        return self._scope.cancel_called or self.ended

    async def opened(self) -> bool:
        """Wait until it is open; false if it could not be opened."""
        await asyncio.wait((self._opened, self._task), return_when=asyncio.FIRST_COMPLETED)
        return self._opened.done()

    def abandon(self, cause: str) -> None:
        """End it at once."""
        if not self.lost:
            self.cause = cause
            self._scope.cancel()

    async def close(self) -> None:
        """End it in order; at once if it is not open yet."""
        self._closing.set()
        if not self._opened.done():
            self._scope.cancel()
        await asyncio.wait((self._task,))

    async def _keep(self) -> None:
        self._scope.deadline = anyio.current_time() + self._start_timeout
        try:
            with self._scope:
                await self._open()
        except Exception as error:
            if not self._scope.cancel_called:
                self.cause = _in_words(error)

    async def _open(self) -> None:
        async with Client(self._transport(), cache=None, client_info=_CLIENT) as client:
            # The SDK would check answers with the server's own schemas, whose patterns may take for ever, under
            # Python's lock. Nothing here relies on them: an answer is text for a model.
            client.session.validate_tool_result = _as_it_is
            self.tools = await _all_tools(client, self._traffic)
            self.client = client
            self.cause = "was closed"
            self._scope.deadline = math.inf
            self._opened.set_result(None)
            await self._closing.wait()

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        if isinstance(self._config, HttpServer):
            seconds = max(self._timeout, self._start_timeout)
            return http_transport(self._config, seconds, self._traffic, self.abandon, self._expire)
        return stdio_transport(self._name, self._config, self._traffic, self.abandon)

    def _expire(self) -> None:
        self.expired = True


async def _as_it_is(name: str, result: types.CallToolResult) -> None:
    pass


async def _all_tools(client: Client, traffic: Traffic) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if len(tools) > _MAX_TOOLS:
            raise ToolError(f"has more than {_MAX_TOOLS:,} tools")
        if traffic.bytes > _MAX_LISTED_BYTES:
            raise ToolError(f"describes its tools in more than {_MAX_LISTED_BYTES >> 20} MiB")
        if page.next_cursor is None or page.next_cursor == cursor:
            return tools
        cursor = page.next_cursor


def _in_words(error: BaseException) -> str:
    """The error inside the groups of task groups: the transport's own, if there is one."""
    leaves = [*_leaves(error)]
    told = [leaf for leaf in leaves if isinstance(leaf, ToolError)]
    return str(told[0]) if told else f"failed: {type(leaves[0]).__name__}: {leaves[0]}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    for inner in getattr(error, "exceptions", ()):
        yield from _leaves(inner)
    if not hasattr(error, "exceptions"):
        yield error
