"""The local server: the page, and what it asks for. It follows runs that are still being written.

It listens on the loopback interface only. Every request needs the token of the address that the command prints, and a
host name of this machine, so that other users' programs and other sites' pages get nothing.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gem_core.cli.terminal import say
from gem_core.errors import RecordsError
from gem_viewer.errors import ViewError
from gem_viewer.library import Library, Seen
from gem_viewer.page import served_page
from gem_viewer.shards import as_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from gem_core.records import Records

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
        say(f"{url}\nCtrl-C ends the server.")
        if browser:
            webbrowser.open(url)
        config = uvicorn.Config(
            application(Library(opened), token),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_END_SECONDS,
        )
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again once it has ended
            uvicorn.Server(config).run([address])


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
        except RecordsError as error:
            return PlainTextResponse(str(error), 500, _HEADERS)
        except (ValueError, TypeError, LookupError) as error:
            return PlainTextResponse(f"no such thing: {error}", 404, _HEADERS)
        return found if isinstance(found, Response) else Response(found, 200, _HEADERS, "application/octet-stream")

    return endpoint


def _page(request: Request) -> Response:
    page, policy = served_page()
    return Response(
        page, 200, {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}, "text/html"
    )


def _seen(request: Request) -> list[Seen]:
    return [Seen(*map(int, one)) for one in json.loads(request.query_params.get("seen", "[]"))]


def _number(request: Request, name: str) -> int:
    number = int(request.query_params[name])
    if number < 0:
        raise ValueError(f"{name} is {number}")
    return number
