"""The error of this package."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from gem_core.errors import EnvError, GemError


class SandboxError(EnvError):
    """There is no sandbox to run a program in: no safe backend here, a module that cannot be preloaded, limits that are
    none, or a machine without room. It says nothing about the program."""


class ShellError(GemError):
    """A shell cannot do what it was asked for, because of what its commands have done: its files are too large, its
    disk is full, or its process was ended. It says nothing about the machine."""


@contextlib.contextmanager
def machine_trouble() -> Generator[None]:
    """Turn what the system refuses to this process into a `SandboxError`."""
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"the machine refuses what a program needs: {error}. Close sessions, run fewer at one time, or allow more "
            "(ulimit -n, ulimit -u, memory)."
        ) from error
