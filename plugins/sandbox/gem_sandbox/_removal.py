"""Takes away a folder that a program has filled, however deep, and whatever rights it has left there."""

from __future__ import annotations

import contextlib
import os
import uuid


def remove(folder: str) -> None:
    """Take a folder away, with all in it, as far as the system lets this process. Nothing runs in it any more."""
    with contextlib.suppress(OSError):
        while entries := _opened(folder):
            for entry in entries:
                _take(entry, folder)
        os.rmdir(folder)


def _take(entry: os.DirEntry[str], folder: str) -> None:
    """Remove a file, or an empty folder; move what is in a folder up, so that no path becomes long."""
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.path)
        return
    for inner in _opened(entry.path):
        if inner.is_dir(follow_symlinks=False):
            os.chmod(inner.path, 0o700)  # a folder that may not be written to cannot be moved
        os.rename(inner.path, f"{folder}/{uuid.uuid4().hex}")
    os.rmdir(entry.path)


def _opened(folder: str) -> list[os.DirEntry[str]]:
    os.chmod(folder, 0o700)
    with os.scandir(folder) as entries:
        return [*entries]
