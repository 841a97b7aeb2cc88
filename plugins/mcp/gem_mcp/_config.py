"""The servers and how to reach them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from gem_core.errors import ToolError


class StdioServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server process, with messages over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Environment variables, in addition to the few that every server gets."""
    cwd: str | None = None
    transport: Literal["stdio"] = "stdio"

    def __repr__(self) -> str:
        return f"StdioServer({self.command!r})"  # arguments and variables may be secret


class HttpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server with an address: streamable HTTP, or the older HTTP with server-sent events."""

    url: str
    headers: dict[str, str] = {}
    transport: Literal["http", "streamable-http", "sse"] = "http"

    def __repr__(self) -> str:
        return f"HttpServer({_host(self.url)!r})"


ServerConfig: TypeAlias = StdioServer | HttpServer


def read_servers(servers: Mapping[str, Any] | str | Path) -> dict[str, ServerConfig]:
    """Servers by name.

    Args:
        servers: a configuration per name, with or without `mcpServers` around them; the path of a JSON file with the
            same; or the URL of one server.

    Raises:
        ToolError: none of these, or an invalid configuration of a server.
    """
    if isinstance(servers, str) and servers.startswith(("http://", "https://")):
        servers = {_host(servers) or "": {"url": servers}}
    described: Any = _loaded(servers) if isinstance(servers, str | Path) else servers
    if isinstance(described, Mapping):
        described = cast("Mapping[str, Any]", described).get("mcpServers", described)
    if not isinstance(described, Mapping) or not described:
        raise ToolError(f'servers is a mapping such as {{"time": {{"command": "..."}}}}, not {described!r}')
    return {str(name): _server(str(name), one) for name, one in cast("Mapping[str, Any]", described).items()}


def _loaded(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ToolError(f"no URL, and not the path of a JSON file with MCP servers: {path}: {error}") from error


def _server(name: str, described: Any) -> ServerConfig:
    fields: dict[str, Any] = dict(cast("Mapping[str, Any]", described)) if isinstance(described, Mapping) else {}
    if len({"command", "url"} & {*fields}) != 1:
        raise ToolError(f"MCP server {name!r} needs either a command (stdio) or a url (HTTP)")
    if "type" in fields:  # the name that some clients use
        fields.setdefault("transport", fields.pop("type"))
    try:
        server = msgspec.convert(fields, StdioServer if "command" in fields else HttpServer)
    except msgspec.ValidationError as error:
        raise ToolError(f"MCP server {name!r}: {error}") from error
    _check(name, server)
    return server


def _check(name: str, server: ServerConfig) -> None:
    if isinstance(server, HttpServer):
        if not server.url.startswith(("http://", "https://")) or not _host(server.url):
            raise ToolError(f"MCP server {name!r}: {server.url!r} is no http:// or https:// address")
    elif not server.command:
        raise ToolError(f"MCP server {name!r}: the command is empty")
    elif any("\0" in text for text in (server.command, *server.args, *server.env, *server.env.values())):
        raise ToolError(f"MCP server {name!r}: a NUL character in its command, arguments or variables")


def _host(url: str) -> str | None:
    """The host of an address; `None` if the address is invalid."""
    try:
        address = urlsplit(url)
        return address.hostname if address.port != 0 else None  # a bad port raises too
    except ValueError:
        return None
