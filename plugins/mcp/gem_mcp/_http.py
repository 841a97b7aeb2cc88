"""Connections to servers with an address."""

from __future__ import annotations

import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from gem_core.errors import ToolError
from gem_mcp._config import HttpServer
from gem_mcp._traffic import MAX_BYTES, Traffic, too_long

_CONNECT_SECONDS = 30.0
_DAY = 86400.0
"""No limit on a silent stream: each exchange has its own limit."""
_LEAVE_SECONDS = 2.0
"""Seconds that a server may take to hear that its session is over."""
_MAX_COOKIES = 100
_until: ContextVar[float] = ContextVar("gem_mcp_until", default=math.inf)
"""When the server must have answered the message that this task sent."""


@asynccontextmanager
async def http_transport(
    server: HttpServer, seconds: float, traffic: Traffic, lost: Callable[[str], None], expired: Callable[[], None]
) -> AsyncGenerator[Any]:
    """A connection to a server, in the form that the SDK's client takes.

    Args:
        server: which one.
        seconds: within which it must have answered a message; whoever waited for the answer is gone by then.
        traffic: checks its messages.
        lost: called with the reason if the server refuses the headers, or sends too much.
        expired: called when the server no longer knows the session.
    """

    async def leave(request: httpx2.Request) -> None:
        if request.method == "POST":
            traffic.leaves(await request.aread())

    async def look(response: httpx2.Response) -> None:
        request = response.request
        if response.status_code in (401, 403):
            lost(f"answered HTTP {response.status_code} {response.reason_phrase}; check its headers")
        if response.status_code == 404 and request.method == "POST" and MCP_SESSION_ID in request.headers:
            expired()
        response.stream = Checked(response, traffic, lost)

    def client(headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return TimedClient(
            seconds,
            # A compressed message would be larger than what was counted.
            headers={**server.headers, **(headers or {}), "Accept-Encoding": "identity"},
            timeout=timeout or httpx2.Timeout(_CONNECT_SECONDS, read=_DAY, pool=_DAY),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            event_hooks={"request": [leave], "response": [look]},
        )

    if server.transport == "sse":
        async with sse_client(server.url, None, _CONNECT_SECONDS, _DAY, httpx_client_factory=client) as streams:
            yield streams
        return
    http = client()
    async with http, streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_BYTES) as streams:
        yield streams


class TimedClient(httpx2.AsyncClient):
    """Ends each exchange in time, but for the stream on which the server speaks unasked.

    The SDK ends an exchange when the server does. So a server that never does would keep a connection for each call.
    """

    def __init__(self, seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._seconds = seconds

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Send a request. The SDK asks for the rest of a broken stream in the same task, so within the same time."""
        if request.method != "GET":
            _until.set(time.monotonic() + (_LEAVE_SECONDS if request.method == "DELETE" else self._seconds))
        if len(self.cookies) > _MAX_COOKIES:  # a server could send new ones for ever
            self.cookies.clear()
        with anyio.move_on_after(_until.get() - time.monotonic()):
            return await super().send(request, **settings)
        return httpx2.Response(504, request=request)


class Checked(httpx2.AsyncByteStream):
    """The body of a response, message by message, each of them checked before anybody reads it."""

    def __init__(self, response: httpx2.Response, traffic: Traffic, lost: Callable[[str], None]) -> None:
        self._body: Any = response.stream
        self._events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._compressed = response.headers.get("content-encoding", "identity") != "identity"
        self._traffic = traffic
        self._lost = lost

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for message in self._messages():
                yield message
        except ToolError as error:
            self._lost(str(error))
            raise httpx2.StreamError(str(error)) from error

    async def _messages(self) -> AsyncIterator[bytes]:
        if self._compressed:
            raise ToolError("sent a compressed message, which it was asked not to")
        unread = bytearray()
        async for chunk in self._chunks():
            searched = max(0, len(unread) - _MAX_END_LENGTH)
            unread += chunk
            while self._events and (end := _EVENT_END.search(unread, searched)):
                yield self._event(bytes(unread[: end.end()]))
                del unread[: end.end()]
                searched = 0
            if len(unread) > MAX_BYTES:
                raise too_long()
        if unread and not self._events:  # an event without an end is none
            self._traffic.arrives(bytes(unread))
            yield bytes(unread)

    def _event(self, event: bytes) -> bytes:
        """What the SDK needs of it: no word on when to come back, and no name that it would log."""
        lines = event.splitlines()
        data = [line for line in lines if line.startswith(b"data:")]
        message = b"".join(line[5:] for line in data)
        self._traffic.arrives(message, beside=len(event) - len(message))
        kept = [line for line in lines if line.startswith((b"data:", b"id:", b"event:"))]
        known = all(line[6:].strip() in (b"message", b"endpoint") for line in lines if line.startswith(b"event:"))
        return b"\n".join([*kept, b"\n"]) if known and kept else b""

    async def _chunks(self) -> AsyncIterator[bytes]:
        """The body as far as it comes in time."""
        body = aiter(self._body)
        while True:
            chunk = b""
            with anyio.move_on_after(_until.get() - time.monotonic()):
                chunk = await anext(body, b"")
            if not chunk:
                return
            yield chunk

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


_EVENT_END, _MAX_END_LENGTH = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}"), 4
