"""What programs see of the file system: Python, what is installed for it, and the system's libraries; all read-only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE_FOLDER = "/run/gem_sandbox"
"""Where the server finds this package; hidden from programs."""
BOX = "/box"
"""Where a program's own file system is mounted."""
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")

_SYSTEM = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32",
    "/usr/lib64", "/usr/libx32", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store",
    "/sys/kernel/mm/transparent_hugepage",  # the C library looks here how large pages can be
)  # fmt: skip
_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "ssl", "share/zoneinfo", "pyvenv.cfg")
LINKS = {
    "/dev/zero": "/dev/full",  # reads the same; mapped, the other one is memory that nobody counts
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
"""Links that every file system of ours has."""
_OF_A_BOX = {"/dev/shm": f"{BOX}/shm"}
_TEMPORARY = {"/tmp": f"{BOX}/tmp", "/var/tmp": f"{BOX}/tmp"}


class View(NamedTuple):
    """How to build it in an empty folder, in this order."""

    links: dict[str, str]
    """Symbolic links, and what they point to."""
    binds: dict[str, str]
    """Files and folders, and where they are on this machine."""

    @property
    def of_this_machine(self) -> list[str]:
        """What is shown as it is; other links lead to what only a program's own file system has."""
        return [*self.binds, *(path for path in self.links if path in _SYSTEM)]


def view() -> View:
    """For the interpreter and the search path of this process."""
    system = [path for path in _SYSTEM if os.path.exists(path)]
    links = {path: os.readlink(path) for path in system if os.path.islink(path)}
    folders = sorted({*(path for path in system if path not in links), *_of_python()})
    # The shorter come first: what another one shows already needs no place of its own.
    shown: dict[str, str] = {}
    for path in folders:
        if not any(is_below(path, above) for above in shown):
            shown[path] = os.path.realpath(path)
    free = {path: box for path, box in _TEMPORARY.items() if not any(is_below(one, path) for one in shown)}
    return View(
        {**links, **LINKS, **_OF_A_BOX, **free}, {**shown, PACKAGE_FOLDER + "/gem_sandbox": str(Path(__file__).parent)}
    )


def search_path() -> list[str]:
    """What of this process's `sys.path` programs have as well."""
    return [path for path in map(os.path.abspath, sys.path) if _is_site(path)]


def _of_python() -> Iterator[str]:
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        yield from (path for part in _OF_A_PREFIX if os.path.exists(path := os.path.join(prefix, part)))
    yield from (path for path in search_path() if os.path.isdir(path))
    link = sys.executable  # maybe the first of several
    while os.path.islink(link):
        yield os.path.dirname(link)
        link = os.path.join(os.path.dirname(link), os.readlink(link))
    yield os.path.dirname(link)


def _is_site(path: str) -> bool:
    return os.path.basename(path) in {"site-packages", "dist-packages"}


def is_below(path: str, folder: str) -> bool:
    """Whether it is the folder, or in it."""
    return path == folder or path.startswith(folder + "/")
