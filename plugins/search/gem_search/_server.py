"""The search server: HTTP in front of an index."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gem_core.errors import ToolError
from gem_remote import Border, WebServer
from gem_search._batcher import Batcher, Busy
from gem_search._budget import ByteBudget, OverBudget
from gem_search._index import Index
from gem_search._messages import JSON, MAX_QUERY_LENGTH, MAX_RESULTS, MSGPACK, Found, Hit, Refusal, Request
from gem_search._retriever import Ranking

PATHS = ("/retrieve", "/", "/search", "/inference")
"""Equivalent paths; gem-llm and Search-R1 use the first."""
_MAX_QUERIES, _MAX_WAITING = 1000, 10_000
_MAX_BYTES = 16 * 2**20
"""Of a request."""
_MAX_ANSWER_BYTES = 64 * 2**20
_MAX_MEMORY = 512 * 2**20
"""Bytes that all requests and answers may have together."""
_COPIES = 3
"""Of an answer while it is made: its passages, the whole, and room for it to grow."""
_END_SECONDS = 5
_FEWER = "Next: ask fewer queries at once, or for fewer passages"
_HOST_HINT = "Next: ask for its IP address, or start it with --allow-host and this name"
_MAX_REQUEST_SECONDS = 30.0
"""Seconds within which a request has to arrive."""
_CODECS: dict[str, tuple[Callable[..., Any], Callable[..., bytes]]] = {
    MSGPACK: (msgspec.msgpack.decode, msgspec.msgpack.encode),
    JSON: (msgspec.json.decode, msgspec.json.encode),
}


class _Refused(Exception):
    """A request that is refused."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class SearchServer:
    """Answers queries, several at a time.

    Args:
        index: what is searched.
        topk: passages for a request that does not give a number.
        batch_size: queries that are searched together.
        hosts: names of the server beside IP addresses, `localhost` and this machine's.
    """

    def __init__(self, index: Index, *, topk: int = 3, batch_size: int = 64, hosts: Sequence[str] = ()) -> None:
        self._index = index
        self._topk = topk
        self._batcher = Batcher(index.retriever, batch_size, _MAX_WAITING)
        self._memory = ByteBudget(_MAX_MEMORY)
        told = {"status": "ready", "passages": len(index.corpus), **index.retriever.settings}
        self._told = {**told, "version": version("gem-core")}
        routes = [Route(path, self, methods=["POST"]) for path in PATHS]
        self._app = Starlette(
            routes=[*routes, Route("/health", self._health)],
            exception_handlers={HTTPException: _no_such_place},
        )
        self._border = Border(tuple(hosts), hint=_HOST_HINT, refuse=_refusal)

    def run(self, address: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until a signal ends it.

        Args:
            address: a bound socket.
            ready: called once the server accepts requests.

        Raises:
            ToolError: another program has taken the port.
        """
        try:
            address.listen(2048)
        except OSError as error:
            raise ToolError(f"the port was taken by another program: {error.strerror}") from error
        ready()
        asyncio.run(WebServer(self._app, self._border).serve([address]))

    @contextlib.contextmanager
    def in_background(self) -> Generator[str]:
        """Serve from a thread of this process for the length of a block; yields the address."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as address:
            address.bind(("127.0.0.1", 0))
            address.listen(2048)
            server = WebServer(self._app, self._border)
            thread = threading.Thread(target=server.run, args=([address],), name="gem-search-server", daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{address.getsockname()[1]}{PATHS[0]}"
            finally:
                server.should_exit = True
                thread.join(_END_SECONDS + 1)
                self._batcher.close()

    async def _health(self, request: HttpRequest) -> Response:
        return Response(msgspec.json.encode(self._told), media_type=JSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of queries, see ASGI."""
        with self._memory.share() as take:
            response = await self._answer(HttpRequest(scope, receive), take)
            await response(scope, receive, send)

    async def _answer(self, http: HttpRequest, take: Callable[[int], None]) -> Response:
        try:
            body = await _body(http, take)
            form = _form_of(http, body)
            request = _decoded(body, form)
            wanted = _form_wanted(http, form)

            def encoded(rankings: Sequence[Ranking]) -> bytes:
                take(_COPIES * _checked(self._index.size(rankings)))
                return _CODECS[wanted][1](_reply(request, self._index.hits(rankings)))

            content = await self._batcher.search(_queries(request), _topk(request, self._topk), encoded)
            return Response(content, media_type=wanted)
        except _Refused as refused:
            return _refusal(str(refused), refused.status)
        except ClientDisconnect:
            return Response(status_code=400)  # the client is gone
        except Busy:
            return _refusal("too many queries wait already; try again later", 503)
        except OverBudget:
            return _refusal("requests and answers take all memory that they may; try again later", 503)
        except Exception:
            traceback.print_exc()
            return _refusal("the search failed; the server's output says why", 500)


async def _no_such_place(http: HttpRequest, error: Any) -> Response:
    return _refusal(f"there is no {http.method} {http.url.path}; POST to {PATHS[0]}", error.status_code)


def _reply(request: Request, hits: list[list[Hit]]) -> Any:
    if request.queries is None:
        (found,) = hits
        return Found(found if request.return_scores else [Hit(hit.document) for hit in found])
    if request.return_scores:
        return {"result": hits}
    return {"result": [[hit.document for hit in found] for found in hits]}


async def _body(http: HttpRequest, take: Callable[[int], None]) -> bytes:
    try:
        return await asyncio.wait_for(_read(http, take), _MAX_REQUEST_SECONDS)
    except asyncio.TimeoutError:
        raise _Refused(408, f"the request was not here after {_MAX_REQUEST_SECONDS:g} seconds") from None


async def _read(http: HttpRequest, take: Callable[[int], None]) -> bytes:
    body = bytearray()
    async for piece in http.stream():
        take(len(piece))
        body += piece
        if len(body) > _MAX_BYTES:
            raise _Refused(413, f"the request has more than {_MAX_BYTES} bytes")
    return bytes(body)


def _form_of(http: HttpRequest, body: bytes) -> str:
    """The format of a request. gem-llm's client sends no content type, and curl sends a wrong one."""
    named = _named(http.headers.get("content-type", ""))
    return named or (JSON if body.lstrip()[:1] == b"{" else MSGPACK)


def _form_wanted(http: HttpRequest, default: str) -> str:
    return _named(http.headers.get("accept", "")) or default


def _named(header: str) -> str | None:
    return MSGPACK if "msgpack" in header else JSON if "json" in header else None


def _decoded(body: bytes, form: str) -> Request:
    try:
        return _CODECS[form][0](body, type=Request)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _Refused(400, f"the request is no {form} of a query: {error}") from error


def _queries(request: Request) -> list[str]:
    if (request.query is None) == (request.queries is None):
        raise _Refused(400, "a request has either 'query', a text, or 'queries', a list of texts")
    queries = [request.query] if request.query is not None else request.queries or []
    if not 1 <= len(queries) <= _MAX_QUERIES:
        raise _Refused(400, f"'queries' must have from 1 to {_MAX_QUERIES} texts, not {len(queries)}")
    for query in queries:
        if not query.strip():
            raise _Refused(400, "a query is empty")
        if len(query) > MAX_QUERY_LENGTH:
            raise _Refused(400, f"a query has {len(query)} characters, and may have {MAX_QUERY_LENGTH}")
    return queries


def _topk(request: Request, default: int) -> int:
    topk = request.topk or default  # gem-llm's client may send 0 to mean the default
    if not 1 <= topk <= MAX_RESULTS:
        raise _Refused(400, f"'topk' must be from 1 to {MAX_RESULTS}, not {topk}")
    return topk


def _checked(size: int) -> int:
    """The size of an answer, if it is not too large."""
    if size > _MAX_ANSWER_BYTES:
        raise _Refused(413, f"the answer has up to {size:,} bytes, and may have {_MAX_ANSWER_BYTES:,}. {_FEWER}")
    return size


def _refusal(reason: str, status: int) -> Response:
    return Response(msgspec.json.encode(Refusal(reason)), status, media_type=JSON)
