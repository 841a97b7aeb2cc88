"""Runs source text as `python program.py` does."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
import types
from typing import Any, NamedTuple

_ERRORS = "surrogateescape"  # as Python has it where LANG is C.UTF-8


class ProgramExit(NamedTuple):
    """How a program ended by itself."""

    code: int
    """Exit code."""
    error: BaseException | None = None
    """What it did not catch, other than `SystemExit`."""


def open_streams() -> None:
    """Standard streams as new as the file descriptors 0, 1 and 2 are."""
    sys.stdin = sys.__stdin__ = _stream(0, "<stdin>", _ERRORS)
    sys.stdout = sys.__stdout__ = _stream(1, "<stdout>", _ERRORS)
    sys.stderr = sys.__stderr__ = _stream(2, "<stderr>", "backslashreplace")


def new_main() -> dict[str, Any]:
    """The names of a new module `__main__`."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    names = vars(main)
    names["__builtins__"] = __builtins__ if isinstance(__builtins__, types.ModuleType) else sys.modules["builtins"]
    names["__annotations__"] = {}
    return names


def execute(source: bytes, path: str, names: dict[str, Any]) -> ProgramExit:
    """Run it in a module's names, as the file at this path."""
    names["__file__"] = path
    try:
        # Without the flags of this module's own `from __future__`.
        exec(compile(source, path, "exec", dont_inherit=True), names)
    except SystemExit as error:
        return ProgramExit(_exit_code(error.code))
    except BaseException as error:
        _show(error)
        return ProgramExit(1, error)
    return ProgramExit(0)


def finish(names: dict[str, Any]) -> bool:
    """What Python does at the end of a program; whether all output could be written."""
    with contextlib.suppress(BaseException):
        vars(threading)["_shutdown"]()  # waits for the threads that are no daemons
    with contextlib.suppress(BaseException):
        vars(atexit)["_run_exitfuncs"]()
    flushed = flush()
    names.clear()  # destructors may have something to say
    return flush() and flushed


def flush() -> bool:
    """Whether all output could be written."""
    done = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            done = False
    return done


def interrupt() -> None:
    """End as a program does that did not catch `KeyboardInterrupt`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _stream(file: int, name: str, errors: str | None) -> io.TextIOWrapper:
    raw = io.FileIO(file, "rb" if file == 0 else "wb", closefd=False)
    raw.name = name
    buffer = io.BufferedReader(raw) if file == 0 else io.BufferedWriter(raw)
    stream = io.TextIOWrapper(buffer, "utf-8", errors, line_buffering=file == 2)
    stream.mode = "r" if file == 0 else "w"  # pyright: ignore[reportAttributeAccessIssue]
    return stream


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    with contextlib.suppress(BaseException):
        print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    own = error.__traceback__
    shown = error.with_traceback(own.tb_next if own else None)
    try:
        sys.excepthook(type(shown), shown, shown.__traceback__)
    except BaseException:
        sys.__excepthook__(type(shown), shown, shown.__traceback__)
