"""Servers for the search tool to ask: the real one as a process, and some that misbehave."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gem_core import make
from gem_core.env import Info
from gem_core.tools import Tool, Toolbox, ToolEnv

COMMAND = [sys.executable, "-c", "from gem_core.cli import main; main()", "search-server"]
Answer = Callable[[socket.socket], None]


class Server:
    """`gem-core search-server` in a process of its own, ready to be asked."""

    def __init__(self, *options: str | Path, port: int = 0) -> None:
        command = [*COMMAND, "--port", str(port), *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.output = [*itertools.takewhile(lambda line: not line.startswith("export"), self.process.stdout)]
        assert self.process.poll() is None, "the server ended before it was ready"
        self.url = self.output[-1].split()[-1]
        self.base = self.url.removesuffix("/retrieve")
        self.port = int(self.base.rpartition(":")[2])

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        self.process.send_signal(how)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(timeout=240)


@contextlib.contextmanager
def serving(*options: str | Path, port: int = 0) -> Iterator[Server]:
    """A server for the length of a block."""
    server = Server(*options, port=port)
    try:
        yield server
    finally:
        server.end()


class Liar:
    """A socket that answers each request as told; the last answer is for all that follow."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[bytes] = []
        self._answers = iter(answers)
        self._last = answers[-1]
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/retrieve"

    def __enter__(self) -> Liar:
        self._start(self._accept)
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        for thread in [*self._threads]:
            thread.join(120)
            assert not thread.is_alive()
        self._socket.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                self._start(self._serve, self._socket.accept()[0], next(self._answers, self._last))

    def _serve(self, connection: socket.socket, answer: Answer) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            self.requests.append(_request(connection))
            answer(connection)


def _request(connection: socket.socket) -> bytes:
    """The whole of a request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    while len(body) < length:
        body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    """The next bytes. A client that has left within its request, at its time limit, is a ConnectionError."""
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the client left within its request")
    return data


def says(body: bytes, status: str = "200 OK", kind: str = "application/msgpack", more: str = "") -> Answer:
    """A complete answer."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    )
    return lambda connection: connection.sendall(head.encode() + body)


def says_raw(data: bytes) -> Answer:
    """Bytes, and the connection closed."""
    return lambda connection: connection.sendall(data)


def drips(head: bytes, forever: bytes, pause: float = 0.02) -> Answer:
    """Bytes, then others one at a time until the client leaves."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for byte in itertools.cycle(forever):
            connection.sendall(bytes([byte]))
            time.sleep(pause)

    return answer


def floods(head: bytes, block: bytes) -> Answer:
    """As much as the client takes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(block)

    return answer


def silent(connection: socket.socket) -> None:
    """Says nothing until the client leaves."""
    connection.recv(1)


@contextlib.contextmanager
def asking(tool: Tool | str | Toolbox) -> Iterator[Callable[[str], tuple[str, Info]]]:
    """Queries as an episode asks them; returns the observation and the info of each turn."""
    tools = tool if isinstance(tool, Toolbox) else [tool]
    env = ToolEnv(make("qa:Sample"), tools, max_tool_uses=None)
    env.reset(seed=0)

    def ask(query: str) -> tuple[str, Info]:
        observation, reward, terminated, truncated, info = env.step(f"<search>{query}</search>")
        assert (reward, terminated, truncated) == (0.0, False, False)
        return observation, info

    try:
        yield ask
    finally:
        env.close()
