"""WebSockets of the server."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

_MAX_FRAGMENTS = 1000


class WebSocketConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, with a limit of fragments: empty ones count for no limit of bytes."""

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment to a message."""
        if len(self.frames) < _MAX_FRAGMENTS:
            super().handle_cont(event)
        else:
            self.transport.abort()
