"""The border of the three servers: who gets an answer, and what connections without one can do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from gem_support.waiting import wait_until

pytest.importorskip("uvicorn")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gem_remote import Border, BorderMiddleware, ByteBudget, OverBudget, Token, WebServer
from gem_remote._connections import ANSWER_SECONDS, HEADER_SECONDS, STALL_SECONDS, Connection, Connections
from gem_remote._messages import least_size

OURS = "127.0.0.1:8000"


def _plain(request: Request) -> Response:
    return PlainTextResponse("an answer")


async def _length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@contextlib.contextmanager
def served(border: Border) -> Iterator[int]:
    """The port of a small server behind a border, in a thread."""
    app = Starlette(routes=[Route("/", _plain), Route("/length", _length, methods=["POST"])])
    server = WebServer(BorderMiddleware(app, border))
    with socket.create_server(("127.0.0.1", 0)) as address:
        thread = threading.Thread(target=server.run, args=([address],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        try:
            yield address.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def asked(port: int, *lines: str, body: bytes = b"") -> bytes:
    """All that a server sends until it closes, or a first answer is complete."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
            if b"an answer" in answer or b"\r\n\r\n" in answer.partition(b"\r\n\r\n")[2]:
                break
        return answer


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(Border(hosts=("Search.example",))) as one:
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
    with served(Border(token=Token("sesame", "set it"))) as port:
        for given in ("", "Bearer ", "Bearer sesam", "Bearer sesame\xe9"):
            answer = asked(port, "GET / HTTP/1.1", f"Host: {OURS}", f"Authorization: {given}")
            assert answer.startswith(b"HTTP/1.1 401")
            assert answer.endswith(b"set it")
        assert b" 401" in asked(port, "GET /?token=sesame HTTP/1.1", f"Host: {OURS}")
        knows = "Authorization: Bearer sesame"
        assert b" 200" in asked(port, "GET / HTTP/1.1", "Host: envs.example", knows)
        assert b" 403" in asked(port, "GET / HTTP/1.1", f"Host: {OURS}", knows, "Origin: null")
    with served(Border(token=Token("sesame", "open it", parameter="token"), own_pages=True)) as port:
        request = "GET /?token=sesame HTTP/1.1"
        assert b" 200" in asked(port, request, f"Host: {OURS}", f"Origin: http://{OURS}")
        assert b" 403" in asked(port, request, f"Host: {OURS}", "Origin: null")
        assert b" 403" in asked(port, request, f"Host: {OURS}", "Origin: http://localhost:8000")
        assert b" 400" in asked(port, request, "Host: evil.example", "Origin: http://evil.example")
        assert b" 403" in asked(port, "GET / HTTP/1.1", f"Host: {OURS}", "Authorization: Bearer sesame")


def test_a_body_that_nobody_reads_ends_the_connection(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {OURS}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n".encode())
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
    assert b"connection: close" in answer.lower()


def test_requests_in_one_packet_are_answered_one_after_the_other(port: int) -> None:
    post = f"POST /length HTTP/1.1\r\nHost: {OURS}\r\nContent-Length: 5\r\n\r\nhello"
    evil = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall((post + post + evil + post).encode())
        answer = b""
        while piece := connection.recv(1 << 16):  # until the server closes it
            answer += piece
    assert (answer.count(b" 200 OK"), answer.count(b" 400 "), answer.count(b"\r\n\r\n5")) == (2, 1, 2)


class Wire(asyncio.Transport):
    """A connection without a network."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1)})
        self.unsent = 0
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


def connected(connections: Connections, *addresses: str) -> list[tuple[Connection, Wire]]:
    made = [(Connection(connections), Wire(address)) for address in addresses]
    for connection, wire in made:
        connection.open(wire)
    return made


def run(steps: object) -> None:
    """Within an event loop, whose clock connections read."""

    async def main() -> None:
        steps()  # type: ignore[operator]

    asyncio.run(main())


def test_strangers_make_room_the_oldest_of_the_largest_crowd_first() -> None:
    def steps() -> None:
        connections = Connections(descriptors=32)  # 16 admitted, 4 strangers
        ((quiet, wire),) = connected(connections, "10.0.0.1")
        crowd = connected(connections, *["10.0.0.2"] * 50)
        assert [one.aborted for _, one in crowd] == [True] * 47 + [False] * 3
        assert not wire.aborted
        assert quiet.admit()
        assert not crowd[0][0].admit(), "it is gone"

    run(steps)


def test_admitted_connections_have_a_limit_and_keep_their_place() -> None:
    def steps() -> None:
        connections = Connections(descriptors=32)
        friends = []
        for _ in range(16):
            friends += connected(connections, "10.0.0.1")
            assert friends[-1][0].admit()
        ((late, _),) = connected(connections, "10.0.0.1")
        assert not late.admit()
        connected(connections, *["10.0.0.2"] * 50)
        assert not any(wire.aborted for _, wire in friends)
        friends[0][0].close()
        ((next_one, _),) = connected(connections, "10.0.0.1")
        assert next_one.admit()

    run(steps)


def test_who_is_late_is_cut_off() -> None:
    def steps() -> None:
        connections = Connections(descriptors=800)
        now = asyncio.get_running_loop().time()
        (slow, trickling, reading, stalled, answered) = connected(connections, *["10.0.0.1"] * 5)
        for connection, _ in (reading, stalled, answered):
            connection.begin_request()
            assert connection.admit()
        answered[0].begin_answer()
        trickling[0].receive()
        connections.sweep(now + HEADER_SECONDS / 2)
        assert not slow[1].aborted
        connections.sweep(now + HEADER_SECONDS + 1)
        assert (slow[1].aborted, trickling[1].aborted, reading[1].aborted) == (True, True, False)
        reading[1].unsent = stalled[1].unsent = 1000
        start = now + HEADER_SECONDS + 2
        for second in range(int(STALL_SECONDS) + 2):
            reading[1].unsent -= 1
            connections.sweep(start + second)
        assert (reading[1].aborted, stalled[1].aborted, answered[1].aborted) == (False, True, False)
        connections.sweep(now + ANSWER_SECONDS + 1)
        assert answered[1].aborted

    run(steps)


def test_the_next_header_has_a_limit_too() -> None:
    def steps() -> None:
        connections = Connections(descriptors=800)
        now = asyncio.get_running_loop().time()
        ((connection, wire),) = connected(connections, "10.0.0.1")
        connection.begin_request()
        connection.admit()
        connection.end_request()
        connections.sweep(now + 1000)
        assert not wire.aborted, "uvicorn ends connections without requests"
        connection.receive()
        connections.sweep(now + HEADER_SECONDS + 5)
        assert wire.aborted

    run(steps)


def test_a_client_that_reads_nothing_may_not_ask_for_ever() -> None:
    def steps() -> None:
        ((connection, wire),) = connected(Connections(descriptors=800), "10.0.0.1")
        wire.unsent = 65 << 20
        connection.receive()
        assert wire.aborted

    run(steps)


def test_memory_is_shared_and_given_back() -> None:
    budget = ByteBudget(100)
    one, other = budget.share(), budget.share()
    one.take(60)
    with pytest.raises(OverBudget):
        other.take(41)
    other.take(40)
    one.give_back()
    one.give_back()
    with pytest.raises(OverBudget):
        other.take(61)
    other.take(60)


def test_sizes_are_known_before_encoding() -> None:
    text = "x" * 1000
    assert least_size([text] * 10, 1 << 20) >= 10_000
    assert least_size({"a": (text, {1: text})}, 1 << 20) >= 2000
    assert least_size([[text] * 1000] * 1_000_000, 1 << 20) > 1 << 20  # a terabyte, of which it counts a part
    circle: list[object] = []
    circle.append(circle)
    assert least_size(circle, 1 << 20) < 1000
