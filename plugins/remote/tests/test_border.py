"""The border of the three servers: who gets an answer, and what connections without one can do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gem_support.waiting import wait_until

pytest.importorskip("uvicorn")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gem_remote import Border, Token, WebServer, _connections
from gem_remote._connections import Connections
from gem_remote._messages import least_size

OURS = "127.0.0.1:8000"
LARGE = bytes(range(256)) * (1 << 16)


def _plain(request: Request) -> Response:
    return PlainTextResponse("an answer")


async def _length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


def _large(request: Request) -> Response:
    return Response(LARGE)


@contextlib.contextmanager
def served(border: Border) -> Iterator[tuple[int, WebServer]]:
    """A small server behind a border, in a thread, and its port."""
    routes = [Route("/", _plain), Route("/length", _length, methods=["POST"]), Route("/large", _large)]
    server = WebServer(Starlette(routes=routes), border)
    with socket.create_server(("127.0.0.1", 0)) as address:
        thread = threading.Thread(target=server.run, args=([address],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        try:
            yield address.getsockname()[1], server
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def asked(port: int, *lines: str) -> bytes:
    """The answer to a request."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))
        return everything(connection)


def everything(connection: socket.socket) -> bytes:
    """All that is sent until the connection ends, in order or not."""
    answer = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            answer += piece
    return bytes(answer)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(Border(hosts=("Search.example",))) as (one, _):
        yield one


@pytest.mark.parametrize(
    "host", [OURS, "localhost", "LOCALHOST.:1", "[::1]:80", "10.1.2.3", "search.example:8000", socket.gethostname()]
)
def test_a_server_answers_to_its_names(port: int, host: str) -> None:
    assert asked(port, "GET / HTTP/1.1", f"Host: {host}").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: evil.example"],
        ["Host: 127.0.0.1.evil.example:8000"],
        ["Host: evil.example:127.0.0.1"],
        ["Host: localhost@evil.example"],
        ["Host: localhost:80 "[:-1] + "x"],
        ["Host: "],
        [f"Host: {OURS}", "Host: evil.example"],
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_pages_whose_name_means_this_machine_get_nothing(port: int, lines: list[str], method: str) -> None:
    answer = asked(port, f"{method} / HTTP/1.1", *lines)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"an answer" not in answer


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"http://{OURS}", ""])
def test_a_server_without_pages_has_no_answer_for_any(port: int, origin: str) -> None:
    answer = asked(port, "GET / HTTP/1.1", f"Host: {OURS}", f"Origin: {origin}")
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"access-control" not in answer.lower()


def test_a_token_is_asked_for_in_its_place_and_any_name_will_do_for_those_who_know_it() -> None:
    with served(Border(token=Token("sesame", "set it"))) as (port, _):
        for given in ("", "Bearer ", "Bearer sesam", "Bearer sesame\xe9"):
            answer = asked(port, "GET / HTTP/1.1", f"Host: {OURS}", f"Authorization: {given}")
            assert answer.startswith(b"HTTP/1.1 401")
            assert answer.endswith(b"set it")
        assert b" 401" in asked(port, "GET /?token=sesame HTTP/1.1", f"Host: {OURS}")
        knows = "Authorization: Bearer sesame"
        assert b" 200" in asked(port, "GET / HTTP/1.1", "Host: envs.example", knows)
        assert b" 403" in asked(port, "GET / HTTP/1.1", f"Host: {OURS}", knows, "Origin: null")
    with served(Border(token=Token("sesame", "open it", parameter="token"), own_pages=True)) as (port, _):
        request = "GET /?token=sesame HTTP/1.1"
        assert b" 200" in asked(port, request, f"Host: {OURS}", f"Origin: http://{OURS}")
        assert b" 403" in asked(port, request, f"Host: {OURS}", "Origin: null")
        assert b" 403" in asked(port, request, f"Host: {OURS}", "Origin: http://localhost:8000")
        assert b" 400" in asked(port, request, "Host: evil.example", "Origin: http://evil.example")
        assert b" 403" in asked(port, "GET / HTTP/1.1", f"Host: {OURS}", "Authorization: Bearer sesame")


def test_requests_in_one_packet_are_answered_one_after_the_other(port: int) -> None:
    post = f"POST /length HTTP/1.1\r\nHost: {OURS}\r\nContent-Length: 5\r\n\r\nhello"
    evil = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    last = post.replace("Content", "Connection: close\r\nContent")
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall((post + post + evil + last).encode())
        answer = everything(connection)
    assert (answer.count(b" 200 OK"), answer.count(b" 400 "), answer.count(b"\r\n\r\n5")) == (3, 1, 3)


@pytest.mark.parametrize(
    "request_lines",
    [
        ["GET / HTTP/1.1", "Half: a header"],
        ["GET / HTTP/1.1", f"Host: {OURS}", "Transfer-Encoding: chunked", "", "1", "x", ""],
        ["GET / HTTP/1.1", f"Host: {OURS}", "", "GET / HTTP/1.1", "Half: a header"],
    ],
    ids=["half a header", "a body that is not read", "half of the next header"],
)
def test_a_request_that_does_not_end_ends_the_connection(
    request_lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_connections, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(_connections, "IDLE_SECONDS", 0.5)
    with served(Border()) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall("\r\n".join(request_lines).encode())
        sent = threading.Event()

        def trickle() -> None:
            with contextlib.suppress(OSError):
                while not sent.wait(0.1):
                    connection.sendall(b"a" if b"Half" in request_lines[-1].encode() else b"1\r\nx\r\n")

        thread = threading.Thread(target=trickle)
        thread.start()
        everything(connection)  # returns once the server has ended it
        sent.set()
        thread.join()


def test_a_large_answer_arrives_whole(port: int) -> None:
    head, _, body = asked(port, "GET /large HTTP/1.1", f"Host: {OURS}").partition(b"\r\n\r\n")
    assert f"content-length: {len(LARGE)}".encode() in head.lower()
    assert body == LARGE


@pytest.mark.parametrize("limit", [{"TAKING_SECONDS": 0.5}, {"_MAX_UNSENT_BYTES": 1000}], ids=str)
def test_who_does_not_take_an_answer_is_cut_off(limit: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in limit.items():
        monkeypatch.setattr(_connections, name, value)
    with served(Border()) as (port, server), socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(f"GET /large HTTP/1.1\r\nHost: {OURS}\r\n\r\n".encode())
        assert connection.recv(1)
        wait_until(lambda: not server.server_state.connections)
        assert len(everything(connection)) < len(LARGE)


class Peer:
    """A connection of an address, without a network."""

    def __init__(self, connections: Connections, address: str) -> None:
        self.transport = self
        self.address = address
        self.is_gone = False
        connections.add(self)  # type: ignore[arg-type]

    def abort(self) -> None:
        self.is_gone = True

    def is_late(self) -> bool:
        return False


def test_strangers_make_room_the_oldest_of_the_largest_crowd_first() -> None:
    connections = Connections(descriptors=16)  # 8 admitted, 4 strangers
    quiet = Peer(connections, "10.0.0.1")
    crowd = [Peer(connections, "10.0.0.2") for _ in range(50)]
    assert [one.is_gone for one in crowd] == [True] * 47 + [False] * 3
    assert not quiet.is_gone
    assert connections.admit(quiet)  # type: ignore[arg-type]


def test_admitted_connections_have_a_limit_and_keep_their_place() -> None:
    connections = Connections(descriptors=32)
    friends: list[Any] = []
    for _ in range(16):
        friends.append(Peer(connections, "10.0.0.1"))
        assert connections.admit(friends[-1])
    late: Any = Peer(connections, "10.0.0.1")
    assert not connections.admit(late)
    assert connections.admit(friends[0]), "it is in already"
    for _ in range(50):
        Peer(connections, "10.0.0.2")
    assert not any(one.is_gone for one in friends)
    friends[0].is_gone = True
    assert connections.admit(late)


def test_sizes_are_known_before_encoding() -> None:
    text = "x" * 1000
    assert least_size([text] * 10, 1 << 20) >= 10_000
    assert least_size({"a": (text, {1: text})}, 1 << 20) >= 2000
    assert least_size([[text] * 1000] * 1_000_000, 1 << 20) > 1 << 20  # a terabyte, of which it counts a part
    circle: list[object] = []
    circle.append(circle)
    assert least_size(circle, 1 << 20) < 1000
