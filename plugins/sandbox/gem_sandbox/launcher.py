"""Starts a program in a view of the file system of its own, as `bwrap` does where it is installed.

Runs in a process of its own, `python -c`, with what is to be done on the command line as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from gem_sandbox import kernel
from gem_sandbox.view import BOX, DEVICES, View

_BASE = "/tmp"
_OLD, _NEW = "/old", "/new"


def main() -> None:
    """Build the view, and become the command."""
    view, command = json.loads(sys.argv[1])
    _leave()
    _build(View(*view))
    os.execv(command[0], command)


def _leave() -> None:
    uid, gid = os.geteuid(), os.getegid()
    # Root sees and binds what only root may; everybody else needs to be root in namespaces of their own.
    kernel.unshare(kernel.CLONE_NEWNS | (kernel.CLONE_NEWUSER if uid else 0))
    if uid:
        map_user(uid, uid, gid, gid)
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)


def map_user(inside: int, outside: int, group_inside: int, group_outside: int, own: int | None = None) -> None:
    """In a new user namespace: the one user and group that exist in it.

    Args:
        inside, outside: ids of the user.
        group_inside, group_outside: ids of the group.
        own: file descriptor of /proc/self, where that path does not lead there.
    """
    folder = "/proc/self/" if own is None else ""
    maps = (
        ("setgroups", b"deny"),
        ("uid_map", b"%d %d 1" % (inside, outside)),
        ("gid_map", b"%d %d 1" % (group_inside, group_outside)),
    )
    for name, text in maps:
        file = os.open(folder + name, os.O_WRONLY, dir_fd=own)
        os.write(file, text)
        os.close(file)


def _build(view: View) -> None:
    kernel.mount("tmpfs", _BASE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
    os.mkdir(_BASE + _OLD)
    os.mkdir(_BASE + _NEW)
    kernel.pivot_root(_BASE, _BASE + _OLD)
    os.chdir("/")
    kernel.mount("tmpfs", _NEW, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    _fill(view)
    kernel.restrict_mounts(_NEW, kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID)
    # Writable: user namespaces are set up through it.
    kernel.mount(_OLD + "/proc", _NEW + "/proc", flags=kernel.MS_BIND | kernel.MS_REC)
    os.chdir(_NEW)
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _fill(view: View) -> None:
    for folder in (BOX, "/proc"):
        os.mkdir(_NEW + folder)
    for path, target in view.links.items():
        os.makedirs(os.path.dirname(_NEW + path), exist_ok=True)
        os.symlink(target, _NEW + path)
    for path, source in [*view.binds.items(), *zip(DEVICES, DEVICES, strict=True)]:
        kernel.bind(_OLD + source, _NEW + path)
