"""WebSockets of clients: to servers that may be starting, full, or gone."""

from __future__ import annotations

import contextlib
import logging
import socket
import weakref
from collections.abc import Callable, Mapping
from typing import TypeVar

import tenacity
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.uri import parse_uri

from gem_core.errors import EnvError, printable
from gem_remote._messages import KEEPALIVE

MAX_BYTES = 64 << 20
"""Of one reply; more is no answer of an environment."""
_BUSY = 503
_CLOSE_SECONDS, _CONNECT_SECONDS = 2.0, 10.0
_UNHEARD = logging.getLogger("gem_remote._sockets")  # what it has to say is raised as well
_UNHEARD.setLevel(logging.CRITICAL)
_log = logging.getLogger("gem_remote")
_told: set[str] = set()
T = TypeVar("T")


class Lost(Exception):
    """The session has ended on the way: the server or the network is gone, or the server closed it."""


class NotNow(Exception):
    """The server cannot be reached now, or is full."""


def patiently(attempt: Callable[[], T], patience: float) -> T:
    """Make attempts for some seconds, as long as they raise `NotNow`.

    Raises:
        EnvError: none succeeded.
    """
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(NotNow),
        stop=tenacity.stop_after_delay(patience),
        wait=tenacity.wait_exponential(0.1, max=2),  # no jitter, which would draw from the global generator
        before_sleep=lambda state: _tell(state, patience),
        reraise=True,
    )
    try:
        return attempts(attempt)
    except NotNow as error:
        raise EnvError(f"{error}. It was tried for {patience:g} seconds. Next: is the server running there?") from error


def _tell(state: tenacity.RetryCallState, patience: float) -> None:
    """Log why there is a wait; each reason once, as many environments may wait for one server."""
    reason = str(state.outcome.exception()) if state.outcome else ""
    if reason not in _told:
        _told.add(reason)
        _log.warning("%s; trying for %g seconds", printable(reason), patience)


class Socket:
    """A connection on which each message gets one reply. It ends with the last reference to it.

    Args:
        url: of the server.
        headers: of the request for the connection.

    Raises:
        NotNow: nobody answers, or the server is full.
        EnvError: the server refuses, or it is no WebSocket server.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._connection = _connected(url, headers or {})
        # Without this, the thread of the connection would keep an abandoned one open.
        self._abandon = weakref.finalize(self, _abandoned, self._connection)

    def exchange(self, message: bytes | str) -> bytes:
        """The reply to a message: a text if `message` is one.

        Raises:
            Lost: the connection has ended.
        """
        try:
            with contextlib.suppress(ConnectionClosed):  # what the server said before it closed is still to be read
                self._connection.send(message)
            reply = self._connection.recv(decode=False)
        except ConnectionClosed as error:
            self.close()
            raise Lost(f"the server at {self.url} {_reason(error)}") from error
        except BaseException:  # Ctrl-C in between: the next reply would be that of another message
            self.close()
            raise
        assert isinstance(reply, bytes)
        return reply

    def close(self) -> None:
        """End the connection."""
        self._abandon.detach()
        self._connection.close()


def _connected(url: str, headers: Mapping[str, str]) -> ClientConnection:
    try:
        return connect(
            url,
            sock=_opened(url),  # with a socket of its own, no redirect is followed
            additional_headers=headers,
            compression=None,  # costs more than it saves on texts of this size
            proxy=None,
            max_size=MAX_BYTES,
            ping_interval=KEEPALIVE,
            ping_timeout=KEEPALIVE,
            close_timeout=_CLOSE_SECONDS,
            logger=_UNHEARD,
        ).__enter__()  # closed by `Socket.close`
    except InvalidStatus as error:
        said = (error.response.body or b"").decode(errors="replace").strip() or f"HTTP {error.response.status_code}"
        if error.response.status_code == _BUSY:
            raise NotNow(f"the server at {url} has no room ({said:.500})") from error
        raise EnvError(f"the server at {url} refused: {said:.500}") from error
    except (OSError, TimeoutError, EOFError) as error:
        raise NotNow(f"no server answers at {url} ({error})") from error
    except (WebSocketException, ValueError) as error:
        raise EnvError(f"what answers at {url} speaks no WebSocket ({error})") from error


def _opened(url: str) -> socket.socket:
    address = parse_uri(url)
    return socket.create_connection((address.host, address.port), _CONNECT_SECONDS)


def _reason(error: ConnectionClosed) -> str:
    return f"closed the session: {error.rcvd.reason}" if error.rcvd and error.rcvd.reason else "is gone"


def _abandoned(connection: ClientConnection) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.socket.shutdown(socket.SHUT_RDWR)
