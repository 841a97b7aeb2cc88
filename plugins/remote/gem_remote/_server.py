"""The server: sessions over WebSockets, their limits, and their end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from gem_core.env import Env
from gem_remote._border import Border, Token
from gem_remote._listening import end_on_sigterm
from gem_remote._messages import KEEPALIVE, TOKEN, Failed, encoded
from gem_remote._session import EnvSession
from gem_remote._web_server import WebServer
from gem_remote._websockets import WebSocketConnection

_CLOSING_SECONDS = 2
"""For environments to close when the server ends."""
_TOKEN_HINT = f"the token is missing or wrong: set {TOKEN} to that of the server"


@dataclass(frozen=True)
class Limits:
    """What clients may use."""

    sessions: int = 256
    """Sessions at the same time."""
    idle: float = 3600.0
    """Seconds between two calls of a session. A policy may be trained meanwhile."""
    call: float = 600.0
    """Seconds of one call."""
    message: int = 16 << 20
    """Bytes of a message, in either direction."""


class EnvServer:
    """Plays environments for clients.

    Args:
        builders: builds an environment, by the ids that clients may play.
        limits: what clients may use.
        token: what clients must know; none if it is empty.
    """

    def __init__(self, builders: Mapping[str, Callable[[], Env]], limits: Limits, token: str = "") -> None:
        self._builders = builders
        self._limits = limits
        self._token = token
        self._pool = ThreadPoolExecutor(2 * limits.sessions, "gem-serve")  # a call and a closing each
        self._leaving: set[asyncio.Task[None]] = set()
        self.sessions = 0
        """Sessions that are open, or whose environment is not closed yet."""

    def run(self, address: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until a signal ends it.

        Args:
            address: a socket that listens.
            ready: called once the server accepts sessions.
        """
        end_on_sigterm()
        ready()
        try:
            asyncio.run(self._run(address))
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, address: socket.socket) -> None:
        border = Border(token=Token(self._token, _TOKEN_HINT) if self._token else None)
        server = WebServer(
            self._application(),
            border,
            ws=WebSocketConnection,
            ws_max_size=self._limits.message,
            ws_ping_interval=KEEPALIVE,
            ws_ping_timeout=KEEPALIVE,
            ws_per_message_deflate=False,
        )
        try:
            await server.serve([address])
        finally:
            if self._leaving:
                await asyncio.wait(self._leaving, timeout=_CLOSING_SECONDS)

    def _application(self) -> Starlette:
        return Starlette(routes=[Route("/health", self._health), WebSocketRoute("/", self._serve)])

    async def _health(self, request: Request) -> Response:
        told = {"sessions": self.sessions, "closing": len(self._leaving), "most_sessions": self._limits.sessions}
        return JSONResponse({"status": "ready", "environments": [*self._builders], **told})

    async def _serve(self, client: WebSocket) -> None:
        if self.sessions >= self._limits.sessions:
            said = f"all of its {self._limits.sessions} sessions are in use"
            await client.send_denial_response(PlainTextResponse(said, 503))
            return
        self.sessions += 1
        session = EnvSession(self._builders, self._limits.message)
        try:
            await client.accept()
            await self._play(client, session)
        except WebSocketDisconnect:
            pass
        finally:
            # In a task of its own: this one may be cancelled, and the last call may take a while.
            leaving = asyncio.create_task(self._leave(session))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _play(self, client: WebSocket, session: EnvSession) -> None:
        """Answer one call after another, until the client leaves or the session is over."""
        loop, limits = asyncio.get_running_loop(), self._limits
        while not session.over:
            try:
                data = await asyncio.wait_for(client.receive_bytes(), limits.idle)
            except asyncio.TimeoutError:
                await client.close(reason=f"nothing was asked for {limits.idle:g} seconds")
                return
            except KeyError:  # a text, which is no call
                data = b""
            try:
                reply = await asyncio.wait_for(loop.run_in_executor(self._pool, session.answer, data), limits.call)
            except asyncio.TimeoutError:
                said = f"the call took more than {limits.call:g} seconds, the limit of the server"
                reply = encoded(Failed("TimeoutError", said, over=True))
                session.over = True
            await client.send_bytes(reply)
        await client.close()

    async def _leave(self, session: EnvSession) -> None:
        """Close the environment, once its last call has returned; then others may have its place."""
        await asyncio.get_running_loop().run_in_executor(self._pool, session.close)
        self.sessions -= 1
