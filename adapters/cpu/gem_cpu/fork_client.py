"""A script by which Ray starts a worker in the fork server; see `fork_server`.

    python -I -S fork_client.py ADDRESS SCRIPT ARGUMENTS...

The script waits for the end of the worker. Without a server that answers, the script becomes the worker itself.
"""

import json
import os
import signal
import socket
import sys

STARTED = b"+"
"""The server's answer once the worker runs. At the worker's end, the server sends the exit code, 4 bytes."""
AGAIN = b"?"
"""The server's answer if the request is to be sent once more, on a new connection."""


def main(address: str, worker: list[str]) -> int:
    """Run a worker to its end.

    Args:
        address: the path of the server's socket.
        worker: a script of Python and its arguments.

    Returns:
        The exit code.
    """
    answer = AGAIN
    while answer == AGAIN:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                answer = ask(connection, address, worker)
            except OSError:
                answer = b""
            if answer == STARTED:
                code = int.from_bytes(connection.recv(4), "big", signed=True)
                return code if code >= 0 else 128 - code  # as in a shell, for a worker that a signal ended
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
        # Ray blocks Ctrl-C in its workers, and gives them a lower priority.
        "blocked": [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    }
    text = json.dumps(request).encode()
    connection.connect(address)
    socket.send_fds(connection, [len(text).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(text)
    return connection.recv(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
