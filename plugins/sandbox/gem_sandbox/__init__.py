"""Runs programs that nobody has read: no network, a file system of their own, limits, and an end that always comes.

    from gem_sandbox import Limits, LocalSandbox
    with LocalSandbox(preload=["numpy"]) as sandbox:
        done = sandbox.run("print(6 * 7)", limits=Limits(wall=2.0))
    done.stdout, done.exit_code, done.ending    # "42\\n", 0, "exit"

The names below are loaded on first use: this package is imported in the server process, which needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_sandbox.errors import SandboxError as SandboxError
    from gem_sandbox.errors import ShellError as ShellError
    from gem_sandbox.execution import Ending as Ending
    from gem_sandbox.execution import Execution as Execution
    from gem_sandbox.files import Entry as Entry
    from gem_sandbox.imports import Imports as Imports
    from gem_sandbox.limits import Limits as Limits
    from gem_sandbox.local import LocalSandbox as LocalSandbox
    from gem_sandbox.sandbox import Sandbox as Sandbox
    from gem_sandbox.sandbox import SandboxSession as SandboxSession
    from gem_sandbox.shell import LocalShell as LocalShell
    from gem_sandbox.shell import Ran as Ran

_HOME = {
    "Ending": "execution",
    "Entry": "files",
    "Execution": "execution",
    "Imports": "imports",
    "Limits": "limits",
    "LocalSandbox": "local",
    "LocalShell": "shell",
    "Ran": "shell",
    "Sandbox": "sandbox",
    "SandboxError": "errors",
    "SandboxSession": "sandbox",
    "ShellError": "errors",
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

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
