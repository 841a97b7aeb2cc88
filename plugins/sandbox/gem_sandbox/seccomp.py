"""A filter of system calls for the programs: what reaches out of a sandbox, or too deep into the kernel, is refused.

Everything that is refused fails as if there were no permission, so that Python raises `PermissionError`. What is newer
than the list does not exist for them. The C library falls back to `clone` where there is no `clone3`, whose flags no
filter can see.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct

from gem_sandbox import kernel

_NEWEST = 450
"""Highest number of a system call that the list below has been drawn up for."""
_NO_NUMBER = 0xFFFFFFFF

# Names of system calls, with their numbers on x86_64 and aarch64; `None` where there is none.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # File systems and namespaces.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    # Other processes.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "ioprio_set": (251, 30),
    # Where the kernel groups processes by session (`sched_autogroup_enabled`), each session weighs as much as another,
    # whatever the priorities of its processes.
    "setsid": (112, 157),
    # The network, and addresses at which programs could meet.
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201),
    # Memory that no limit counts.
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "setsockopt": (54, 208), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "seccomp": (317, 277),
    # Shared memory, semaphores and messages of others, where there is no namespace for them.
    "shmat": (30, 196), "shmctl": (31, 195), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_unlink": (241, 181),
    # What keeps memory or files in use after the program has let go of them: file descriptors under way in a socket,
    # pages in a pipe.
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "splice": (275, 76), "tee": (276, 77), "vmsplice": (278, 75),
    "sendfile": (40, 71),
    # What all of the machine shares: requests for its disks, their caches, locks on files that others have open, too.
    "io_setup": (206, 0), "io_destroy": (207, 1), "io_getevents": (208, 4), "io_submit": (209, 2),
    "io_cancel": (210, 3), "io_pgetevents": (333, 292), "sync": (162, 81), "syncfs": (306, 267),
    "sync_file_range": (277, 84), "fadvise64": (221, 223), "readahead": (187, 213), "flock": (73, 32),
    # Parts of the kernel that programs have no business with, and that have let them out before.
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "modify_ldt": (154, None),
    "personality": (135, 92), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # The machine.
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "vhangup": (153, 58),
    "ioperm": (173, None), "iopl": (172, None),
}  # fmt: skip
_CLONE3 = 435
_ARCHITECTURES = {
    # AUDIT_ARCH_*, and the numbers of clone and socketpair.
    "x86_64": (0xC000003E, 56, 53),
    "aarch64": (0xC00000B7, 220, 199),
}
# Calls about some process, by its id: an argument that has to be 0, for the caller itself.
_OF_ITSELF: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "prlimit64": (302, 261, (0,)), "sched_setaffinity": (203, 122, (0,)), "sched_setscheduler": (144, 119, (0,)),
    "sched_setparam": (142, 118, (0,)), "sched_setattr": (314, 274, (0,)), "setpriority": (141, 140, (0, 1)),
}  # fmt: skip
# Calls with many purposes: an argument, what it may not be, and the first number that this list does not know: the
# kernel learns more of them every year.
_PURPOSES: dict[str, tuple[int, int, int, tuple[int, ...], int]] = {
    # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to others. F_SETLEASE, F_NOTIFY: files of others. F_SETPIPE_SZ.
    "fcntl": (72, 25, 1, (8, 10, 15, 1024, 1026, 1031), 1039),
    # FIOSETOWN, SIOCSPGRP: signals to others. The numbers of devices have no order.
    "ioctl": (16, 29, 1, (0x8901, 0x8902), _NO_NUMBER),
    # PR_SET_DUMPABLE hides from the server what a process uses. PR_SET_SECCOMP. PR_SCHED_CORE can keep cores of others
    # idle. What comes after PR_GET_AUXV takes memory of the kernel (PR_FUTEX_HASH), or is of no use to programs.
    "prctl": (157, 167, 0, (4, 22, 62), 67),
}
_MMAP = (9, 222)
_MAP_HUGETLB = 0x40000
"""Memory that the machine's owner has set apart for something else."""
_MAP_SHARED_ANONYMOUS = 0x21
"""Memory that stays after a process has let go of most of it, and that nobody counts."""
_CLOSE_RANGE = 436
_CLOSE_RANGE_UNSHARE = 2
_CLONE_FILES = 0x400
"""A thread without it has file descriptors of its own, as one that calls `close_range` with the flag above."""
_FORKS: dict[str, list[int]] = {"x86_64": [57, 58], "aarch64": []}
_CLONE_THREAD = 0x10000
_NEW_NAMESPACE = 0x7E020080
"""All `CLONE_NEW*`."""
_CLONE_PARENT = 0x8000
"""The new process would be a child of the server's."""
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCKET_TYPE = 1, 1, 5, 0xF

# Of <linux/bpf_common.h> and <linux/seccomp.h>.
_LOAD, _AND, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_MODE_FILTER = 2


def unavailable() -> str | None:
    """Why there is no filter for this machine; `None` where there is one."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return f"no list of system calls for {machine}; there are {', '.join(_ARCHITECTURES)}"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "no list of system calls for 32-bit programs"
    return None if _knows_filters() else "the kernel filters no system calls"


def prepare() -> None:
    """Make ready what `install` needs."""
    for processes in (False, True):
        _program(os.uname().machine, processes)


def install(*, processes: bool) -> None:
    """Filter the calls of this process and of all that it will start, for good.

    Args:
        processes: whether it may start processes. Threads it may.
    """
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    filtering(_program(os.uname().machine, processes))()


def filtering(program: bytes) -> kernel.Prepared:
    """Filter the calls of this process, which can have no new privileges already, for good.

    Args:
        program: instructions of classic BPF, eight bytes each.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions of eight bytes, and where.
    pointer = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer)))
    arguments = map(ctypes.c_ulong, (kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(pointer)))
    return kernel.Prepared("prctl", *arguments, kept=(buffer, pointer))


def _knows_filters() -> bool:
    # With no program it fails: for a bad address where filters are known.
    try:
        kernel.prctl(kernel.PR_SET_SECCOMP, _MODE_FILTER, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


@functools.cache
def _program(machine: str, processes: bool) -> bytes:
    """Instructions of classic BPF, eight bytes each."""
    architecture, clone, socketpair = _ARCHITECTURES[machine]
    column = list(_ARCHITECTURES).index(machine)
    numbers = sorted(number for row in _REFUSED.values() if (number := row[column]) is not None)
    unknown = _instruction(_RETURN, _FAIL | errno.ENOSYS)
    lines = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _NEWEST + 1, 0, 1),  # calls of the x32 architecture among them
        unknown,
        _instruction(_EQUAL, _CLONE3, 0, 1),
        unknown,
    ]
    shared = [_instruction(_AND, _MAP_SHARED_ANONYMOUS), _instruction(_EQUAL, _MAP_SHARED_ANONYMOUS, 0, 1), _REFUSE]
    lines += _call(_MMAP[column], [_argument(3), _instruction(_HAS_BITS, _MAP_HUGETLB, 0, 1), _REFUSE, *shared])
    lines += _call(_CLOSE_RANGE, [_argument(2), _instruction(_HAS_BITS, _CLOSE_RANGE_UNSHARE, 0, 1), _REFUSE])
    for *of_machine, argument, values, unknown_from in _PURPOSES.values():
        refused = [_instruction(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
        newer = _instruction(_AT_LEAST, unknown_from, len(values) + 1, 0)
        lines += _call(of_machine[column], [_argument(argument), newer, *refused, _ALLOWED, _REFUSE])
    for *of_machine, arguments in _OF_ITSELF.values():
        is_zero = _instruction(_EQUAL, 0, 1, 0)
        lines += _call(of_machine[column], [line for one in arguments for line in (_argument(one), is_zero, _REFUSE)])
    for number in [*numbers, *([] if processes else _FORKS[machine])]:
        lines += [_instruction(_EQUAL, number, 0, 1), _REFUSE]
    kinds = [_instruction(_HAS_BITS, _CLONE_THREAD, 1, 0), _REFUSE] if not processes else []
    spaces = [_instruction(_HAS_BITS, _NEW_NAMESPACE | _CLONE_PARENT, 0, 1), _REFUSE]
    own_files = [_instruction(_AND, _CLONE_THREAD | _CLONE_FILES), _instruction(_EQUAL, _CLONE_THREAD, 0, 1), _REFUSE]
    lines += _call(clone, [_argument(0), *kinds, *spaces, *own_files])
    pair = [
        _argument(0),
        _instruction(_EQUAL, _AF_UNIX, 0, 4),
        _argument(1),
        _instruction(_AND, _SOCKET_TYPE),
        # Datagrams can be sent to any address.
        _instruction(_EQUAL, _SOCK_STREAM, 2, 0),
        _instruction(_EQUAL, _SOCK_SEQPACKET, 1, 0),
        _REFUSE,
    ]
    return b"".join([*lines, *_call(socketpair, pair), _ALLOWED])


def _call(number: int, lines: list[bytes]) -> list[bytes]:
    """What is done where a call has this number; it is allowed at the end."""
    return [_instruction(_EQUAL, number, 0, len(lines) + 1), *lines, _ALLOWED]


def _argument(place: int) -> bytes:
    """Load the lower half of an argument."""
    return _instruction(_LOAD, _ARGUMENTS + 8 * place)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


_REFUSE = _instruction(_RETURN, _FAIL | errno.EPERM)
_ALLOWED = _instruction(_RETURN, _ALLOW)
