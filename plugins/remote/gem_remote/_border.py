"""The border of a server: which requests get as far as its application."""

from __future__ import annotations

import functools
import hmac
import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_HERE = "localhost"


@dataclass(frozen=True)
class Token:
    """The secret that clients must send."""

    secret: str
    hint: str
    """The message for a client without it."""
    parameter: str = ""
    """The query parameter that has it; empty: the header `Authorization: Bearer`."""

    def is_in(self, request: HTTPConnection) -> bool:
        """Whether a request has it."""
        if self.parameter:
            given = request.query_params.get(self.parameter, "")
        else:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self.secret.encode())


@dataclass(frozen=True)
class Border:
    """The rules, which are the same for every path and method."""

    hosts: tuple[str, ...] = ()
    """Names by which clients may call the server, beside IP addresses, `localhost` and the name of this machine. A web
    page whose own name suddenly means this machine (DNS rebinding) calls it by that name. Programs that know a token
    may use any name."""
    token: Token | None = None
    """`None`: whoever reaches the server may ask."""
    own_pages: bool = False
    """Whether the server has pages, which may ask it. Pages of others may not in either case."""
    hint: str = "Next: ask for its IP address"
    """The message for a client that calls the server by another name."""
    refuse: Callable[[str, int], Response] = PlainTextResponse
    """The response that says why, with a status."""

    def refusal(self, request: HTTPConnection) -> Response | None:
        """The response to a request that is not let in; `None` for one that is."""
        hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
        any_host = self.token is not None and not self.own_pages
        if not (any_host or (len(hosts) == 1 and self._is_ours(hosts[0]))):
            return self.refuse(f"this server is not called {', '.join(hosts)[:80]!r}. {self.hint}", 400)
        if origins and not (self.own_pages and origins == [f"http://{hosts[0]}"]):
            return self.refuse("this server is not for browsers: it has no answer for pages of other sites", 403)
        if self.token is not None and not self.token.is_in(request):
            return self.refuse(self.token.hint, 403 if self.token.parameter else 401)
        return None

    def _is_ours(self, host: str) -> bool:
        name = _name_of(host)
        return name == _HERE or name in [one.lower() for one in self.hosts]


@functools.lru_cache(100)
def _name_of(host: str) -> str | None:
    """The name in a `Host` header: `localhost` for IP addresses and the names of this machine, `None` if it is none."""
    found = _HOST.fullmatch(host)
    if found is None:
        return None
    name, own = found[1].lower(), socket.gethostname().lower()
    return _HERE if name in (own, own.partition(".")[0]) or _is_ip_address(name.strip("[]")) else name


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
