"""The search tool: queries a server and trusts nothing in its answers."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, ClassVar

import httpx2
import msgspec
import tenacity

from gem_core.errors import ToolError
from gem_core.tools import CallContext, Function, Tool, ToolResult
from gem_search._messages import MAX_QUERY_LENGTH, MAX_RESULTS, MSGPACK

_MAX_BYTES = 4 * 2**20
_MAX_KEPT_LENGTH = 1 << 16
"""Characters of a result that is kept for the next time. A server that answers with megabytes would fill the memory."""
_MAX_PAUSE, _MAX_CALL_SECONDS = 1.0, 3600.0
"""Seconds."""
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_ADDRESS = (
    "the search tool does not know its server. Next: start one with `gem-core search-server`, and set the environment "
    "variable SEARCH_URL as it says, or give the tool its url"
)
_SEARCH = Function(
    "search",
    "Finds passages on a question or a few words.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    tag="search",
    examples=({"query": "capital of Australia"},),
    reply="\n\n<information>{}</information>\n\n",
)


class SearchTool(Tool):
    """Finds passages through a search server: `gem-core search-server`, or gem-llm's.

    Args:
        url: where to send queries; `None` takes the environment variable `SEARCH_URL` when the tool is opened.
        topk: passages of one result.
        timeout: seconds for one call with all its attempts.
        retries: further attempts where the server cannot be reached, is busy (429) or fails (5xx).
        cache: number of queries whose results are kept while the tool is open, the most recent ones; 0 keeps none.
            Failures are not kept.

    Raises:
        ToolError: an invalid argument; and on opening, a missing or invalid address.
    """

    instead_of: ClassVar[Mapping[str, str]] = {
        "search_url": "Use url=...",
        "num_workers": "Leave it out, or use max_concurrent=... of a Toolbox",
    }

    def __init__(
        self, url: str | None = None, *, topk: int = 3, timeout: float = 5.0, retries: int = 2, cache: int = 1024
    ) -> None:
        if url is not None:
            _checked(url)
        self._url = url
        self.topk = _whole("topk", topk, 1, MAX_RESULTS)
        self.timeout = _seconds(timeout)
        self.retries = _whole("retries", retries, 0, 100)
        self.cache = _whole("cache", cache, 0, 10_000_000)
        self._open: tuple[str, httpx2.AsyncClient, _Memory] | None = None

    async def functions(self) -> Sequence[Function]:
        """`search`. Raises `ToolError` without a server address, before a policy wastes episodes on it."""
        address = self._address()
        client = httpx2.AsyncClient(
            timeout=None,  # httpx limits single reads; the limit here is for the whole call
            limits=httpx2.Limits(max_keepalive_connections=64),
            headers={"Content-Type": MSGPACK, "Accept": MSGPACK, "Accept-Encoding": "identity"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # a server could send new ones for ever
        )
        self._open = address, client, _Memory(self.cache)
        return [_SEARCH]

    async def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        """Search. A failure of the server is a result too."""
        query = _clean(arguments["query"])
        if not query:
            return _failure("the query is empty. Write what to search for.")
        if len(query) > MAX_QUERY_LENGTH:
            return _failure(f"the query has more than {MAX_QUERY_LENGTH} characters. Search for a few words.")
        assert self._open is not None, "call() before functions()"
        address, client, memory = self._open
        text = memory.recall(query)
        if text is None:
            try:
                text = await self._ask(client, address, query)
            except _Trouble as trouble:
                return _failure(str(trouble), search_error=f"{address}: {trouble.detail}")
            memory.keep(query, text)
        return ToolResult(text)

    async def close(self) -> None:
        """Close the connections."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened[1].aclose()

    def _address(self) -> str:
        address = self._url or os.environ.get("SEARCH_URL")
        if not address:
            raise ToolError(_NO_ADDRESS)
        return address if self._url else _checked(address)

    async def _ask(self, client: httpx2.AsyncClient, address: str, query: str) -> str:
        attempts = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.retries + 1),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=_MAX_PAUSE),
            retry=tenacity.retry_if_exception_type(_PassingTrouble),
            reraise=True,
        )
        return await attempts(self._attempt, client, address, query)

    async def _attempt(self, client: httpx2.AsyncClient, address: str, query: str) -> str:
        # Exactly the fields of gem-llm's client, in its order.
        body = msgspec.msgpack.encode({"query": query, "topk": self.topk, "return_scores": True})
        try:
            async with client.stream("POST", address, content=body) as response:
                _check_status(response)
                content = await _content(response)
        except httpx2.TransportError as error:
            raise _PassingTrouble("the search server cannot be reached.", repr(error)) from error
        return _shown(_found(content, response).result[: self.topk])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_open": None}


class _Document(msgspec.Struct):
    contents: str


class _Hit(msgspec.Struct):
    document: _Document


class _Found(msgspec.Struct):
    """What the tool needs of `gem_search._messages.Found`. Fields that may hold anything, as ids do, are never read."""

    result: list[_Hit]


class _Trouble(Exception):
    """No result: the text for the model, and the details for an operator."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class _PassingTrouble(_Trouble):
    """A failure after which another attempt may succeed."""


class _Memory:
    """The results of recent queries. Calls of one toolbox run on one event loop, so it needs no lock."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._texts: OrderedDict[str, str] = OrderedDict()

    def recall(self, query: str) -> str | None:
        if query in self._texts:
            self._texts.move_to_end(query)
        return self._texts.get(query)

    def keep(self, query: str, text: str) -> None:
        if len(text) <= _MAX_KEPT_LENGTH:
            self._texts[query] = text
        while len(self._texts) > self._size:
            self._texts.popitem(last=False)


def _check_status(response: httpx2.Response) -> None:
    status = response.status_code
    if status == 429 or status >= 500:
        raise _PassingTrouble("the search server is in trouble. Try again later.", f"HTTP {status}")
    if status != 200:
        raise _Trouble("the search server refused the query.", f"HTTP {status}")


async def _content(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > _MAX_BYTES:
            raise _Trouble("the search server's answer is too long.", f"more than {_MAX_BYTES} bytes")
    return bytes(content)


def _found(content: bytes, response: httpx2.Response) -> _Found:
    try:
        return msgspec.msgpack.decode(content, type=_Found)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        detail = f"{response.headers.get('Content-Type', 'no content type')}: {error}"
        raise _Trouble("the search server's answer cannot be read.", detail) from error


def _shown(hits: Sequence[_Hit]) -> str:
    return "".join(_line(number, hit) for number, hit in enumerate(hits, 1)) or "Nothing was found.\n"


def _line(number: int, hit: _Hit) -> str:
    title, _, text = _clean(hit.document.contents).partition("\n")
    return f"Doc {number}(Title: {title}) {text}\n"


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("", text).strip()


def _failure(message: str, **info: Any) -> ToolResult:
    return ToolResult(f"Error: {message}", error=True, info=info)


def _checked(url: Any) -> str:
    try:
        parts = httpx2.URL(url)
    except (TypeError, httpx2.InvalidURL) as error:
        raise ToolError(f"{url!r} is no address of a search server: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ToolError(f"{url!r} is no address of a search server. One looks like http://127.0.0.1:8000/retrieve")
    return url


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ToolError(f"{name} must be a whole number from {least} to {most}, not {value!r:.80}")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _MAX_CALL_SECONDS:
        raise ToolError(f"timeout must be above 0 and {_MAX_CALL_SECONDS:g} seconds at most, not {value!r:.80}")
    return float(value)
