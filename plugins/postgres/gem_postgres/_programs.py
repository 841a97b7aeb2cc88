"""The programs of this machine that a database needs."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

from gem_core.errors import EnvError

SERVER = "mcp-postgres-server"
"""The npm package of the MCP server (MIT): of five, the one in Node that works over a socket and writes."""
SERVER_VERSION = "0.3.1"
_COMMAND = "mcp-postgres"
"""The command that the package installs."""
_OLDEST = 15
"""The first version that knows `STRATEGY` of `CREATE DATABASE`."""
_OLDEST_NODE = 20
_NODE_SECONDS = 60.0
"""Seconds that Node may take to say its version on a busy machine."""
_DEBIAN = Path("/usr/lib/postgresql")
"""Debian keeps the programs of each version in a folder of its own, which is not on the PATH."""


def postgresql() -> Path:
    """The folder with `postgres`, `initdb` and `pg_restore`, of the newest version.

    Raises:
        EnvError: there is none, or it is older than 15.
    """
    versions = [path for path in _DEBIAN.glob("*/bin") if (path / "postgres").exists() and (path / "initdb").exists()]
    known = {_version(path.parent.name): path for path in versions}
    if not known and (found := shutil.which("postgres")) is not None and shutil.which("initdb") is not None:
        return Path(found).resolve().parent  # a version that is too old is found at the first database
    if not known or max(known) < _OLDEST:
        raise EnvError(
            f"postgres: ids need PostgreSQL {_OLDEST} or later, and none was found in {_DEBIAN} or on the PATH. "
            "Next: apt-get install postgresql"
        )
    return known[max(known)]


def mcp_server() -> str:
    """The command of the MCP server.

    Raises:
        EnvError: it is not on the PATH, or Node is missing or older than 20.
    """
    found = shutil.which(_COMMAND)
    if found is None:
        raise EnvError(
            f"postgres: ids need the MCP server {SERVER!r}, whose command {_COMMAND!r} is not on the PATH. "
            f"Next: npm install --global {SERVER}@{SERVER_VERSION}, which needs Node {_OLDEST_NODE} or later"
        )
    if (version := _node_version()) < _OLDEST_NODE:
        has = f"Node {version} is" if version else "no Node is"
        raise EnvError(
            f"the MCP server {SERVER!r} needs Node {_OLDEST_NODE} or later, and {has} on the PATH. "
            f"Next: install Node {_OLDEST_NODE} or later"
        )
    return found


def _node_version() -> int:
    """The main version of the Node on the PATH; 0 if there is none that runs."""
    node = shutil.which("node")
    return 0 if node is None else _version_of(node)


@functools.cache
def _version_of(node: str) -> int:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=_NODE_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return _version(said.strip().removeprefix("v"))


def _version(name: str) -> int:
    return int(match[0]) if (match := re.match(r"\d+", name)) else 0
