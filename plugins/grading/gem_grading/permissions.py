"""What code may do while it grades: compute, and import what is installed.

This keeps honest graders from carrying out what stands in an answer (`eval`, sympy's parser, `exec` of a few lines). It
is no sandbox: code that sets its mind to it gets around Python's audit hooks. Landlock and seccomp, which the kernel
enforces, are the business of a sandbox for code.
"""

from __future__ import annotations

import _posixsubprocess
import os
import posix
import sys
from collections.abc import Callable, Sequence
from posixpath import normpath
from typing import Any, NoReturn, TypeAlias

Watch: TypeAlias = Callable[[str, tuple[Any, ...]], None]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNAUDITED = (
    "mkfifo", "mknod", "pidfd_open", "sched_setaffinity", "sched_setparam", "sched_setscheduler", "setpriority",
)  # fmt: skip
"""Functions of `os` that reach out of their process and raise no audit event."""


def watcher(path: Sequence[str]) -> Watch:
    """An audit hook that refuses all that grading does not need.

    An event that is not named here is refused. https://docs.python.org/3/library/audit_events.html lists them.

    Args:
        path: folders that modules are imported from; files elsewhere cannot be read.
    """
    folders = {*path, sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)}
    roots = tuple(os.path.join(os.path.abspath(folder), "") for folder in folders)

    # Defaults and constants, because an answer could change a global or the variables of an enclosing function.
    def watch(
        event: str,
        arguments: tuple[Any, ...],
        roots: tuple[str, ...] = roots,
        writing: int = _WRITING,
        text: type[str] = str,
        kind: type[type] = type,
        normal: Any = normpath,
        refuse: Callable[..., NoReturn] = _refuse,
    ) -> None:
        if event in {
            "array.__new__", "builtins.id", "code.__new__", "compile", "exec", "function.__new__", "import",
            "marshal.dumps", "marshal.load", "marshal.loads", "object.__delattr__", "object.__getattr__",
            "object.__setattr__", "pickle.find_class", "sys._getframe", "sys._getframemodulename", "sys.excepthook",
            "sys.unraisablehook", "time.sleep",
        }:  # fmt: skip
            return
        if event not in {"open", "os.listdir", "os.scandir"}:
            refuse(event)
        file = arguments[0]
        if kind(file) is not text or not (normal(file) + "/").startswith(roots):
            refuse(f"{event} of {file!r}")
        if event == "open" and arguments[2] & writing:
            refuse(f"writing {file!r}")

    return watch


def seal(watch: Watch) -> None:
    """Refuse, from now on and for good in this process, what `watch` refuses, and what raises no audit event."""
    for module, name, refused in _REFUSED:
        setattr(module, name, refused)
    fork_exec = _refused("starting a process")  # no audit event of its own before Python 3.14
    _posixsubprocess.fork_exec = fork_exec
    if "subprocess" in sys.modules:
        sys.modules["subprocess"].__dict__["_fork_exec"] = fork_exec
    sys.addaudithook(watch)


def _refused(what: str) -> Callable[..., NoReturn]:
    return lambda *_, **__: _refuse(what)


def _refuse(what: object) -> NoReturn:
    raise PermissionError(f"{what} is not allowed while grading")


_REFUSED = [(module, name, _refused(name)) for name in _UNAUDITED for module in (os, posix) if hasattr(module, name)]
