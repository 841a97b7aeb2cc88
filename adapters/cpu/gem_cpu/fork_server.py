"""Ray's workers as forks of one process that has imported the framework: these imports take most of a short training.

Ray lets a driver name the command that starts its workers (`py_executable` of a runtime environment). Here it is
`fork_client.py`, which sends a worker's arguments, environment and standard files to the server. The server forks, and
the fork runs Ray's script for workers as a new Python would.

What is imported may read environment variables: Ray's key of the cluster, for example, or Python's seed of hashes. So
the server imports nothing before the first request, whose environment it takes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gem_cpu.fork_client import AGAIN, STARTED

CLIENT = Path(__file__).with_name("fork_client.py")
REQUEST_SECONDS = 30.0
"""A client sends its request at once; a client that was stopped in the middle must not stop the others."""
END_SECONDS = 10.0


def client_command(folder: str | Path) -> str:
    """The value of Ray's `py_executable` for the server of a folder. Without a server, it does what `python` does."""
    return shlex.join([sys.executable, "-I", "-S", str(CLIENT), str(_address(folder))])


@contextmanager
def fork_server(folder: str | Path, modules: Sequence[str]) -> Generator[None]:
    """Run a server for the workers of this process's Ray. On systems without pidfd, which are not Linux, do nothing.

    Args:
        folder: where the server's socket is.
        modules: what workers import.
    """
    if not hasattr(os, "pidfd_open"):
        yield
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(_address(folder)))
        listener.listen(128)
        number = listener.fileno()
        command = [sys.executable, "-m", "gem_cpu.fork_server", "wait", str(number), *modules]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number])
    try:
        yield
    finally:
        assert server.stdin is not None
        server.stdin.close()
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:  # it is still importing
            server.kill()
            server.wait()


def _address(folder: str | Path) -> Path:
    return Path(folder) / "forks"


@dataclass
class Worker:
    """What a client asks for."""

    arguments: list[str]
    """A script of Python, and its arguments."""
    environment: dict[str, str]
    folder: str
    blocked: list[int]
    """Signals."""
    niceness: int
    files: list[int]
    """Standard input, output and error."""

    @classmethod
    def receive(cls, connection: socket.socket) -> Worker:
        """Read a request.

        Raises:
            OSError: the client has ended, or sends nothing.
            ValueError: the client ended in the middle.
        """
        connection.settimeout(REQUEST_SECONDS)
        text, files, _, _ = socket.recv_fds(connection, 4, 3)
        length = int.from_bytes(text, "big")
        text = b""
        while len(text) < length and (part := connection.recv(length - len(text))):
            text += part
        return cls(**json.loads(text), files=files)

    def close(self) -> None:
        """Close the server's copies of the files."""
        for file in self.files:
            os.close(file)

    def run(self) -> None:
        """Run the script in this process, as if Python had been started with it."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        self.close()
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        os.setpriority(os.PRIO_PROCESS, 0, self.niceness)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.blocked)
        script = self.arguments[0]
        sys.argv[:] = self.arguments
        sys.path[0] = str(Path(script).parent)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # otherwise the same numbers in each fork; Python's own `random` does this by itself
        runpy.run_path(script, run_name="__main__")


class Server:
    """Answers clients until standard input ends, which is when the process that started the server ends."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._events = selectors.DefaultSelector()
        self._events.register(sys.stdin, selectors.EVENT_READ)
        self._events.register(listener, selectors.EVENT_READ)

    def next_environment(self) -> dict[str, str] | None:
        """Wait for a client, which has to ask once more. Returns its environment, and at the server's end nothing."""
        while not any(key.fileobj is sys.stdin for key, _ in self._events.select()):
            connection, worker = self._accept()
            with connection:
                if worker:
                    worker.close()
                    with contextlib.suppress(OSError):
                        connection.sendall(AGAIN)
                    return worker.environment
        return None

    def next_worker(self) -> Worker | None:
        """Fork workers. Returns in each fork, with its worker, and at the server's end, with nothing."""
        while True:
            for key, _ in self._events.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is not self._listener:
                    key.data()
                elif worker := self._fork(*self._accept()):
                    return worker

    def _accept(self) -> tuple[socket.socket, Worker | None]:
        connection, _ = self._listener.accept()
        try:
            return connection, Worker.receive(connection)
        except (OSError, ValueError):
            return connection, None

    def _fork(self, connection: socket.socket, worker: Worker | None) -> Worker | None:
        if not worker or _pythons_own(worker.environment) != _pythons_own(os.environ):
            if worker:
                worker.close()
            connection.close()  # without an answer, the client becomes the worker
            return None
        pid = os.fork()
        if not pid:
            self._close()
            connection.close()
            return worker
        worker.close()
        process = os.pidfd_open(pid)
        self._events.register(process, selectors.EVENT_READ, lambda: self._reap(pid, process, connection))
        self._events.register(connection, selectors.EVENT_READ, lambda: self._kill(process, connection))
        with contextlib.suppress(OSError):  # the client is gone: the next event
            connection.sendall(STARTED)
        return None

    def _kill(self, process: int, connection: socket.socket) -> None:
        """Ray has ended the client, and means the worker."""
        self._events.unregister(connection)
        signal.pidfd_send_signal(process, signal.SIGKILL)

    def _reap(self, pid: int, process: int, connection: socket.socket) -> None:
        _, status = os.waitpid(pid, 0)
        self._events.unregister(process)
        os.close(process)
        with contextlib.suppress(KeyError):
            self._events.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        connection.close()

    def _close(self) -> None:
        """Close in a fork what is the server's."""
        for key in [*self._events.get_map().values()]:
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            elif isinstance(key.fileobj, int):
                os.close(key.fileobj)
        self._events.close()


def wait(listener: socket.socket, modules: Sequence[str]) -> None:
    """Wait for the first request, and start anew with its environment, to serve."""
    environment = Server(listener).next_environment()
    if environment is not None:
        listener.set_inheritable(True)
        command = [sys.executable, "-m", "gem_cpu.fork_server", "serve", str(listener.fileno()), *modules]
        os.execve(sys.executable, command, environment)


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
    """Import modules, and fork workers."""
    for module in modules:
        importlib.import_module(module)
    if threads := _threads():
        sys.exit(f"Ray's workers are not forked: a fork would lack the threads {threads} of {' '.join(modules)}")
    gc.collect()
    gc.freeze()  # no collection looks at what was imported, so forks keep sharing its memory
    with listener:
        worker = Server(listener).next_worker()
    if worker:
        worker.run()


def _pythons_own(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python reads when it starts."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def _threads() -> list[str]:
    """The names of other threads of this process than the main thread, without those that forks start again."""
    tasks = Path("/proc/self/task").iterdir()
    names = [(task / "comm").read_text().strip() for task in tasks if task.name != str(os.getpid())]
    return [name for name in names if name != "jemalloc_bg_thd"]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the driver, which ends the server
    does = {"wait": wait, "serve": serve}[sys.argv[1]]
    does(socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
