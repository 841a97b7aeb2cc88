"""Environments in processes, for those that compute, hang or crash."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gem_core.env import Env
from gem_core.errors import EnvError, FailureKind
from gem_core.interrupts import uninterrupted
from gem_core.vector.calls import Call, Failure, Reset
from gem_core.vector.pool import PooledVectorEnv, Worker
from gem_core.vector.worker import HEADER, READY, Home, Marker, Setup, unpacked

START_SECONDS = 300.0
"""How long a worker may take to start, the imports of its environments included."""
LOOK_SECONDS = 1.0
"""How often to look after workers that say nothing: a process that one of them forked may keep its socket open."""
_CHUNK = 1 << 20
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gem_core.vector.worker import main; main()"


class ProcessWorker(Worker):
    """A fresh interpreter in a session of its own: it shares no lock with its parent, and Ctrl-C does not reach it.

    Neither `fork` nor `multiprocessing`: scripts need no `if __name__ == "__main__"`, and classes of a notebook or of
    the main script travel by value.

    Args:
        slots: those whose environments live here.
        setup: what it is told first.
    """

    def __init__(self, slots: Sequence[int], setup: Setup) -> None:
        super().__init__(slots)
        self.socket, theirs = socket.socketpair()
        self.ready = False
        self.began = time.monotonic()
        lifeline, self._lifeline = os.pipe()
        with theirs, tempfile.TemporaryFile() as shared:
            self._marker = Marker(shared.fileno())
            self._marker.clear()
            files = (theirs.fileno(), lifeline, shared.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), json.dumps(files)],
                stdin=subprocess.DEVNULL,
                pass_fds=files,
                start_new_session=True,
                # Otherwise an environment that goes by the order of a set plays differently in each worker.
                env={"PYTHONHASHSEED": "0", **os.environ},
            )
        os.close(lifeline)
        self.socket.setblocking(False)
        self._unsent = bytearray()
        self._received = bytearray()
        self._send(setup)

    def submit(self, calls: Mapping[int, Call]) -> None:
        self._send(calls)

    def running(self) -> tuple[int, float] | None:
        return self._marker.get()

    @property
    def opening(self) -> bool:
        """Whoever was at work when it was lost had played its turn, and was opening its next episode."""
        return self._marker.opening

    def end(self) -> None:
        self._send(None)

    def join(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        self.socket.setblocking(True)
        self.socket.settimeout(max(timeout, 0.001))
        with contextlib.suppress(OSError):
            self.socket.sendall(self._unsent)
            while self.socket.recv(_CHUNK):  # it may have more to say than the socket holds
                self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(deadline - time.monotonic(), 0.001))
            self.kill()  # whatever its environments started
            return True
        return False

    def kill(self) -> None:
        if self._lifeline >= 0:
            self.stop()
            os.close(self._lifeline)
            self._lifeline = -1
            self.socket.close()

    def stop(self) -> None:
        """End the process and all that it started; what it had sent can still be read."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def sending(self) -> bool:
        """Something is left that the socket had no room for."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Send what the socket has room for."""
        try:
            while self._unsent:
                sent = self.socket.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:  # it died; reading tells
            self._unsent.clear()

    def messages(self) -> Iterator[Any]:
        """What it has sent.

        Raises:
            EOFError: after the last message of a worker that is gone.
        """
        gone = self._read()
        while len(self._received) >= HEADER.size:
            end = HEADER.size + HEADER.unpack_from(self._received)[0]
            if len(self._received) < end:
                break
            message = pickle.loads(memoryview(self._received)[HEADER.size : end])
            del self._received[:end]
            yield message
        if gone:
            raise EOFError

    def cause_of_death(self) -> str:
        """How the process ended, in words."""
        try:
            code = self.process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()
            return "closed its connection"
        if code >= 0:
            return f"ended with code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"was killed by {name}" + (", for example for want of memory" if name == "SIGKILL" else "")

    def _read(self) -> bool:
        try:
            while chunk := self.socket.recv(_CHUNK):
                self._received += chunk
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _send(self, message: Any) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._unsent += HEADER.pack(len(data)) + data
        self.flush()


class ProcessVectorEnv(PooledVectorEnv[ProcessWorker]):
    """One process per core unless `workers` says otherwise; each serves several environments, one after the other.

    Args:
        homes: how to build the environment of each slot.
        builders: builds the environments, per id.
        args, settings: of `PooledVectorEnv`.

    Raises:
        EnvError: something cannot be pickled, or a worker could not start.
    """

    def __init__(
        self, homes: Sequence[Home], builders: Mapping[str, Callable[[], Env]], *args: Any, **settings: Any
    ) -> None:
        self._homes = homes
        self._builders = pickled_builders(builders)
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken_by = socket.socketpair()
        self._waker.setblocking(False)
        self._woken_by.setblocking(False)
        self._selector.register(self._woken_by, selectors.EVENT_READ)
        self._next_look = 0.0
        try:
            super().__init__(*args, **settings)
            while not all(worker.ready for worker in self._workers):
                self._poll(1, LOOK_SECONDS)
        except BaseException:
            self.close()
            raise

    def _start_worker(self, slots: Sequence[int]) -> ProcessWorker:
        worker = ProcessWorker(slots, make_setup(self._homes, self._builders, slots))
        self._selector.register(worker.socket, selectors.EVENT_READ, worker)
        self._watch(worker)  # a large setup does not fit the socket at once
        return worker

    def _submit(self, calls: Mapping[int, Call]) -> None:
        super()._submit(calls)
        for worker in self._workers:
            if worker.sending:
                self._watch(worker)

    def _poll(self, wanted: int, timeout: float | None) -> None:
        events = self._selector.select(LOOK_SECONDS if timeout is None else min(timeout, LOOK_SECONDS))
        with uninterrupted():
            self._serve(events)

    def _serve(self, events: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, event in events:
            worker: ProcessWorker | None = key.data
            if worker is None:
                self._woken_by.recv(_CHUNK)
                continue
            if event & selectors.EVENT_WRITE:
                worker.flush()
                self._watch(worker)
            if event & selectors.EVENT_READ:
                self._receive(worker)
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            self._check_workers()

    def _check_workers(self) -> None:
        for worker in list(self._workers):
            if worker.process.poll() is not None:
                self._receive(worker)
                if worker in self._workers:  # something that it left behind keeps its socket open
                    self._bury(worker)
            elif not worker.ready and time.monotonic() - worker.began > START_SECONDS:
                raise EnvError(
                    f"a worker process did not start within {START_SECONDS:g} s; look at what its environments import"
                )

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is full of calls to wake up already, or closed
            self._waker.send(b"!")

    def _watch(self, worker: ProcessWorker) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.sending else 0)
        self._selector.modify(worker.socket, events, worker)

    def _receive(self, worker: ProcessWorker) -> None:
        try:
            for message in worker.messages():
                self._take_message(worker, message)
        except EOFError:
            self._bury(worker)

    def _take_message(self, worker: ProcessWorker, message: Any) -> None:
        if isinstance(message, Failure):
            raise EnvError(f"a worker process could not build its environments: {message.error}\n{message.traceback}")
        if message == READY:
            worker.ready = True
            return
        for slot, outcome in unpacked(message):
            self._arrive(slot, outcome)

    def _bury(self, worker: ProcessWorker) -> None:
        cause = worker.cause_of_death()
        if not worker.ready:
            raise EnvError(f"a worker process {cause} before it could start; its own output says more")
        running = worker.running()
        blamed = running[0] if running else None
        self._lose(worker, FailureKind.LOST, f"ChildProcessError: its process {cause}", blamed)

    def _lose(self, worker: ProcessWorker, kind: FailureKind, error: str, blamed: int | None) -> None:
        worker.stop()
        with contextlib.suppress(EOFError):
            for message in worker.messages():  # what it had sent before it was lost
                self._take_message(worker, message)
        with contextlib.suppress(KeyError):
            self._selector.unregister(worker.socket)
        if blamed is not None and worker.opening and not isinstance(self._calls.get(blamed), Reset):
            blamed = None  # its answer was lost; a replay sends it before it opens the next episode
        super()._lose(worker, kind, error, blamed)

    def _shut_down(self) -> None:
        super()._shut_down()
        self._selector.close()
        self._waker.close()
        self._woken_by.close()


def pickled_builders(builders: Mapping[str, Callable[[], Env]]) -> dict[str, bytes]:
    """The builders for another process, classes and functions of the main script by value.

    Raises:
        EnvError: one cannot be pickled.
    """
    hint = "Its class, keyword arguments and wrappers must be picklable; open files and connections in its reset()."
    return {env_id: _by_value(build, env_id, hint) for env_id, build in builders.items()}


def _by_value(thing: Any, name: str, hint: str) -> bytes:
    import cloudpickle  # pyright: ignore[reportMissingTypeStubs]

    try:
        return cloudpickle.dumps(thing)  # pyright: ignore[reportUnknownMemberType]
    except Exception as error:
        raise EnvError(f"{name} cannot be sent to a worker process: {type(error).__name__}: {error}. {hint}") from error


def make_setup(homes: Sequence[Home], builders: Mapping[str, bytes], slots: Sequence[int]) -> Setup:
    """What a worker with these environments needs. Raises as `pickled_builders`."""
    from gem_core.plugins import manager

    mine = {slot: homes[slot] for slot in slots}
    wanted = {home.env_id for home in mine.values()}
    return Setup(
        mine,
        {env_id: data for env_id, data in builders.items() if env_id in wanted},
        manager.enabled,
        _by_value(manager.configs, "what plugins were told of the run", "Its settings must be picklable."),
    )
