"""The server of programs: it has imported what programs need, and forks a process for each of them."""

from __future__ import annotations

import array as array  # what `socket` imports for file descriptors
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import traceback as traceback  # what programs that fail need
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from gem_sandbox import _child as child
from gem_sandbox import _namespaces as namespaces
from gem_sandbox import _program as program
from gem_sandbox import seccomp
from gem_sandbox._memory import Memory, inherited, tree
from gem_sandbox._plain import Plain
from gem_sandbox._priority import Priority
from gem_sandbox._root import Root
from gem_sandbox.messages import MESSAGE_BYTES, READY, Start
from gem_sandbox.serving import Job, Server, address_space, limit_files
from gem_sandbox.view import is_below

TUNING = ("PYTHONMALLOC", "GLIBC_TUNABLES")
"""Environment variables that are for the server alone."""
_NONE = (
    resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_NICE,
    resource.RLIMIT_RTPRIO,
)  # fmt: skip
"""Limits that leave programs nothing. The last two are of priorities."""


def main() -> None:
    """Serve the process whose end of the socket is the file descriptor that the command line names."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        settings: dict[str, Any] = json.loads(control.recv(MESSAGE_BYTES))
        plain = Plain(settings["readable"], settings["folder"]) if settings["backend"] == "limits" else None
        if plain is None:
            namespaces.enter()
        root = Root(settings["readable"])
        _settle(settings)
        control.send(_preload(settings["preload"]))
        _open_streams()
        gc.collect()
        gc.freeze()  # so that the programs' collections leave these pages shared
        # Without namespaces, spares would count among the processes that `Plain` limits.
        Server(control, _jobs(plain, root, settings["socket_bytes"]), spares=plain is None).serve()
        if plain is not None:
            plain.close()


def _jobs(plain: Plain | None, root: Root, socket_bytes: int) -> Callable[[bytes], Job]:
    mapped, may_fork = address_space(), plain.may_fork if plain else True
    memory = Memory(socket_bytes, inherited())

    def job(request: bytes) -> Job:
        start = Start.decoded(request)
        if start.guarded:
            root.prepare_guard()
        cell = plain.cell() if plain else namespaces.Cell(root)
        run = partial(child.run, child.Duty(start, mapped, may_fork, root.fixed), cell)
        look = partial(_look, Priority(), partial(memory.exceeded, limit=start.memory))
        return Job(cell, run, look, ends_if_stopped=start.shell)

    return job


def _look(
    priority: Priority, exceeded: Callable[[Iterable[int]], Iterator[bool]], roots: Iterable[int]
) -> Iterator[bool]:
    processes = tree(roots)
    yield from priority.adjust(processes)
    yield from exceeded(processes)


def _settle(settings: dict[str, Any]) -> None:
    limit_files()
    for none in _NONE:
        resource.setrlimit(none, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in TUNING:
        os.environ.pop(name, None)
    path = dict.fromkeys([*sys.path[1:], *settings["path"]])
    sys.argv[:] = [child.NAME]
    sys.path[:] = [one for one in path if any(is_below(one, folder) for folder in settings["readable"])]
    seccomp.prepare()


def _open_streams() -> None:
    """The programs' standard streams, once for all, as they are for files of the same kinds as theirs."""
    read, write = os.pipe()
    os.close(read)
    _become_standard(os.memfd_create("stdin"), write)
    program.open_streams()
    _become_standard(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))


def _become_standard(stdin: int, out: int) -> None:
    for standard, file in enumerate((stdin, out, out)):
        os.dup2(file, standard)
    os.close(stdin)
    os.close(out)


def _preload(names: list[str]) -> bytes:
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            problem = f"a module cannot be preloaded: {name}: {type(error).__name__}: {error}"[: MESSAGE_BYTES // 8]
            return f"{problem}. Is it installed where programs see it?".encode(errors="replace")
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]
    return READY
