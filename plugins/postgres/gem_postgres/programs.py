"""The programs of this machine that a database needs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from gem_core.errors import EnvError

SERVER = "mcp-postgres-server"
"""The npm package of the MCP server (MIT): of five, the one in Node that works over a socket and writes."""
SERVER_VERSION = "0.3.1"
_COMMAND = "mcp-postgres"
"""The command that the package installs."""
_OLDEST = 15
"""The first version that knows `STRATEGY` of `CREATE DATABASE`."""
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
        EnvError: it is not on the PATH.
    """
    found = shutil.which(_COMMAND)
    if found is None:
        raise EnvError(
            f"postgres: ids need the MCP server {SERVER!r}, whose command {_COMMAND!r} is not on the PATH. "
            f"Next: npm install --global {SERVER}@{SERVER_VERSION}, which needs Node 20 or later"
        )
    return found


def _version(name: str) -> int:
    return int(match[0]) if (match := re.match(r"\d+", name)) else 0
