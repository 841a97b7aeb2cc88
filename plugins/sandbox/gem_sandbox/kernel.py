"""System calls that Python's `os` does not have (or only since 3.12). Each raises `OSError`."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

CLONE_VM, CLONE_FILES = 0x100, 0x400
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_pause = ctypes.cast(_libc.pause, ctypes.c_void_p)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(_libc.unshare(flags))


def setns(file: int, kind: int) -> None:
    """Enter a namespace."""
    _checked(_libc.setns(file, kind))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """As mount(2)."""
    arguments = (os.fsencode(text) for text in (source, target, kind))
    _checked(_libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options)), target)


def unmount(target: str) -> None:
    """Take a mount away, and all below it, once nothing uses it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), target)


def restrict_mounts(target: str, attributes: int) -> None:
    """Add attributes to a mount and to all below it."""
    change = struct.pack("QQQQ", attributes, 0, 0, 0)
    syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, change, ctypes.c_size_t(len(change)))


def pivot_root(new: str, old: str) -> None:
    """Make a mount the root, and put the former root somewhere below it."""
    syscall(_PIVOT_ROOT[os.uname().machine], os.fsencode(new), os.fsencode(old))


def syscall(number: int, *arguments: Any) -> int:
    """Any other."""
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments))


def prctl(option: int, first: int, second: int = 0) -> None:
    """As prctl(2)."""
    _checked(_libc.prctl(option, *map(ctypes.c_ulong, (first, second, 0, 0))))


def drop_capabilities() -> None:
    """Keep none."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, bytes(24)))


def clone_paused(flags: int, stack: ctypes.Array[ctypes.c_char]) -> int:
    """A process that does nothing, ever.

    Args:
        flags: `CLONE_*`, and the signal that tells of its end.
        stack: is to exist for as long as the process.

    Returns:
        Its id.
    """
    top = (ctypes.addressof(stack) + len(stack)) & ~15
    return _checked(_libc.clone(_pause, ctypes.c_void_p(top), flags, None))


def _checked(result: int, what: str | None = None) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
