"""What this package registers, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_CLASS = "gem_postgres.env:PostgresEnv"
_TAGS = ("multi-turn", "database", "mcp", "needs-postgresql", "needs-node")


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Our own tasks, in one id and by database, and any folder of MCPMark's tasks."""
    yield EnvSpec("postgres:Tasks-v0", _CLASS, {}, _TAGS, "postgres", trusting=())
    for database in ("library", "warehouse", "school"):
        kwargs = {"database": database}
        yield EnvSpec(f"postgres:{database.title()}-v0", _CLASS, kwargs, _TAGS, "postgres", trusting=())
    tags, folders = (*_TAGS, "any-folder"), ("tasks", "backups")
    yield EnvSpec("postgres:MCPMark", "gem_postgres.mcpmark:MCPMark", {}, tags, "postgres", trusting=folders)
