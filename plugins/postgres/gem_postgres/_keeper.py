"""A program that runs a PostgreSQL server for as long as its owner lives.

    python -I -S keeper.py FOLDER USER COMMAND [ARGUMENT ...]

The owner holds the other end of standard input. When the owner closes it or dies, or the server ends, the server is
stopped and the folder is removed. USER is the numbers of a user and a group, as in 101:104,
or `-` for the owner's own: the server refuses root.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

_STOP_SECONDS = 20.0
"""Seconds that the server may take to stop. It stops at once, but on a busy machine it may have to wait to run."""
_PR_SET_PDEATHSIG = 1


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
        **identity,  # type: ignore[arg-type]
        preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT),
    )
    threading.Thread(target=_watch, args=(server,), daemon=True).start()
    try:
        return server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
