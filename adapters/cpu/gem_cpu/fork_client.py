"""A script by which Ray starts a worker in the fork server; see `fork_server`.

    python -I -S fork_client.py ADDRESS SCRIPT ARGUMENTS...

The script waits for the end of the worker. Without a server that answers, the script becomes the worker itself.
"""

import json
import os
import resource
import signal
import socket
import sys

STARTED = b"+"
"""The server's answer once the worker runs. At the worker's end, the server sends the exit code, `CODE_BYTES`."""
AGAIN = b"?"
"""The server's answer if the request is to be sent once more, on a new connection."""
CODE_BYTES = 4


def main(address: str, worker: list[str]) -> int:
    """Run a worker to its end.

    Args:
        address: the path of the server's socket.
        worker: a script of Python and its arguments.

    Returns:
        The exit code. It is 1 if the server ended before the worker.
    """
    answer = AGAIN
    while answer == AGAIN:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                answer = ask(connection, address, worker)
            except OSError:
                answer = b""
            if answer == STARTED:
                return exit_code(connection)
    os.execv(sys.executable, [sys.executable, *worker])


def ask(connection: socket.socket, address: str, worker: list[str]) -> bytes:
    """Ask for a worker. Returns the server's answer, which is empty without a server, or if it forks no such worker.

    Raises:
        OSError: there is no server, or it has ended.
    """
    request = {
        "arguments": worker,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        # What Ray sets for its workers.
        "leads_group": os.getpgrp() == os.getpid(),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "blocked": [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "ignores_interrupts": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    }
    text = json.dumps(request).encode()
    connection.connect(address)
    socket.send_fds(connection, [len(text).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(text)
    return connection.recv(1)


def exit_code(connection: socket.socket) -> int:
    """Wait for the end of the worker."""
    try:
        text = connection.recv(CODE_BYTES)
    except OSError:
        text = b""
    code = int.from_bytes(text, "big", signed=True) if len(text) == CODE_BYTES else 1
    return code if code >= 0 else 128 - code  # as in a shell, for a worker that a signal ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
