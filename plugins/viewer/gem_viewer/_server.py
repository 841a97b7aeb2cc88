"""The local server: the page, and what it asks for. It follows runs that are still being written.

It listens on the loopback interface only. Every request needs the token of the address that the command prints, and the
name or an address of this machine, so that other users' programs and other sites' pages get nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import html
import secrets
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gem_core.cli import say
from gem_remote import Border, Token, WebServer, bound_socket, end_on_sigterm
from gem_viewer._errors import ViewError
from gem_viewer._library import Library, Seen
from gem_viewer._page import served_page
from gem_viewer._shards import as_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from gem_train.records import Records

_HOST = "127.0.0.1"
_HINT = "The token is missing or wrong: open the address that gem-core view printed."
_MIN_GZIP_BYTES = 1000
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def serve(opened: Sequence[Records], port: int, *, browser: bool) -> None:
    """Serve the runs until Ctrl-C.

    Args:
        opened: the runs.
        port: 0 takes a free one.
        browser: open the page in the browser of this machine.

    Raises:
        ViewError: the port is taken.
    """
    end_on_sigterm()
    with bound_socket(_HOST, port, ViewError, listen=True) as address:
        token = secrets.token_urlsafe(16)
        url = f"http://{_HOST}:{address.getsockname()[1]}/?token={token}"
        server = WebServer(application(Library(opened)), border(token))
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # uvicorn raises it again once it has ended
            say(f"{url}\nCtrl-C ends the server.")
            if browser:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gem-core-view-"))
                _open_browser(redirect(Path(folder), url))
            asyncio.run(server.serve([address]))


def redirect(folder: Path, url: str) -> Path:
    """A file that sends a browser to this address. Only this user can read it, unlike the arguments of a process.

    Args:
        folder: where to write it.
        url: the address, with its token.
    """
    file = folder / "open.html"
    file.touch(0o600)
    escaped = html.escape(url)
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>gem-core view</title>'
        f'<meta http-equiv="refresh" content="0; url={escaped}"><a href="{escaped}">Open the viewer</a>\n'
    )
    return file


def _open_browser(file: Path) -> None:
    # A browser of the terminal keeps its caller until it ends. The socket listens already: its request waits.
    threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()


def border(token: str) -> Border:
    """Who gets an answer: the page, opened with a token.

    Args:
        token: what every request must have as the query parameter `token`.
    """
    return Border(token=Token(token, _HINT, parameter="token"), own_pages=True, refuse=_refusal)


def application(library: Library) -> Starlette:
    """The server's application, for behind the border.

    Args:
        library: the runs.
    """
    answers: dict[str, Callable[[Request], Response]] = {
        "/": _page,
        "/api/news": lambda request: _table(request, library.news(_seen(request))),
        "/api/part": lambda request: _response(
            library.part(*(_number(request, name) for name in ("run", "block", "part")))
        ),
        "/api/table": lambda request: _table(
            request, library.table(_number(request, "run"), _number(request, "start"))
        ),
    }
    return Starlette(routes=[Route(path, _in_thread(answer)) for path, answer in answers.items()])


def _in_thread(answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """An endpoint whose answer is read, encoded and compressed in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except (ValueError, LookupError, msgspec.DecodeError) as error:
            return _refusal(f"no such thing: {error}", 404)

    return endpoint


def _response(content: bytes) -> Response:
    return Response(content, 200, _HEADERS, "application/octet-stream")


def _table(request: Request, value: Any) -> Response:
    return _compressed(request, _response(as_json(value)))


def _compressed(request: Request, response: Response) -> Response:
    """The response, smaller if the browser can read that."""
    if "gzip" in request.headers.get("accept-encoding", "") and len(response.body) > _MIN_GZIP_BYTES:
        headers = {**response.headers, "Content-Encoding": "gzip"}
        del headers["content-length"]
        return Response(gzip.compress(response.body, 1), response.status_code, headers)
    return response


def _refusal(reason: str, status: int) -> Response:
    return PlainTextResponse(reason, status, _HEADERS)


def _page(request: Request) -> Response:
    page, policy = served_page()
    headers = {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return _compressed(request, Response(page, 200, headers, "text/html"))


def _seen(request: Request) -> list[Seen]:
    return msgspec.json.decode(request.query_params.get("seen", "[]"), type=list[Seen])


def _number(request: Request, name: str) -> int:
    number = int(request.query_params[name])
    if number < 0:
        raise ValueError(f"{name} is {number}")
    return number
