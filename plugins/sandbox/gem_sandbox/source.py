"""Text that is handed to another process as a file in memory, which nobody can change any more."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@contextlib.contextmanager
def sealed(text: str) -> Generator[int]:
    """Its file descriptor. Any `str` will do, lone surrogates too."""
    file = os.memfd_create("text", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(text.encode("utf-8", "surrogatepass"))
        while rest:
            rest = rest[os.write(file, rest) :]
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)
