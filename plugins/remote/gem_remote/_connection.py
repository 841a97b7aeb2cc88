"""The client's side of a session."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from gem_core.errors import EnvError
from gem_remote._errors import error_of
from gem_remote._messages import PROTOCOL, TOKEN, URL, Answer, Open, Request, decoded_reply, encoded, shared_token
from gem_remote._sockets import Lost, NotNow, Socket, patiently

_CHOICE = random.SystemRandom()  # an episode must not move any generator


class Connection:
    """A session with a `gem-core serve`. Opening it waits for a server that is starting or full.

    Args:
        urls: of equal servers; the session is with one of them.
        env_id: the environment to play.
        patience: seconds to go on trying.

    Raises:
        EnvError: no session can be had; the message says why.
    """

    def __init__(self, urls: Sequence[str], env_id: str, patience: float) -> None:
        self._socket = patiently(lambda: _socket(urls), patience)
        self._where = f"{env_id} at {self._socket.url}"
        try:
            answer = self.ask(Open(PROTOCOL, env_id))
        except Lost as error:
            raise EnvError(f"no session with {self._socket.url}: {error}") from error
        match answer:
            case [bool(takes)]:
                self.takes_data_index = takes
            case _:
                self.close()
                raise EnvError(
                    f"what answers at {self._socket.url} is no gem-core serve: it opens with {answer!r:.200}"
                )

    def ask(self, request: Request) -> Any:
        """What the environment returns.

        Raises:
            Lost: the session is over.
            RemoteError: the environment raised. Errors of the contract, such as `EnvKwargsError`, keep their type.
            EnvError: the request cannot be sent.
        """
        try:
            data = encoded(request)
        except (TypeError, ValueError) as error:
            raise EnvError(f"{self._where}: the call cannot be sent: {error}") from error
        try:
            reply = decoded_reply(self._socket.exchange(data))
        except ValueError as error:
            self.close()
            raise Lost(f"the server of {self._where} sent no valid reply: {error}") from error
        if isinstance(reply, Answer):
            return reply.value
        if reply.over:
            self.close()
            raise Lost(f"{reply.text} (said by the server of {self._where})")
        raise error_of(reply, self._where)

    def close(self) -> None:
        """End the session."""
        self._socket.close()


def _socket(urls: Sequence[str]) -> Socket:
    """A connection to one of the servers that have room, in random order so that they get equal shares."""
    refusals: list[str] = []
    for url in _CHOICE.sample(urls, len(urls)):
        credentials = _credentials(url)
        try:
            return Socket(url, credentials)
        except NotNow as error:
            refusals.append(str(error))
        except EnvError as error:
            if credentials or not os.environ.get(TOKEN):
                raise
            raise EnvError(f"{error}. {TOKEN} is sent to the addresses in {URL} only: name this one there") from error
    raise NotNow("; ".join(refusals))


def _credentials(url: str) -> dict[str, str]:
    """The token, for the addresses that stand beside it in the environment. An argument may come from anybody."""
    token = shared_token()
    known = map(_address, os.environ.get(URL, "").split())
    return {"Authorization": f"Bearer {token}"} if token and _address(url) in known else {}


def _address(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        return parts.scheme, parts.hostname, parts.port or {"ws": 80, "wss": 443}.get(parts.scheme)
    except ValueError:  # a port that is no number: the connection says so
        return url, None, None
