"""What this package registers: the tool, as data, and what `gem-core doctor` says of sandboxes."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import Capability, Isolation, ToolSpec

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_tools() -> Iterable[ToolSpec]:
    """The interpreter."""
    yield ToolSpec("python:Interpreter", "gem_python.tool:PythonTool", tags=("code", "sandbox"))


@hookimpl
def gem_doctor(capabilities: list[Capability], isolations: list[Isolation]) -> None:
    """What can confine programs here, and what does."""
    from gem_sandbox import capabilities as found

    capabilities.extend(found.capabilities())
    isolations.append(found.isolation())
