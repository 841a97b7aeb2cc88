"""A program that starts a server and ends when the server or the client ends.

    python -I -S guard.py COMMAND [ARGUMENT ...]

The server has this process's standard streams and a process group of its own, which is killed as soon as the server
ends, the client closes the other end of standard output or dies, or this process gets a signal to end. The program
imports little, to start quickly.
"""

import os
import select
import signal
import sys
from types import FrameType

NOT_STARTED = 127
"""Exit status if the command cannot be run, as in shells."""
SIGNALLED = 128
"""A server killed by signal N gives the exit status 128 + N, as in shells."""


def main(command: list[str]) -> int:
    """Run a command; returns its exit status."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _wake)
    try:
        server = os.posix_spawnp(command[0], command, os.environ, setpgroup=0, setsigdef=[signal.SIGPIPE])
    except OSError as error:
        print(f"cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(sys.stdout, 0)  # reports when the reader is gone
    poll.poll()
    return _end(server)


def _wake(number: int, frame: FrameType | None) -> None:
    """Does nothing: the byte that comes with a signal wakes the poll."""


def _end(server: int) -> int:
    """Kill the group and return how the server ended. Its process id stays reserved until the wait."""
    alive = os.waitid(os.P_PID, server, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    try:  # noqa: SIM105 - contextlib would take long to import
        os.killpg(server, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    if alive or status < 0:
        return SIGNALLED + (signal.SIGKILL if alive else -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
