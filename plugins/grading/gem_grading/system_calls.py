"""The system calls of a grading process: those that compute, and those that read files. There are no others for it.

A filter of programs (`gem_sandbox.seccomp`) lists what they must not do, because programs may do a lot. Grading needs
so little that this filter lists what is left: no call starts a process or a program, reaches another process, opens a
socket, or writes to a file. What is refused raises `PermissionError`, calls that are newer than this list among them.
"""

from __future__ import annotations

import errno
import functools
import os
import struct

# Names of system calls, with their numbers on x86_64 and aarch64; `None` where there is none.
COMPUTING: dict[str, tuple[int | None, int | None]] = {
    "brk": (12, 214), "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "futex": (202, 98), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "getcpu": (309, 168), "exit": (60, 93), "exit_group": (231, 94), "restart_syscall": (219, 128),
    # Its own signals and timers; it cannot send one.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "alarm": (37, None), "getitimer": (36, 102), "setitimer": (38, 103),
    # Time, chance, and who it is.
    "time": (201, None), "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "times": (100, 153), "getrusage": (98, 165),
    "getrlimit": (97, 163), "getrandom": (318, 278), "uname": (63, 160), "sysinfo": (99, 179), "getpid": (39, 172),
    "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177),
    # Files that are open. It has none to write to but its end of the pipe for the result.
    "read": (0, 63), "readv": (19, 65), "pread64": (17, 67), "write": (1, 64), "writev": (20, 66), "lseek": (8, 62),
    "close": (3, 57), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    # What a path leads to; what is in it, Landlock decides.
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getcwd": (79, 17), "getdents64": (217, 61),
}  # fmt: skip
OPENING: dict[str, tuple[int | None, int | None]] = {"open": (2, None), "openat": (257, 56)}
ASKING: dict[str, tuple[int | None, int | None]] = {"fcntl": (72, 25), "prlimit64": (302, 261)}
# AUDIT_ARCH_* of <linux/audit.h>, and what the kernel calls O_LARGEFILE.
_MACHINES = {"x86_64": (0xC000003E, 0x8000), "aarch64": (0xC00000B7, 0x20000)}
_READING = os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Flags of a file that is opened to be read."""

# Of <linux/bpf_common.h> and <linux/seccomp.h>.
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_ALL = 0xFFFFFFFF


@functools.cache
def program(machine: str, *, opening: bool) -> bytes:
    """Instructions of classic BPF, eight bytes each.

    Args:
        machine: `x86_64` or `aarch64`.
        opening: whether files may be opened, to be read.
    """
    architecture, large_file = _MACHINES[machine]
    column = list(_MACHINES).index(machine)
    allow, refuse = _line(_RETURN, _ALLOW), _line(_RETURN, _FAIL | errno.EPERM)
    flags = _ALL & ~(_READING | large_file)
    verdicts = {
        **dict.fromkeys(COMPUTING, allow),
        "open": _require((1, 0, flags, 0)) if opening else refuse,
        "openat": _require((2, 0, flags, 0)) if opening else refuse,
        "fcntl": _require((1, 0, _ALL & ~2, 1)),  # F_GETFD and F_GETFL
        "prlimit64": _require((2, 0, _ALL, 0), (2, 1, _ALL, 0)),  # no new limit
    }
    rows = {**COMPUTING, **OPENING, **ASKING}
    numbered = {number: verdicts[name] for name, row in rows.items() if (number := row[column]) is not None}
    starts = {0: refuse}
    for number in sorted(numbered):
        starts[number] = numbered[number]
        starts.setdefault(number + 1, refuse)
    changes = [(start, block) for start, block in starts.items() if starts.get(start - 1) != block]
    return b"".join([
        _line(_LOAD, _ARCHITECTURE),
        _line(_EQUAL, architecture, 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
        _chosen(changes),
    ])  # fmt: skip


def _chosen(changes: list[tuple[int, bytes]]) -> bytes:
    """The block of the last start that is not above the number. A tree, because the kernel runs all numbers through a
    filter when it is installed: of a list, that takes longer than the fork."""
    if len(changes) == 1:
        return changes[0][1]
    middle = len(changes) // 2
    below, above = _chosen(changes[:middle]), _chosen(changes[middle:])
    return _line(_AT_LEAST, changes[middle][0], len(below) // 8, 0) + below + above


def _require(*conditions: tuple[int, int, int, int]) -> bytes:
    """Allow a call if all conditions hold: an argument, its lower or upper half, a mask, and what is left of it."""
    lines: list[bytes] = []
    for place, (argument, half, mask, value) in enumerate(conditions):
        rest = 3 * (len(conditions) - place - 1)
        lines += [
            _line(_LOAD, _ARGUMENTS + 8 * argument + 4 * half),
            _line(_AND, mask),
            _line(_EQUAL, value, 0, rest + 1),
        ]
    return b"".join([*lines, _line(_RETURN, _ALLOW), _line(_RETURN, _FAIL | errno.EPERM)])


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
