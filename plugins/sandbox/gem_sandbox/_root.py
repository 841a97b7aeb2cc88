"""The file system of a shell: its own from the root on, in memory, with the system's programs in it, read-only."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable

from gem_sandbox import kernel
from gem_sandbox._interpreters import Interpreters
from gem_sandbox.view import BOX, DEVICES, LINKS, PACKAGE_FOLDER, is_below

WORK = "/app"
"""Where commands start."""
HOME = "/root"

_BYTES_PER_FILE = 4096
_FOLDERS = {
    WORK: 0o755, HOME: 0o700, "/tmp": 0o1777, "/var/tmp": 0o1777, "/var/log": 0o755, "/home": 0o755, "/opt": 0o755,
    "/srv": 0o755, "/run": 0o755, "/usr/local/bin": 0o755, "/dev/shm": 0o1777, "/etc": 0o755, "/proc": 0o555,
}  # fmt: skip
_TEXTS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/profile": "",
}
_FIXED = (
    "/proc", "/dev", "/run", "/usr", "/etc/ld.so.preload", "/etc/perl", "/etc/python3", "/etc/alternatives",
    *(f"/etc/python3.{minor}" for minor in range(8, 30)),
    *({sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix} - {"/"}),
)  # fmt: skip
"""Beside the system's own: where it looks for the code that its programs load when they start, a Python's folder with
its `pyvenv.cfg` among them."""


class Root:
    """Builds roots. It reads the files that it copies once, so that one that the system replaces later is no trouble:
    a file that is mounted cannot be mounted again after that.

    Args:
        readable: files, folders and links of the server's view.
    """

    def __init__(self, readable: Iterable[str]) -> None:
        shown = [path for path in readable if not is_below(path, PACKAGE_FOLDER)]
        self._links = {path: os.readlink(path) for path in shown if os.path.islink(path)}
        self._copies: dict[str, bytes] = {}
        self._mounts: list[str] = []
        for path in shown:
            if path in self._links:
                continue
            if os.path.isfile(path):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    self._copies[path] = file.read()
            else:
                self._mounts.append(path)
        self._interpreters = Interpreters(self._mounts)
        self.fixed = (*_FIXED, *self._links, *self._mounts, *self._copies)
        """Paths that no command of a shell decides over, or should for another one: see `Shell.take`."""

    def prepare_guard(self) -> None:
        """In the server, before the first guarded root: make what it needs. Raises `OSError`."""
        self._interpreters.copies()

    def enter(self, disk: int, *, guarded: bool) -> None:
        """In a mount namespace of its own: make a new root, and go there.

        Args:
            disk: bytes that may be written.
            guarded: see `gem_sandbox._interpreters`.
        """
        harmless = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", BOX, "tmpfs", harmless, f"size={disk},nr_inodes={disk // _BYTES_PER_FILE},mode=755")
        self._fill(BOX)
        for path, copy in self._interpreters.copies().items() if guarded else ():
            kernel.mount(copy, BOX + path, flags=kernel.MS_BIND)
        harmless |= kernel.MS_RDONLY | kernel.MS_NOEXEC
        # Guarded processes are to be seen all the same: a check may look for a program's process.
        hidden = "" if guarded else ",hidepid=2"
        try:
            kernel.mount("proc", BOX + "/proc", "proc", harmless, f"subset=pid{hidden}")
        except OSError:  # as in containers that hide parts of their own
            kernel.mount("tmpfs", BOX + "/proc", "tmpfs", harmless)
        os.chdir(BOX)
        kernel.pivot_root(".", ".")
        kernel.unmount(".")
        os.chdir("/")

    def _fill(self, new: str) -> None:
        for path, mode in _FOLDERS.items():
            os.makedirs(new + path, exist_ok=True)
            os.chmod(new + path, mode)
        for path, target in {**self._links, **LINKS}.items():
            os.makedirs(os.path.dirname(new + path), exist_ok=True)
            os.symlink(target, new + path)
        for path, text in {**{path: text.encode() for path, text in _TEXTS.items()}, **self._copies}.items():
            os.makedirs(os.path.dirname(new + path), exist_ok=True)
            with open(new + path, "wb") as file:
                file.write(text)
        for path in [*self._mounts, *DEVICES]:
            kernel.bind(path, new + path)
