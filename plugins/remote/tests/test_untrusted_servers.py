"""Servers that a client cannot trust: what they may learn from it, and replies of other shapes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gem_core import Env, make
from gem_core.errors import EnvError
from gem_core.vector import values

pytest.importorskip("websockets")


class Listener:
    """Keeps what connections send first, and answers each of them with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.heard: list[str] = []
        self.answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    self.heard.append(connection.recv(65536).decode())
                    connection.sendall(self.answer)

    def close(self) -> None:
        """Listen no longer."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@contextlib.contextmanager
def listening(answer: str) -> Iterator[Listener]:
    """A listener for the length of a block."""
    listener = Listener(answer.encode())
    try:
        yield listener
    finally:
        listener.close()


REFUSAL = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"


@pytest.mark.parametrize(
    ("known", "sent"),
    [
        ("", False),
        ("ws://127.0.0.1:9", False),
        ("ws://{address}", True),
        ("ws://127.0.0.1:9 ws://{address}/", True),
        ("wss://{address}", False),
        ("ws://{address}.example", False),
        ("ws://{address}@127.0.0.1:9", False),
        ("ws://127.0.0.1:none", False),
    ],
)
def test_a_token_goes_to_the_addresses_beside_it(monkeypatch: pytest.MonkeyPatch, known: str, sent: bool) -> None:
    with listening(REFUSAL) as listener:
        monkeypatch.setenv("GEM_SERVE_TOKEN", "sesame")
        monkeypatch.setenv("GEM_REMOTE_URL", known.format(address=listener.address))
        env = make("remote:a:B", url=f"ws://{listener.address}", patience=0.0)
        with pytest.raises(EnvError, match="refused: no") as refusal:
            env.reset(seed=1)
        [heard] = listener.heard
        assert ("Bearer sesame" in heard) == sent
        assert ("name this one there" in str(refusal.value)) == (not sent)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    with listening(REFUSAL) as other:
        redirect = f"HTTP/1.1 {status} Elsewhere\r\nLocation: ws://{other.address}/\r\nContent-Length: 0\r\n\r\n"
        with listening(redirect) as listener:
            monkeypatch.setenv("GEM_SERVE_TOKEN", "sesame")
            monkeypatch.setenv("GEM_REMOTE_URL", f"ws://{listener.address}")
            with pytest.raises(EnvError):
                make("remote:a:B", patience=0.0).reset(seed=1)
            assert len(listener.heard) == 1
        assert not other.heard


@contextlib.contextmanager
def answering(replies: Callable[[str], Any]) -> Iterator[Env]:
    """An environment whose server answers with these values, by the name of the request."""
    from websockets.sync.server import ServerConnection, serve

    def answer(connection: ServerConnection) -> None:
        for message in connection:
            assert isinstance(message, bytes)
            connection.send(values.encoded(["answer", replies(values.decoded(message)[0])]))

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with make("remote:a:B", url=f"ws://127.0.0.1:{server.socket.getsockname()[1]}", patience=0.0) as env:
                yield env
        finally:
            server.shutdown()
            thread.join()


ODD: list[Any] = [None, True, 2**70, 0.5, "on", b"on", [], (), {}, [None], [1], [True, True], {"a": 1}]


@pytest.mark.parametrize("opening", ODD, ids=repr)
def test_an_opening_of_another_shape_is_named(opening: Any) -> None:
    with answering(lambda request: opening) as env, pytest.raises(EnvError, match="is no gem-core serve"):
        env.reset(seed=1)


def test_an_array_is_no_opening() -> None:
    numpy = pytest.importorskip("numpy")
    for opening in (numpy.array([True, False]), [numpy.array([True, False])], numpy.array([True])):
        with answering(lambda request, said=opening: said) as env, pytest.raises(EnvError, match="is no gem-core"):
            env.reset(seed=1)


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_value_of_another_type_is_named(value: Any) -> None:
    def refuses(ask: Callable[[], Any], *types: type) -> None:
        if type(value) in types:
            assert ask() == value
        else:
            with pytest.raises(EnvError, match="the server's answer to"):
                ask()

    with answering(lambda request: [False] if request == "open" else value) as env:
        assert env.reset(seed=1) == value  # whoever plays judges it, as it does an environment's of its own
        refuses(lambda: env.data_size, int, type(None))
        refuses(env.sample_random_action, str)
        refuses(env.render, str, type(None))
