"""A server behind a border: its start, and its end within seconds whatever its clients and threads do."""

from __future__ import annotations

import faulthandler
import socket
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gem_remote._border import Border
from gem_remote._connections import IDLE_SECONDS, Connections, HttpConnection, connection_of

GRACE_SECONDS = 1
"""For answers that are under way when the server ends."""
_MAX_END_SECONDS = 4
_WAITING = 2048
"""Connections that the system keeps until they are accepted."""
_ACCEPTED_AT_ONCE = 4
"""Few, so that a request is read before a crowd of later connections can push it out."""
_PIECE_BYTES = 256 << 10
"""Of an answer, sent before the client has to take some."""


class WebServer(uvicorn.Server):
    """A server with an application behind a border.

    Args:
        app: the application.
        border: which requests it gets.
        options: more settings of `uvicorn.Config`.
    """

    def __init__(self, app: ASGIApp, border: Border, **options: Any) -> None:
        self._app = app
        self._border = border
        self._connections = Connections()
        settings: dict[str, Any] = {
            "http": partial(HttpConnection, self._connections),
            "interface": "asgi3",
            "ws": "none",
            "loop": "asyncio",
            "lifespan": "off",
            "log_config": None,
            "log_level": "error",
            "access_log": False,
            "proxy_headers": False,
            "backlog": _ACCEPTED_AT_ONCE,
            "timeout_keep_alive": IDLE_SECONDS,
            "timeout_graceful_shutdown": GRACE_SECONDS,
        }
        super().__init__(uvicorn.Config(self._answer, **{**settings, **options}))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_WAITING)

    async def on_tick(self, counter: int) -> bool:
        """See `uvicorn.Server`: called every 0.1 s."""
        if counter % 10 == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End; a thread that does not return is shown in the log, and the process ends without it."""
        if not self.should_exit:
            faulthandler.dump_traceback_later(_MAX_END_SECONDS, exit=True)
        super().handle_exit(sig, frame)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        connection.begin_request()
        answer: ASGIApp | None = self._border.refusal(HTTPConnection(scope))
        if answer is None and not connection.admit():
            answer = self._border.refuse("all connections of this server are in use; try again later", 503)
        try:
            await (answer or self._app)(scope, receive, partial(_send_in_pieces, send))
        finally:
            connection.end_request()


async def _send_in_pieces(send: Send, message: Message) -> None:
    """Send as fast as the client takes it."""
    body = memoryview(cast("bytes", message.get("body", b"")))
    for end in range(_PIECE_BYTES, len(body), _PIECE_BYTES):
        await send({**message, "body": body[end - _PIECE_BYTES : end], "more_body": True})
    rest = (max(len(body), 1) - 1) // _PIECE_BYTES * _PIECE_BYTES
    await send({**message, "body": body[rest:]} if rest else message)
