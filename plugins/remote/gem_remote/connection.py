"""The client's side of a session."""

from __future__ import annotations

import logging
import os
import socket
import weakref
from typing import Any

import tenacity
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from gem_core.errors import EnvError
from gem_remote.errors import error_of
from gem_remote.messages import KEEPALIVE, PROTOCOL, TOKEN, Answer, Open, Request, decoded_reply, encoded

MOST_BYTES = 64 << 20
"""Of one reply; more is no answer of an environment."""
_BUSY = 503
_CLOSE_SECONDS = 2.0
_log = logging.getLogger("gem_remote")


class Lost(Exception):
    """The session has ended on the way: the server or the network is gone, or the server closed it."""


class _NotNow(Exception):
    """The server cannot be reached now, or is full."""


class Connection:
    """A session with a server. Opening it waits for a server that is starting or full.

    Args:
        url: of the server.
        env_id: the environment to play.
        patience: seconds to go on trying.

    Raises:
        EnvError: no session can be had; the message says why.
    """

    def __init__(self, url: str, env_id: str, patience: float) -> None:
        self._where = f"{env_id} at {url}"
        self._socket = _connected(url, patience)
        # Without this, the thread of the socket would keep an abandoned session open.
        self._abandon = weakref.finalize(self, _abandoned, self._socket)
        try:
            (self.takes_task,) = self.ask(Open(PROTOCOL, env_id))
        except Lost as error:
            raise EnvError(f"no session with {url}: {error}") from error

    def ask(self, request: Request) -> Any:
        """What the environment returns.

        Raises:
            Lost: the session is over.
            RemoteError: the environment raised. Errors of the contract, such as `EnvKwargsError`, keep their type.
            EnvError: the request cannot be sent, or the server refuses it.
        """
        try:
            data = encoded(request)
        except (TypeError, ValueError) as error:
            raise EnvError(f"{self._where}: the call cannot be sent: {error}") from error
        try:
            self._socket.send(data)
            reply = decoded_reply(self._received())
        except ConnectionClosed as error:
            raise Lost(f"the server of {self._where} {_reason(error)}") from error
        except BaseException as error:  # Ctrl-C in between, too: the next reply would be that of another call
            self.close()
            if isinstance(error, ValueError | OSError):
                raise Lost(f"the server of {self._where} sent no valid reply: {error}") from error
            raise
        if isinstance(reply, Answer):
            return reply.value
        if reply.over:
            self.close()
            raise Lost(f"{reply.text} (said by the server of {self._where})")
        raise error_of(reply, self._where)

    def _received(self) -> bytes:
        data = self._socket.recv(decode=False)
        assert isinstance(data, bytes)
        return data

    def close(self) -> None:
        """End the session."""
        self._abandon.detach()
        self._socket.close()


def _connected(url: str, patience: float) -> ClientConnection:
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_NotNow),
        stop=tenacity.stop_after_delay(patience),
        wait=tenacity.wait_random_exponential(0.1, max=2),  # many environments may have lost the same server
        reraise=True,
    )
    try:
        return attempts(_attempt, url)
    except _NotNow as error:
        raise EnvError(f"{error}, and did not for {patience:g} seconds. Next: start `gem-core serve` there") from error


def _attempt(url: str) -> ClientConnection:
    token = os.environ.get(TOKEN, "")
    try:
        return connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"} if token else None,
            compression=None,  # costs more than it saves on texts of this size
            proxy=None,
            max_size=MOST_BYTES,
            ping_interval=KEEPALIVE,
            ping_timeout=KEEPALIVE,
            close_timeout=_CLOSE_SECONDS,
        ).__enter__()  # closed by `Connection.close`
    except InvalidStatus as error:
        said = (error.response.body or b"").decode(errors="replace").strip() or f"HTTP {error.response.status_code}"
        if error.response.status_code == _BUSY:
            raise _NotNow(f"the server at {url} has no room ({said})") from error
        raise EnvError(f"the server at {url} refused: {said}") from error
    except (OSError, TimeoutError, EOFError) as error:
        raise _NotNow(f"no server answers at {url} ({error})") from error
    except (WebSocketException, ValueError) as error:
        raise EnvError(f"what answers at {url} is no `gem-core serve` ({error})") from error


def _reason(error: ConnectionClosed) -> str:
    return f"closed the session: {error.rcvd.reason}" if error.rcvd and error.rcvd.reason else "is gone"


def _abandoned(connection: ClientConnection) -> None:
    try:
        connection.socket.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed already
        _log.debug("a session had ended before it was abandoned")
