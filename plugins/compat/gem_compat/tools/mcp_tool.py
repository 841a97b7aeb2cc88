"""The tools of MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem_compat.tools.registered_tool import RegisteredTool


class MCPTool(RegisteredTool):
    """Calls the tools of MCP servers, as `<tool_call>` blocks ask for them.

    Args:
        config: the URL of a server, or servers by name, with or without `{"mcpServers": ...}` around them.
        execution_timeout: seconds that one call may take.
        validate_on_init: connect now, so that a mistake shows at once.

    Raises:
        ToolError: an invalid description of servers; a server that cannot be reached.
    """

    tool_type = "mcp"

    def __init__(
        self, config: str | Mapping[str, Any], *, execution_timeout: float = 30.0, validate_on_init: bool = True
    ) -> None:
        super().__init__("mcp:Servers", servers=config, timeout=float(execution_timeout))
        if validate_on_init:
            self.instruction_string()

    @classmethod
    def from_url(cls, url: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> MCPTool:
        """The tools of the server at a URL."""
        return cls({"default": {"url": url, "headers": dict(headers or {})}}, **options)

    @classmethod
    def from_config_file(cls, config_path: str, **options: Any) -> MCPTool:
        """The tools of the servers in a JSON file."""
        return cls(config_path, **options)

    @classmethod
    def from_multi_server(cls, servers: Mapping[str, str], **options: Any) -> MCPTool:
        """The tools of several servers, by name and URL."""
        return cls({name: {"url": url} for name, url in servers.items()}, **options)
