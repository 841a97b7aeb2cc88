"""A program that runs a PostgreSQL server for as long as its owner lives.

    python -I -S keeper.py FOLDER USER COMMAND [ARGUMENT ...]

The owner holds the other end of standard input. When the owner closes it or dies, or the server ends, the server is
stopped and the folder is removed. USER is the numbers of a user and a group, as in 101:104,
or `-` for the owner's own: the server refuses root.
"""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

_STOP_SECONDS = 20.0
"""Seconds that the server may take to stop. It stops at once, but on a busy machine it may have to wait to run."""
_PR_SET_PDEATHSIG = 1
_LIMITS = {resource.RLIMIT_AS: 1 << 30, resource.RLIMIT_FSIZE: 512 << 20}
"""Bytes of address space of each process of the server, and of each file. A statement that needs more fails."""
LOG_BYTES = 1 << 16
"""Size of the server's log. A policy can make its output long, for example by statements that run out of memory."""


def main(folder: str, user: str, command: list[str]) -> int:
    """Run the server; returns its exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: _stop(server))
    prctl = ctypes.CDLL(None).prctl
    identity: dict[str, object] = {}
    if user != "-":
        number, _, group = user.partition(":")
        identity = {"user": int(number), "group": int(group), "extra_groups": []}
    # If this process is killed, the kernel stops the server. What follows a change of user keeps that wish.
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **identity,  # type: ignore[arg-type]
        preexec_fn=lambda: _confine(prctl),
    )
    assert server.stdout is not None
    log = threading.Thread(target=_log, args=(server.stdout.fileno(),), daemon=True)
    log.start()
    threading.Thread(target=_watch, args=(server,), daemon=True).start()
    try:
        return server.wait()
    finally:
        log.join(1.0)  # a process of the server may be left that says nothing
        shutil.rmtree(folder, ignore_errors=True)


def _log(output: int) -> None:
    """Keep the beginning, which has the reason if the server does not start, and discard the rest."""
    left = LOG_BYTES
    while part := os.read(output, LOG_BYTES):
        os.write(2, part[:left])
        left -= min(left, len(part))


def _confine(prctl: Callable[[int, int], int]) -> None:
    prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
    for kind, most in _LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _watch(server: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):
        pass
    _stop(server)
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """An immediate shutdown: nothing is saved, and the shared memory is given back, which a kill would leave."""
    server.send_signal(signal.SIGQUIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
