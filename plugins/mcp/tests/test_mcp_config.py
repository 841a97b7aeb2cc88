"""How servers are described, and what is said of descriptions that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gem_core.errors import ToolError
from gem_mcp._config import HttpServer, StdioServer, read_servers
from gem_mcp.tool import MCPTool

TIME = {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"], "env": {"A": "b"}, "cwd": "/tmp"}
EXPECTED = StdioServer(command="mcp-server-time", args=("--local-timezone", "UTC"), env={"A": "b"}, cwd="/tmp")


def test_forms(tmp_path: Path) -> None:
    assert read_servers({"time": TIME}) == {"time": EXPECTED}
    assert read_servers({"mcpServers": {"time": {**TIME, "type": "stdio"}}}) == {"time": EXPECTED}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"time": TIME}}))
    assert read_servers(path) == read_servers(str(path)) == {"time": EXPECTED}
    assert read_servers("https://tools.example/mcp") == {"tools.example": HttpServer(url="https://tools.example/mcp")}
    sse = {"url": "http://tools.example/sse", "headers": {"X": "y"}, "transport": "sse"}
    assert read_servers({"old": sse}) == {"old": HttpServer(**sse)}


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({}, "servers is a mapping"),
        (["time"], "servers is a mapping"),
        ({"x": "time"}, "'x' needs either a command"),
        ({"x": {}}, "'x' needs either a command"),
        ({"x": {"command": "a", "url": "http://b"}}, "'x' needs either a command"),
        ({"x": {"command": ""}}, "'x': the command is empty"),
        ({"x": {"command": "a", "arg": []}}, "'x': .*`arg`"),
        ({"x": {"command": "a", "args": [1]}}, r"'x': .*\$.args"),
        ({"x": {"command": "a\0"}}, "'x': a NUL"),
        ({"x": {"command": "a", "transport": "http"}}, "'x': .*transport"),
        ({"x": {"url": "ftp://b"}}, "'x': 'ftp://b' is no http"),
        ({"x": {"url": "http://b", "transport": "smoke"}}, "'x': .*smoke"),
        ("no/such/file.json", "no/such/file.json"),
    ],
)
def test_mistakes(servers: Any, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        MCPTool(servers)


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"start_timeout": -1.0}, {"allow": "add"}])
def test_other_arguments(settings: Any) -> None:
    with pytest.raises(ToolError, match=next(iter(settings))):
        MCPTool({"time": TIME}, **settings)


def test_unknown_names_in_allow(use: Any, raw: Any) -> None:
    with pytest.raises(ToolError, match=r"offers 'pin'\. Did you mean 'ping'"):
        use(MCPTool({"raw": raw("serve")}, allow=["pin"]))


def test_secrets_are_not_shown() -> None:
    tool = MCPTool(
        {"a": {"command": "x", "env": {"KEY": "sesame"}}, "b": {"url": "http://b", "headers": {"K": "sesame"}}}
    )
    assert "sesame" not in repr(tool) + repr(read_servers({"a": {"command": "x", "env": {"KEY": "sesame"}}}))
