"""Runs programs that nobody has read: no network, a file system of their own, limits, and an end that always comes.

    from gem_sandbox import Limits, LocalSandbox
    with LocalSandbox(preload=["numpy"]) as sandbox:
        done = sandbox.run("print(6 * 7)", limits=Limits(wall=2.0))
    done.stdout, done.exit_code, done.ending    # "42\\n", 0, "exit"

The names below are loaded on first use: this package is imported in the server process, which needs few of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_sandbox._errors import SandboxError as SandboxError
    from gem_sandbox._errors import ShellError as ShellError
    from gem_sandbox._execution import Ending as Ending
    from gem_sandbox._execution import Execution as Execution
    from gem_sandbox._files import Entry as Entry
    from gem_sandbox._imports import Imports as Imports
    from gem_sandbox._limits import Limits as Limits
    from gem_sandbox._local import LocalSandbox as LocalSandbox
    from gem_sandbox._sandbox import Sandbox as Sandbox
    from gem_sandbox._sandbox import SandboxSession as SandboxSession
    from gem_sandbox._shell import LocalShell as LocalShell
    from gem_sandbox._shell import Ran as Ran

_HOME = {
    "Ending": "_execution",
    "Entry": "_files",
    "Execution": "_execution",
    "Imports": "_imports",
    "Limits": "_limits",
    "LocalSandbox": "_local",
    "LocalShell": "_shell",
    "Ran": "_shell",
    "Sandbox": "_sandbox",
    "SandboxError": "_errors",
    "SandboxSession": "_sandbox",
    "ShellError": "_errors",
}

__all__ = [
    "Ending",
    "Entry",
    "Execution",
    "Imports",
    "Limits",
    "LocalSandbox",
    "LocalShell",
    "Ran",
    "Sandbox",
    "SandboxError",
    "SandboxSession",
    "ShellError",
]


# Not `gem_core.lazy`: the server process may have no more than this package.
def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
