"""Text that is handed to another process as a file in memory, which nobody can change any more."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator

from gem_sandbox._errors import machine_trouble

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@contextlib.contextmanager
def sealed(text: str) -> Generator[int]:
    """Its file descriptor. Any `str` will do, lone surrogates too. Raises `SandboxError` on a machine without room."""
    with machine_trouble():
        file = _sealed(text)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def reread(file: int) -> Generator[int]:
    """A file descriptor of the same text that is read from its beginning, whoever reads the other one."""
    own = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield own
    finally:
        os.close(own)


def _sealed(text: str) -> int:
    file = os.memfd_create("text", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(text.encode("utf-8", "surrogatepass"))
        while rest:
            rest = rest[os.write(file, rest) :]
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(file)
        raise
    return file
