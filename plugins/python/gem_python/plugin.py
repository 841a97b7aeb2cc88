"""What this package registers: the tool, as data, and what `gem-core doctor` says of sandboxes."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import Ability, Boundary, ToolSpec

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_tools() -> Iterable[ToolSpec]:
    """The interpreter."""
    yield ToolSpec("python:Interpreter", "gem_python.tool:PythonTool", tags=("code", "sandbox"))


@hookimpl
def gem_doctor(abilities: list[Ability], boundaries: list[Boundary]) -> None:
    """What can confine programs here, and what does."""
    from gem_sandbox import abilities as found

    abilities.extend(found.abilities())
    boundaries.append(found.boundary())
