"""A place for an episode: a name of a database, a role, and an MCP server that lasts."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.errors import EnvError, ToolError
from gem_core.tool import Function, ToolResult
from gem_core.tools import ParsedCall, Toolbox
from gem_mcp import MCPTool
from gem_postgres._programs import mcp_server

_PROBE = ParsedCall("list_schemas", 0)
"""A call that every version of the server has and that needs the database."""

_START_SECONDS = 120.0
"""Seconds that a server may take to start on a busy machine."""


class Slot:
    """The MCP server connects by name, so each episode's database gets the slot's name.

    Args:
        number: of the slot.
        socket: the folder of PostgreSQL's socket.
        timeout: seconds of a call, and of a statement.
    """

    def __init__(self, number: int, socket: str, timeout: float) -> None:
        self.name = f"slot_{number}"
        """Of the database and of the role."""
        variables = {
            "DATABASE_URL": f"postgresql://{self.name}@localhost/{self.name}?host={socket}",
            "PG_ALLOW_WRITE": "true",
            "PG_STATEMENT_TIMEOUT": str(int(timeout * 1000)),
        }
        # The statement ends before the call does, so that the policy is told what took too long.
        servers = {"postgres": {"command": mcp_server(), "env": variables}}
        tool = MCPTool(servers, timeout=timeout + 10.0, start_timeout=max(_START_SECONDS, timeout))
        self._toolbox = Toolbox([tool])

    def open(self) -> Sequence[Function]:
        """Start the server, if it does not run; returns what it offers.

        Raises:
            EnvError: it does not start.
        """
        try:
            return self._toolbox.attach(self.name)
        except ToolError as error:
            raise EnvError(f"the MCP server of a database does not start: {error}") from error

    def call(self, call: ParsedCall) -> ToolResult:
        """Carry out a call of an episode. A server that was lost is started again for the next one."""
        self.open()
        return self._toolbox.call(call, self.name)

    def probe(self) -> None:
        """Let the server notice that its connection is gone, so that the next episode's first call does not."""
        self._toolbox.call(_PROBE, self.name)

    def close(self) -> None:
        """End the server."""
        self._toolbox.detach(self.name)
