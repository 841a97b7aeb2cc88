"""Connections of a server: who has been let in, who has to hurry, and who makes room.

A *stranger* is a connection that has not yet sent a request that the border accepts. Strangers are few, and a new one
takes the place of the oldest of the address that has most of them, so they never use up what is kept for the others.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HEADER_SECONDS = 10.0
"""Within which a request's header has to arrive, also if bytes keep coming."""
STALL_SECONDS = 30.0
"""For which a client may take nothing of what it is sent."""
ANSWER_SECONDS = 120.0
"""Within which a client has to take an answer over HTTP, however large."""
_MAX_STRANGERS = 128
_UNSENT_BYTES = 64 << 20
"""That may wait for a client that reads slowly: several of the largest messages."""
_STATE = "gem_connection"


class Connections:
    """All connections of a server.

    Args:
        descriptors: files that the process may have open. Half of them are for admitted connections, an eighth for
            strangers, and the rest for what else the process does.
    """

    def __init__(self, descriptors: int | None = None) -> None:
        if descriptors is None:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            descriptors = soft if soft != resource.RLIM_INFINITY else 1 << 20
        self._most_admitted = max(descriptors // 2, 1)
        self._most_strangers = max(min(descriptors // 8, _MAX_STRANGERS), 1)
        self._admitted: set[Connection] = set()
        self._strangers: dict[str, dict[Connection, None]] = {}
        """By address, the oldest first."""

    def add_stranger(self, connection: Connection) -> None:
        """Count a connection that has just been opened."""
        self._strangers.setdefault(connection.address, {})[connection] = None
        if sum(map(len, self._strangers.values())) > self._most_strangers:
            crowd = max(self._strangers.values(), key=len)
            next(iter(crowd)).abort()

    def admit(self, connection: Connection) -> bool:
        """Let a connection in, for as long as it lasts; false if there is no room, or it is gone."""
        if connection not in self._admitted:
            if connection.is_gone or len(self._admitted) >= self._most_admitted:
                return False
            self._forget_stranger(connection)
            self._admitted.add(connection)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._admitted.discard(connection)
        self._forget_stranger(connection)

    def sweep(self, now: float) -> None:
        """End the connections that are late."""
        strangers = [one for crowd in self._strangers.values() for one in crowd]
        for one in [*self._admitted, *strangers]:
            if one.is_late(now):
                one.abort()

    def _forget_stranger(self, connection: Connection) -> None:
        crowd = self._strangers.get(connection.address, {})
        crowd.pop(connection, None)
        if not crowd:
            self._strangers.pop(connection.address, None)


class Connection:
    """One connection. The protocols below report to it, and so does the border.

    Args:
        connections: those that it is one of.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._due: float | None = None
        self._is_idle = False
        self._unsent = 0
        self._stalled_at: float | None = None
        self.address = ""
        """Of the client."""
        self.is_gone = False
        """Whether it has ended."""

    def open(self, transport: asyncio.Transport) -> None:
        """The connection is there; a header has to follow."""
        self._transport = transport
        peer: Any = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._due = _now() + HEADER_SECONDS
        self._connections.add_stranger(self)

    def receive(self) -> None:
        """Bytes came."""
        if self._is_idle:
            self._is_idle, self._due = False, _now() + HEADER_SECONDS
        if self._transport is not None and self._transport.get_write_buffer_size() > _UNSENT_BYTES:
            self.abort()  # it keeps asking for answers that it does not read

    def begin_request(self) -> None:
        """The header of a request is complete."""
        self._is_idle, self._due = False, None

    def admit(self) -> bool:
        """Let the connection in; false if there is no room."""
        return self._connections.admit(self)

    def begin_answer(self) -> None:
        """An answer over HTTP is ready to be sent."""
        self._due = _now() + ANSWER_SECONDS

    def end_request(self) -> None:
        """A request has been answered; another one may follow."""
        self._is_idle, self._due = True, None

    def close(self) -> None:
        """The connection is gone."""
        self.is_gone = True
        self._connections.remove(self)

    def abort(self) -> None:
        """End the connection now, and forget it."""
        self.close()
        if self._transport is not None:
            self._transport.abort()

    def is_late(self, now: float) -> bool:
        """Whether its header or its answer is overdue, or it has taken nothing of what it was sent for too long."""
        if self._due is not None and now > self._due:
            return True
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if not unsent or unsent < self._unsent or self._stalled_at is None:
            self._stalled_at = now
        self._unsent = unsent
        return unsent > 0 and now - self._stalled_at > STALL_SECONDS


class ServerConfig(uvicorn.Config):
    """The settings of a server, with its connections."""

    connections: Connections


class HttpConnection(H11Protocol):
    """uvicorn's HTTP, with a `Connection` that requests find with `connection_of`."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert isinstance(config, ServerConfig)
        self._connection = Connection(config.connections)
        super().__init__(config, server_state, {**app_state, _STATE: self._connection}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._connection.open(transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._connection.receive()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._connection.close()
        super().connection_lost(exc)


def connection_of(scope: Any) -> Connection | None:
    """The connection of a request; `None` in tests that have no network."""
    return scope.get("state", {}).get(_STATE)


def _now() -> float:
    return asyncio.get_running_loop().time()
