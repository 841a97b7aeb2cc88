"""Interpreters that no process of a shell can look into, for shells that run checks.

A check holds what it expects while a program under test runs, and both have the same user. The kernel keeps the memory,
the environment and the open files of a process from others of its user if that user may run its program and not read it
(ptrace(2), "dumpable"). So a guarded root has copies in the places of its shells and interpreters that everybody may
run and nobody can read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping

from gem_sandbox import kernel
from gem_sandbox.view import PACKAGE_FOLDER

_NAMES = re.compile(r"(?:ba|da|k|mk|z)?sh|python[\d.]*|perl[\d.]*")
_ELF = b"\x7fELF"
_RUN_ONLY = 0o111


class Interpreters:
    """Copies of a root's shells, Pythons and Perls, made once for all guarded roots of a server.

    Args:
        folders: that a root shows, as the server sees them.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = [*folders]
        self._copies: dict[str, str] | None = None

    def copies(self) -> Mapping[str, str]:
        """Where the copy of each program is, by its path. The first call, which the server makes, copies them."""
        if self._copies is None:
            harmless = kernel.MS_NOSUID | kernel.MS_NODEV
            kernel.mount("tmpfs", PACKAGE_FOLDER, "tmpfs", harmless, "mode=711")
            self._copies = {path: _copied(path, number) for number, path in enumerate(sorted({*self._found()}))}
            kernel.restrict_mounts(PACKAGE_FOLDER, kernel.MOUNT_ATTR_RDONLY)  # or a shell's user could allow reading
        return self._copies

    def _found(self) -> Iterator[str]:
        for folder in self._folders:
            if os.path.basename(folder) in ("bin", "sbin") and os.path.isdir(folder):
                for name in filter(_NAMES.fullmatch, os.listdir(folder)):
                    path = os.path.realpath(os.path.join(folder, name))
                    if _is_program(path):
                        yield path


def _is_program(path: str) -> bool:
    if not os.path.isfile(path) or not os.access(path, os.R_OK | os.X_OK):
        return False
    with open(path, "rb") as file:
        return file.read(len(_ELF)) == _ELF


def _copied(path: str, number: int) -> str:
    copy = f"{PACKAGE_FOLDER}/{number}"
    shutil.copyfile(path, copy)
    os.chmod(copy, _RUN_ONLY)
    return copy
