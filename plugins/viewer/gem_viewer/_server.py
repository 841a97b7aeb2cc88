"""The local server: the page, and what it asks for. It follows runs that are still being written.

It listens on the loopback interface only. Every request needs the token of the address that the command prints, and a
host name of this machine, so that other users' programs and other sites' pages get nothing.
"""

from __future__ import annotations

import contextlib
import hmac
import html
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gem_core.cli import say
from gem_viewer._errors import ViewError
from gem_viewer._library import Library, Seen
from gem_viewer._page import served_page
from gem_viewer._shards import as_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from gem_train.records import Records

_HOSTS = ["127.0.0.1", "localhost"]
_END_SECONDS = 1
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
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as address:
        address.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            address.bind((_HOSTS[0], port))
            address.listen()
        except OSError as error:
            raise ViewError(
                f"port {port} is taken ({error.strerror}); give another --port, or 0 for a free one"
            ) from error
        token = secrets.token_urlsafe(16)
        url = f"http://{_HOSTS[0]}:{address.getsockname()[1]}/?token={token}"
        config = uvicorn.Config(
            application(Library(opened), token),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_END_SECONDS,
        )
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # uvicorn raises it again once it has ended
            say(f"{url}\nCtrl-C ends the server.")
            if browser:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gem-core-view-"))
                _open_browser(redirect(Path(folder), url))
            uvicorn.Server(config).run([address])


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


def application(library: Library, token: str) -> Starlette:
    """The server's application.

    Args:
        library: the runs.
        token: what every request must have as the query parameter `token`.
    """
    routes = [Route("/", _guarded(token, _page))]
    answers: dict[str, Callable[[Request], bytes]] = {
        "news": lambda request: as_json(library.news(_seen(request))),
        "part": lambda request: library.part(*(_number(request, name) for name in ("run", "block", "part"))),
        "table": lambda request: as_json(library.table(_number(request, "run"), _number(request, "start"))),
    }
    routes += [Route(f"/api/{name}", _guarded(token, answer)) for name, answer in answers.items()]
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS), Middleware(GZipMiddleware, compresslevel=1)]
    return Starlette(routes=routes, middleware=middleware)


def _guarded(token: str, answer: Callable[[Request], bytes | Response]) -> Callable[[Request], Any]:
    """An endpoint that answers only those who know the token, in a thread."""

    async def endpoint(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            said = "The token is missing or wrong: open the address that gem-core view printed."
            return PlainTextResponse(said, 403, _HEADERS)
        try:
            found = await run_in_threadpool(answer, request)
        except (ValueError, LookupError, msgspec.DecodeError) as error:
            return PlainTextResponse(f"no such thing: {error}", 404, _HEADERS)
        return found if isinstance(found, Response) else Response(found, 200, _HEADERS, "application/octet-stream")

    return endpoint


def _page(request: Request) -> Response:
    page, policy = served_page()
    return Response(
        page, 200, {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}, "text/html"
    )


def _seen(request: Request) -> list[Seen]:
    return msgspec.json.decode(request.query_params.get("seen", "[]"), type=list[Seen])


def _number(request: Request, name: str) -> int:
    number = int(request.query_params[name])
    if number < 0:
        raise ValueError(f"{name} is {number}")
    return number
