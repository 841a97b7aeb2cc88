"""Connections to servers with an address."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from gem_mcp.config import HttpServer
from gem_mcp.stdio import MOST_BYTES

_CONNECT_SECONDS = 30.0
_DAY = 86400.0
"""No limit on a silent stream: each call has its own limit."""


@asynccontextmanager
async def http_transport(
    server: HttpServer, lost: Callable[[str], None], expired: Callable[[], None]
) -> AsyncGenerator[Any]:
    """A connection to a server, in the form that the SDK's client takes.

    Args:
        server: which one.
        lost: called with the reason if the server refuses the headers.
        expired: called when the server no longer knows the session.
    """

    async def look(response: httpx2.Response) -> None:
        request = response.request
        if response.status_code in (401, 403):
            lost(f"answered HTTP {response.status_code} {response.reason_phrase}; check its headers")
        if response.status_code == 404 and request.method == "POST" and MCP_SESSION_ID in request.headers:
            expired()

    if server.transport == "sse":
        async with sse_client(server.url, server.headers, _CONNECT_SECONDS, _DAY) as streams:
            yield streams
        return
    client = httpx2.AsyncClient(
        headers=server.headers,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_DAY, pool=_DAY),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        event_hooks={"response": [look]},
    )
    messages = streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_BYTES)
    async with client, messages as streams:
        yield streams
