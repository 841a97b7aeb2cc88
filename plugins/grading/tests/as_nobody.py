"""Root becomes nobody, for whom this Python is made reachable where it lies in a folder of root's, and runs it.

python as_nobody.py [arguments of Python]
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from gem_sandbox import kernel

_NOBODY = 65534


def main() -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    needed = {folder for folder in map(os.path.realpath, _of_python()) if os.path.isdir(folder)}
    for closed in {first for folder in needed if (first := _closed(folder))}:
        _open(closed, [folder for folder in needed if folder.startswith(closed + "/")])
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    os.environ["HOME"] = "/nonexistent"
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


def _of_python() -> Iterator[str]:
    yield from (sys.prefix, sys.base_prefix, *sys.path)
    link = sys.executable
    while os.path.islink(link):
        link = os.path.join(os.path.dirname(link), os.readlink(link))
        yield str(Path(link).parents[1])


def _closed(folder: str) -> str | None:
    """The first folder on the way that only its owner may enter."""
    way = [*reversed(Path(folder).parents), Path(folder)]
    return next((str(each) for each in way if not each.stat().st_mode & stat.S_IXOTH), None)


def _open(closed: str, needed: list[str]) -> None:
    """Show nothing of a folder but what is needed of it."""
    files = {folder: os.open(folder, os.O_PATH) for folder in sorted(needed)}
    kernel.mount("tmpfs", closed, "tmpfs", options="mode=755")
    for folder, file in files.items():
        os.makedirs(folder, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{file}", folder, flags=kernel.MS_BIND | kernel.MS_REC)


main()
