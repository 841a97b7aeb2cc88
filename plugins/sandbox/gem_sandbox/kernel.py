"""System calls that Python's `os` does not have (or only since 3.12). Each raises `OSError`."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

CLONE_VM, CLONE_FILES = 0x100, 0x400
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_SET_SECUREBITS, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 28, 36, 38
SECUREBITS_NO_ROOT = 0x2F
"""The user 0 is a user like others, for good."""

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SIGPROCMASK = {"x86_64": 14, "aarch64": 135}
_SIG_BLOCK, _SIG_SETMASK = 0, 2
_MOUNT_SETATTR = 442
_SIGNAL_BYTES = 8
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_pause = ctypes.cast(_libc.pause, ctypes.c_void_p)


class Prepared:
    """A call of the C library whose arguments are ready: a fork makes it at a third of the time, as it touches little.

    Args:
        function: its name.
        arguments: of C's types, or bytes.
        kept: what the arguments point to.
    """

    def __init__(self, function: str, *arguments: Any, kept: object = None) -> None:
        self._function = getattr(_libc, function)
        self._arguments = arguments
        self._kept = kept

    def __call__(self) -> None:
        _checked(self._function(*self._arguments))


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


def bind(source: str, target: str) -> None:
    """Show a file or folder, with all that is mounted below it, at another place, which is made where it is missing."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o644))
    mount(source, target, flags=MS_BIND | MS_REC)


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


def set_host_name(name: bytes) -> None:
    """Of this process's host name namespace."""
    _checked(_libc.sethostname(name, ctypes.c_size_t(len(name))))


def prctl(option: int, first: int, second: int = 0) -> None:
    """As prctl(2)."""
    _checked(_libc.prctl(option, *map(ctypes.c_ulong, (first, second, 0, 0))))


def no_capabilities() -> Prepared:
    """Keep none."""
    return Prepared("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def drop_capabilities() -> None:
    """Keep none."""
    no_capabilities()()


def clone_paused(flags: int, stack: ctypes.Array[ctypes.c_char]) -> int:
    """A process that does nothing, ever. All signals are blocked in it, so that no handler of this process runs there.

    Args:
        flags: `CLONE_*`, and the signal that tells of its end.
        stack: is to exist for as long as the process.

    Returns:
        Its id.
    """
    top = (ctypes.addressof(stack) + len(stack)) & ~15
    # Not by the C library, which leaves two signals of its own unblocked.
    mask = ctypes.create_string_buffer(b"\xff" * _SIGNAL_BYTES, _SIGNAL_BYTES)
    before = ctypes.create_string_buffer(_SIGNAL_BYTES)
    _set_signal_mask(_SIG_BLOCK, mask, before)
    try:
        return _checked(_libc.clone(_pause, ctypes.c_void_p(top), flags, None))
    finally:
        _set_signal_mask(_SIG_SETMASK, before, None)


def _set_signal_mask(how: int, mask: ctypes.Array[ctypes.c_char], before: ctypes.Array[ctypes.c_char] | None) -> None:
    syscall(_SIGPROCMASK[os.uname().machine], how, mask, before, ctypes.c_size_t(_SIGNAL_BYTES))


def _checked(result: int, what: str | None = None) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
