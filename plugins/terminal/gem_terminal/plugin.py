"""What this package registers, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_terminal._kinds import KINDS

GEM_PLUGIN_API = ">=1,<2"
_TRUSTING = ("tasks", "backend", "network", "memory", "disk", "processes")

_CLASS = "gem_terminal.env:TerminalEnv"
_OWN = "package:gem_terminal/tasks"
_TAGS = ("multi-turn", "terminal", "sandbox")
_EXTRA = "terminal"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Our own tasks, in one id and by kind, and any folder of tasks."""
    yield EnvSpec("terminal:Tasks-v0", _CLASS, {"tasks": _OWN}, (*_TAGS, "bundled"), _EXTRA, trusting=_TRUSTING)
    for kind, names in KINDS.items():
        kwargs = {"tasks": _OWN, "only": names}
        yield EnvSpec(
            f"terminal:{kind}-v0", _CLASS, kwargs, (*_TAGS, "bundled", kind.lower()), _EXTRA, trusting=_TRUSTING
        )
    yield EnvSpec("terminal:Folder", _CLASS, tags=(*_TAGS, "any-folder"), extra=_EXTRA, trusting=_TRUSTING)
