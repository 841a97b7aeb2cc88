"""The three servers against clients that mean harm, each as the command that users start."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem_support.waiting import wait_until

pytest.importorskip("uvicorn")

COMMAND = ["sh", "-c", 'ulimit -n 256; exec "$0" "$@"', sys.executable, "-c", "from gem_core.cli import main; main()"]
"""`gem-core`, with so few open files that 300 connections are too many."""
NAMES = ["serve", "search-server", "view"]
CROWD = 300


class Server:
    """A command that serves, and a request that it answers."""

    def __init__(self, name: str, folder: Path) -> None:
        (folder / "episodes.jsonl").write_text("")
        (folder / "corpus.jsonl").write_text(json.dumps({"contents": "Zebra\nIt has stripes."}))
        arguments = {
            "serve": ["game:GuessTheNumber-v0-easy"],
            "search-server": ["--corpus", str(folder / "corpus.jsonl")],
            "view": [str(folder / "episodes.jsonl")],
        }[name]
        command = [*COMMAND, name, *arguments, "--port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": "true"}
        )
        assert self.process.stdout is not None
        addresses = (re.search(r"//127.0.0.1:(\d+)(\S*)", line) for line in self.process.stdout)
        address = next(filter(None, addresses), None)
        assert address is not None, "the server ended before it was ready"
        self.port = int(address[1])
        self.path = address[2] if name == "view" else "/health"

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def status(self, host: str = "localhost", more: str = "") -> int:
        """The status of an answer."""
        request = f"GET {self.path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        with self.connect() as connection:
            connection.sendall(request.encode())
            return int(connection.recv(1 << 16).split()[1])

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """All three."""
    started: dict[str, Server] = {}
    try:
        for name in NAMES:
            started[name] = Server(name, tmp_path_factory.mktemp(name))
        yield started
    finally:
        for one in started.values():
            one.end()


@pytest.fixture(params=NAMES)
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    """One of them."""
    return servers[request.param]


def test_pages_of_other_sites_get_no_answer(server: Server) -> None:
    assert server.status() == 200
    assert server.status("evil.example") == 400
    assert server.status("localhost.evil.example") == 400
    assert server.status(more="Origin: http://evil.example\r\n") == 403
    assert server.status(more="Origin: null\r\n") == 403
    assert server.status() == 200


def test_honest_clients_that_come_at_once_are_answered(server: Server) -> None:
    request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(40)]
        quick = []
        for _ in range(60):
            quick.append(stack.enter_context(server.connect()))
            quick[-1].sendall(request)
        for connection in slow:
            connection.sendall(request)
        assert {connection.recv(1 << 16).split()[1] for connection in [*slow, *quick]} == {b"200"}


def half_sent(server: Server) -> socket.socket:
    """A connection that has sent a part of a header."""
    connection = server.connect()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
    connection.setblocking(False)
    return connection


def has_ended(connection: socket.socket) -> bool:
    """Whether the server has ended a connection on which it sends nothing."""
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_half_sent_headers_keep_nobody_out_and_are_cut_off(servers: dict[str, Server]) -> None:
    with contextlib.ExitStack() as stack:
        crowd: list[socket.socket] = []
        for server in servers.values():
            crowd += [stack.enter_context(half_sent(server)) for _ in range(CROWD)]
            assert server.status() == 200
        wait_until(lambda: all(map(has_ended, crowd)))


def test_sigterm_ends_it_though_clients_hang_on(server: Server) -> None:
    """The last test: the server is gone."""
    with server.connect() as idle, server.connect() as half, half_sent(server):
        idle.sendall(f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert idle.recv(1)
        half.sendall(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=120) == 0
        assert time.monotonic() - began < 5
