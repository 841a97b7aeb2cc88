"""Access rights to files that a process takes from itself, where the kernel has Landlock; no privilege is needed."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from gem_sandbox import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_KNOWN_RIGHTS = (0, 13, 14, 15, 15, 16, 16)
"""How many rights there are, by version; none was added after the last."""
_SCOPES = 3
"""Abstract sockets and signals stay inside, from version 6 on."""
_TCP = 3
"""Bind and connect, from version 4 on."""


def version() -> int:
    """Of Landlock here; 0 where there is none. Signals are kept inside from 6 on."""
    try:
        return kernel.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Keep this process, and all that it will start, to these files and folders, for good. Nothing without Landlock."""
    if not version():
        return
    rules = ruleset(readable, writable)
    try:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        enforcing(rules)()
    finally:
        os.close(rules)


def ruleset(readable: Iterable[str], writable: Iterable[str]) -> int:
    """File descriptor of the rules that allow these files and folders, and nothing else. Only with Landlock."""
    found = version()
    rights = (1 << _KNOWN_RIGHTS[min(found, len(_KNOWN_RIGHTS) - 1)]) - 1
    fields = [rights, *[_TCP] * (found >= 4), *[_SCOPES] * (found >= 6)]
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    rules = kernel.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for path in readable:
            _allow(rules, path, rights & _READ)
        for path in writable:
            _allow(rules, path, rights)
    except BaseException:
        os.close(rules)
        raise
    return rules


def enforcing(rules: int) -> kernel.Prepared:
    """Keep this process, which can have no new privileges already, and all that it will start, to these rules."""
    return kernel.Prepared("syscall", *map(ctypes.c_long, (_RESTRICT_SELF, rules, 0)))


def _allow(ruleset: int, path: str, rights: int) -> None:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            rights &= _OF_A_FILE
        kernel.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, file), 0)
    finally:
        os.close(file)
