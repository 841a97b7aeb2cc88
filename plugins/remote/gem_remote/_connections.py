"""Connections of a server: who has been let in, who is late, and who makes room.

A *stranger* is a connection that has not sent a request that the border accepts. Strangers are few, and a new one takes
the place of the oldest of the address that has most of them, so they never use up what is kept for the others.
"""

from __future__ import annotations

import asyncio
import math
import resource
from collections import Counter
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HEADER_SECONDS = 10.0
"""Within which the header of a request has to arrive, also if bytes keep coming."""
IDLE_SECONDS = 5
"""For which a connection may be without a request."""
TAKING_SECONDS = 120.0
"""Within which a client has to take all that it was sent."""
_MAX_STRANGERS = 1024
_MAX_UNSENT_BYTES = 128 << 20
"""That may wait for one client: two of the largest messages."""
_STATE = "gem_connection"


class Connections:
    """All connections of a server.

    Args:
        descriptors: files that the process may have open. Half of them are for admitted connections, a quarter for
            strangers, and the rest for what else the process does.
    """

    def __init__(self, descriptors: int | None = None) -> None:
        if descriptors is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            descriptors = soft if soft > 0 else 1 << 20
        self._max_admitted = max(descriptors // 2, 1)
        self._max_strangers = max(min(descriptors // 4, _MAX_STRANGERS), 1)
        self._admitted: set[HttpConnection] = set()
        self._strangers: dict[HttpConnection, None] = {}
        """The oldest first."""

    def add(self, connection: HttpConnection) -> None:
        """Count a connection that has just been opened."""
        self._strangers[connection] = None
        if len(self._strangers) > self._max_strangers:
            ((crowd, _),) = Counter(one.address for one in self._strangers).most_common(1)
            oldest = next(one for one in self._strangers if one.address == crowd)
            oldest.transport.abort()
            self.remove(oldest)

    def admit(self, connection: HttpConnection) -> bool:
        """Let a connection in, for as long as it lasts; false if there is no room."""
        if len(self._admitted) >= self._max_admitted:
            self.sweep()
        if connection not in self._admitted:
            if len(self._admitted) >= self._max_admitted:
                return False
            self._strangers.pop(connection, None)
            self._admitted.add(connection)
        return True

    def remove(self, connection: HttpConnection) -> None:
        """Forget a connection that has ended."""
        self._admitted.discard(connection)
        self._strangers.pop(connection, None)

    def sweep(self) -> None:
        """End the connections that are late, and forget those that have ended."""
        for one in [*self._admitted, *self._strangers]:
            if one.is_late():
                one.transport.abort()
            if one.is_gone:
                self.remove(one)


class HttpConnection(H11Protocol):
    """uvicorn's HTTP connection, counted and with deadlines, also after it has become a WebSocket.

    Args:
        connections: those that it is one of.
        config, server_state, app_state, _loop: see `uvicorn`.
    """

    def __init__(
        self,
        connections: Connections,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _STATE: self}, _loop)
        self._connections = connections
        self._header_due = self._taken = 0.0
        self.address = ""
        """Of the client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._taken = self.loop.time()
        self._header_due = self._taken + HEADER_SECONDS
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`. A WebSocket has another protocol: `Connections.sweep` finds its end."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def begin_request(self) -> None:
        """The header of a request is complete."""
        self._header_due = math.inf

    def admit(self) -> bool:
        """Let it in; false if there is no room."""
        return self._connections.admit(self)

    def end_request(self) -> None:
        """A request has been answered; what is left of its body counts as a part of the next header."""
        self._header_due = self.loop.time() + IDLE_SECONDS + HEADER_SECONDS

    def is_late(self) -> bool:
        """Whether a header is overdue, or the client does not take what it is sent."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if not unsent:
            self._taken = now
        return now > self._header_due or now - self._taken > TAKING_SECONDS or unsent > _MAX_UNSENT_BYTES

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self.transport.is_closing() and not self.transport.get_write_buffer_size()


def connection_of(scope: Any) -> HttpConnection:
    """The connection that a request came on."""
    return scope["state"][_STATE]
