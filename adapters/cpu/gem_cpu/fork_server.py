"""Ray's workers as forks of one process that has imported the framework, which takes seconds in each worker otherwise.

Ray lets a driver name the command that starts its workers (`py_executable` of a runtime environment). Here it is
`fork_client.py`, which sends a worker's arguments, environment and standard files to the server. The server forks, and
the fork runs Ray's script for workers as a new Python would. Forks outlive the server: Ray ends them.

What is imported may read environment variables: Ray's key of the cluster, for example. So the server imports nothing
before the first request, whose environment it takes. A worker with other variables for Python itself is not forked.
Forks share the seed of hashes, and what the imports have computed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
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
from types import SimpleNamespace
from typing import Any

from gem_cpu.fork_client import AGAIN, CODE_BYTES, STARTED

CLIENT = Path(__file__).with_name("fork_client.py")
REQUEST_SECONDS = 30.0
"""A client sends its request at once; a client that was stopped in the middle must not stop the others."""


def client_command(folder: str | Path) -> str:
    """The value of Ray's `py_executable` for the server of a folder. Without a server, it does what `python` does."""
    return shlex.join([sys.executable, "-I", "-S", str(CLIENT), str(_address(folder))])


@contextmanager
def fork_server(folder: str | Path, modules: Sequence[str]) -> Generator[None]:
    """Run a server for the workers of this process's Ray. On systems without pidfd, do nothing.

    Args:
        folder: where the server's socket is.
        modules: what workers import.
    """
    if not _has_pidfd():
        yield
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(_address(folder)))
        listener.listen(128)
        number = listener.fileno()
        server = subprocess.Popen(_server_command("wait", number, modules), stdin=subprocess.PIPE, pass_fds=[number])
    with server:
        try:
            yield
        finally:
            server.kill()


def _address(folder: str | Path) -> Path:
    return Path(folder) / "forks"


def _server_command(does: str, listener: int, modules: Sequence[str]) -> list[str]:
    # Not `-m`: where Python imports this module when it starts, `-m` warns, and runs the module a second time.
    code = "import sys; from gem_cpu.fork_server import main; main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])"
    return [sys.executable, "-c", code, does, str(listener), *modules]


def _has_pidfd() -> bool:
    """Some systems have the function, and refuse its calls."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


@dataclass
class Worker:
    """What a client asks for."""

    arguments: list[str]
    """A script of Python, and its arguments."""
    environment: dict[str, str]
    folder: str
    leads_group: bool
    """Whether the worker leads a process group."""
    niceness: int
    open_files: tuple[int, int]
    """The soft and the hard limit of open files."""
    blocked: list[int]
    """Signals."""
    ignores_interrupts: bool
    files: list[int]
    """Standard input, output and error."""

    @classmethod
    def receive(cls, connection: socket.socket) -> Worker | None:
        """Read a request. Returns nothing if the client has ended, or stopped."""
        connection.settimeout(REQUEST_SECONDS)
        files: list[int] = []
        try:
            text, files, _, _ = socket.recv_fds(connection, 4, 3)
            length = int.from_bytes(text, "big")
            text = b""
            while len(text) < length and (part := connection.recv(length - len(text))):
                text += part
            return cls(**json.loads(text), files=files)
        except (OSError, ValueError):
            _close_all(files)
            return None

    def close(self) -> None:
        """Close the server's copies of the files."""
        _close_all(self.files)

    def run(self, path_entry: str) -> None:
        """Run the script in this process, as if Python had been started with it.

        Args:
            path_entry: the server's own entry of `sys.path`, which the script's folder replaces.
        """
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        self.close()
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        if self.leads_group:
            os.setpgid(0, 0)
        os.setpriority(os.PRIO_PROCESS, 0, self.niceness)
        resource.setrlimit(resource.RLIMIT_NOFILE, self.open_files)
        signal.signal(signal.SIGINT, signal.SIG_IGN if self.ignores_interrupts else signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.blocked)
        script = self.arguments[0]
        sys.argv[:] = self.arguments
        sys.path[sys.path.index(path_entry)] = str(Path(script).parent)
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
        return connection, Worker.receive(connection)

    def _fork(self, connection: socket.socket, worker: Worker | None) -> Worker | None:
        pid = None
        if worker and _pythons_own(worker.environment) == _pythons_own(os.environ):
            with contextlib.suppress(OSError):  # no memory, or too many processes
                pid = os.fork()
        if pid == 0:
            self._close()
            connection.close()
            return worker
        if worker:
            worker.close()
        if pid is None:
            connection.close()  # without an answer, the client becomes the worker
            return None
        process = os.pidfd_open(pid)
        self._events.register(process, selectors.EVENT_READ, lambda: self._reap(pid, process, connection))
        self._events.register(connection, selectors.EVENT_READ, lambda: self._kill(process, connection))
        with contextlib.suppress(OSError):  # the client is gone: the next event
            connection.sendall(STARTED)
        return None

    def _kill(self, process: int, connection: socket.socket) -> None:
        """Ray has ended the client, and means the worker."""
        if connection.fileno() >= 0:  # otherwise the worker has just ended, too
            self._events.unregister(connection)
            signal.pidfd_send_signal(process, signal.SIGKILL)

    def _reap(self, pid: int, process: int, connection: socket.socket) -> None:
        _, status = os.waitpid(pid, 0)
        self._events.unregister(process)
        os.close(process)
        with contextlib.suppress(KeyError):
            self._events.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(CODE_BYTES, "big", signed=True))
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
        os.execve(sys.executable, _server_command("serve", listener.fileno(), modules), environment)


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
    """Import modules, and fork workers."""
    path_entry = sys.path[0]
    # Ray finds the memory of the title only before vLLM's import, and before the environment changes.
    importlib.import_module("ray._raylet").setproctitle("ray::ForkServer")
    with _ids_of_classes_from_the_system():
        for module in modules:
            importlib.import_module(module)
    if threads := _threads():
        sys.exit(f"Ray's workers are not forked: a fork would lack the threads {threads} of {' '.join(modules)}")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # otherwise each fork would write what the imports have written
    try:
        if _id_of_a_fork() == _id_of_a_fork():
            sys.exit(f"Ray's workers are not forked: all forks would make the same ids after {' '.join(modules)}")
    except OSError as error:
        sys.exit(f"Ray's workers are not forked: {error}")
    gc.collect()
    gc.freeze()  # no collection looks at what was imported, so forks keep sharing its memory
    with listener:
        worker = Server(listener).next_worker()
    if worker:
        worker.run(path_entry)


@contextmanager
def _ids_of_classes_from_the_system() -> Generator[None]:
    """Let classes of actors have ids that do not come from Ray's generator.

    Ray seeds that generator at the first id. If it had made one before a fork, all forks would make the same ids, and
    a worker that starts at the same time as another would crash: both put an object with the same id into Ray's store.
    """
    actor: Any = importlib.import_module("ray.actor")
    kind = actor.ActorClassID
    actor.ActorClassID = SimpleNamespace(from_random=lambda: kind(os.urandom(kind.size())))
    try:
        yield
    finally:
        actor.ActorClassID = kind


def _id_of_a_fork() -> bytes:
    """An id of Ray, made in a process that ends at once.

    Raises:
        OSError: there are too many processes, or the process made no id.
    """
    reader, writer = os.pipe()
    with open(reader, "rb") as file:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                os.write(writer, importlib.import_module("ray").ObjectRef.from_random().binary())
            os._exit(0)
        os.close(writer)
        made = file.read()
    os.waitpid(pid, 0)
    if not made:
        raise OSError("a fork could make no id of Ray")
    return made


def _pythons_own(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python reads when it starts."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def _threads() -> list[str]:
    """The names of other threads of this process than the main thread, without those that forks start again."""
    names: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names += [(task / "comm").read_text().strip()] if task.name != str(os.getpid()) else []
    return [name for name in names if name != "jemalloc_bg_thd"]


def _close_all(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)


def main(does: str, listener: int, modules: Sequence[str]) -> None:
    """Be a server.

    Args:
        does: what the server does, "wait" or "serve".
        listener: the number of the listener's file.
        modules: what workers import.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the driver, which ends the server
    os.set_inheritable(listener, False)
    {"wait": wait, "serve": serve}[does](socket.socket(fileno=listener), modules)
