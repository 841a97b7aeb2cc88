"""The tools of MCP servers as tools of an environment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from mcp import types

from gem_core.errors import ToolError, near_matches
from gem_core.tools import CallContext, Function, Tool, ToolResult
from gem_mcp._config import read_servers
from gem_mcp._results import as_result
from gem_mcp._session import Server

_REPLY = "\n<tool_response>\n{}\n</tool_response>\n"


class MCPTool(Tool):
    """The tools of one or more MCP servers.

    A server is started, or connected to, when tools are first listed. It has one session for all environments of a
    toolbox, and calls run side by side. A lost server is started again for the next call. The tools of one server keep
    their names; with several servers they are called `server_tool`. Characters that a function's name may not have
    become `_`.

    Args:
        servers: servers by name, each `{"command": ..., "args": [...], "env": {...}, "cwd": ...}` or `{"url": ...,
            "headers": {...}, "transport": "http" | "sse"}`, with or without `{"mcpServers": ...}` around them; or the
            path of a JSON file with that; or the URL of one server.
        timeout: seconds that one call may take.
        start_timeout: seconds within which a server must list its tools.
        allow: names of the tools to show to the policy, as changed above; `None` shows all.

    Raises:
        ToolError: an invalid description of servers, or an invalid time limit.
    """

    instead_of: ClassVar[Mapping[str, str]] = {
        "config": "Use servers=...",
        "execution_timeout": "Use timeout=...",
        "validate_on_init": "Leave it out: the first reset connects",
        "headers": "Use servers={name: {'url': ..., 'headers': ...}}",
        "auth": "Use servers={name: {'url': ..., 'headers': {'Authorization': ...}}}",
        "num_workers": "Leave it out, or use max_concurrent=... of a Toolbox",
    }

    def __init__(
        self,
        servers: Mapping[str, Any] | str | Path,
        *,
        timeout: float = 30.0,
        start_timeout: float = 30.0,
        allow: Sequence[str] | None = None,
    ) -> None:
        for name, seconds in (("timeout", timeout), ("start_timeout", start_timeout)):
            if not seconds > 0:
                raise ToolError(f"{name} must be a number of seconds above 0, not {seconds!r}")
        if isinstance(allow, str):
            raise ToolError(f"allow is a list of names, not {allow!r}")
        self.timeout = timeout
        self._start_timeout = start_timeout
        self._configs = read_servers(servers)
        self._allow = None if allow is None else [*allow]
        self._servers: list[Server] = []
        self._homes: dict[str, tuple[Server, str]] = {}

    async def functions(self) -> Sequence[Function]:
        """Start the servers, all at once, and list their tools.

        Raises:
            ToolError: a server did not start, two tools have one name, or a name in `allow` does not exist.
        """
        limits = (self.timeout, self._start_timeout)
        servers = {name: Server(name, config, *limits) for name, config in self._configs.items()}
        self._servers = [*servers.values()]
        listed = await asyncio.gather(*(server.tools() for server in self._servers))
        self._homes = {}
        functions: dict[str, Function] = {}
        for (prefix, server), tools in zip(servers.items(), listed, strict=True):
            for tool in tools:
                function = _function(tool, prefix if len(servers) > 1 else None)
                if function.name in functions:
                    raise ToolError(f"two tools are called {function.name!r} here; give their servers other names")
                functions[function.name] = function
                self._homes[function.name] = (server, tool.name)
        return [*self._allowed(functions)]

    async def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        """Call a tool of a server."""
        server, tool = self._homes[function]
        return as_result(await server.call(tool, arguments))

    async def close(self) -> None:
        """End the sessions and the processes that were started for them."""
        servers, self._servers = self._servers, []
        await asyncio.gather(*(server.close() for server in servers))

    def _allowed(self, functions: Mapping[str, Function]) -> Iterator[Function]:
        for name in functions if self._allow is None else self._allow:
            if name not in functions:
                raise ToolError(f"no MCP server offers {name!r}.{near_matches(name, functions)}")
            yield functions[name]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_servers": [], "_homes": {}}

    def __repr__(self) -> str:
        return f"<MCPTool {', '.join(self._configs)}>"


def _function(tool: types.Tool, prefix: str | None) -> Function:
    name = tool.name if prefix is None else f"{prefix}_{tool.name}"
    name = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    return Function(name, tool.description or tool.title or "", _parameters(tool.input_schema), reply=_REPLY)


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A server's schema as that of an object, even if the server left the type out."""
    return {**schema, "type": "object", "properties": schema.get("properties") or {}}
