"""A server behind a border: its start, and its end within seconds whatever its clients do."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from types import FrameType
from typing import Any

import uvicorn

from gem_remote._border import BorderMiddleware
from gem_remote._connections import Connections, HttpConnection, ServerConfig

GRACE_SECONDS = 1
"""For answers that are under way when the server ends."""
_MAX_END_SECONDS = 4.0
_WAITING = 2048
"""Connections that the system keeps until they are accepted."""
_ACCEPTED_AT_ONCE = 16
"""Few, so that a request is read before a crowd of later connections can push it out."""


class WebServer(uvicorn.Server):
    """A server whose application is behind a border.

    Args:
        app: the application.
        options: more settings of `uvicorn.Config`.
    """

    def __init__(self, app: BorderMiddleware, **options: Any) -> None:
        config = ServerConfig(
            app,
            http=HttpConnection,
            log_config=None,
            access_log=False,
            lifespan="off",
            backlog=_ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=GRACE_SECONDS,
            **{"ws": "none", **options},
        )
        config.connections = self._connections = Connections()
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(_WAITING)

    async def on_tick(self, counter: int) -> bool:
        """See `uvicorn.Server`: called every 0.1 s."""
        if counter % 10 == 0:
            self._connections.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, by force if it takes too long: a thread may never return."""
        if not self.should_exit:
            timer = threading.Timer(_MAX_END_SECONDS, _end_by_force)
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)


def _end_by_force() -> None:
    print(f"The server had work that did not end within {_MAX_END_SECONDS:g} seconds.", file=sys.stderr, flush=True)
    os._exit(1)
