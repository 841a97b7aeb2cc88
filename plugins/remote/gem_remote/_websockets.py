"""WebSockets of a server, which stay the `Connection` that they were when they asked."""

from __future__ import annotations

from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from gem_remote._connections import connection_of


class WebSocketConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which reports to the `Connection` of its request."""

    def __init__(self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        connection = connection_of({"state": app_state})
        assert connection is not None
        self._connection = connection

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._connection.receive()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._connection.close()
        super().connection_lost(exc)
