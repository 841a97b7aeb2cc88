"""Environments in processes, for those that compute, hang or crash."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from gem_core.env import Env
from gem_core.errors import EnvError, FailureKind
from gem_core.interrupts import uninterrupted
from gem_core.upstream import entry_points_of
from gem_core.vector import _wire as wire
from gem_core.vector._calls import CallOutcome, EnvCall, FailedCall, Replay, Reset, Transition
from gem_core.vector._pool import PooledVectorEnv, Worker
from gem_core.vector._worker import CALLS, RAN_OUT, MarkerReader, Setup, SlotConfig
from gem_core.waiting import MAX_SECONDS

START_SECONDS = 300.0
"""How long a worker may take to start, the imports of its environments included."""
LOOK_SECONDS = 1.0
"""How often to look after workers that say nothing: a process that one of them forked may keep its socket open."""
SILENCE_SECONDS = 10.0
"""How much later than its calls' time limits allow a worker may answer, before it counts as one that hangs."""
KILL_SECONDS = 5.0
"""How long a killed process may take to be gone. One that is traced, or waits for a disk, is late, but runs no code."""
_CHUNK = 1 << 20
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gem_core.vector._worker import main; main()"


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
        self.trusted = True
        """All that it said so far were answers; what comes after anything else is not read."""
        self.began = time.monotonic()
        self.silent_looks = 0
        """How often the vector looked for an answer to what is awaited, since the last one came."""
        self.awaited: dict[int, None] = {}
        """The slots whose answers are to come, in the order in which they were asked. What the process itself says of
        who is at work is believed of these only."""
        lifeline, self._lifeline = os.pipe()
        with theirs, tempfile.NamedTemporaryFile(buffering=0) as shared, contextlib.ExitStack() as output:
            self._marker = MarkerReader(shared.name)
            files = (theirs.fileno(), lifeline, shared.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), json.dumps(files)],
                stdin=subprocess.DEVNULL,
                stdout=output.enter_context(_opened_anew(1)),
                stderr=output.enter_context(_opened_anew(2)),
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

    def submit(self, calls: Mapping[int, EnvCall]) -> None:
        if not self.awaited:
            self.silent_looks = 0
        self.awaited.update(dict.fromkeys(calls))
        self._send(calls)

    def answered(self, slot: int) -> None:
        """Its answer has come."""
        self.awaited.pop(slot)
        self.silent_looks = 0

    def opens_next(self, slot: int) -> None:
        """Its answer ended an episode, so the opening of the next one is to come at once."""
        self.awaited = {slot: None, **self.awaited}

    def running(self) -> tuple[int, float] | None:
        at_work = self._marker.get()
        return at_work if at_work is not None and at_work[0] in self.awaited else None

    @property
    def at_work(self) -> int | None:
        """The slot that is at work, or was when this worker was lost, as far as the worker says."""
        running = self.running()
        return None if running is None else running[0]

    @property
    def waiting(self) -> bool:
        """It says that the slot at work waits for its turn at something shared."""
        return self._marker.waiting

    @property
    def opening(self) -> bool:
        """Whoever was at work when it was lost says that it had played its turn, and was opening its next episode."""
        return self._marker.opening

    @property
    def killed(self) -> bool:
        """It was given up, and has a successor or is not needed any more."""
        return self._lifeline < 0

    def end(self) -> None:
        self._send(None)

    def join(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        with contextlib.suppress(OSError):
            self.socket.settimeout(max(timeout, 0.001))
            self.socket.sendall(self._unsent)
            # It may have more to say than the socket holds, and never stop.
            while self.socket.recv(_CHUNK) and (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
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
            self._marker.close()

    def stop(self) -> None:
        """End the process and all that it started; what it had sent can still be read."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_SECONDS)

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

    def frames(self) -> Iterator[list[wire.Answer]]:
        """The answers that it has sent, as they came together.

        Raises:
            EOFError: after the last answer of a worker that is gone.
            wire.Garbage: what it sent is none.
        """
        reading = True
        while reading:
            reading = self._read()
            while len(self._received) >= wire.HEADER.size:
                end = wire.HEADER.size + wire.frame_length(self._received)
                if len(self._received) < end:
                    break
                with memoryview(self._received)[wire.HEADER.size : end] as data:
                    answers = wire.unpacked(data)
                del self._received[:end]
                yield answers

    def cause_of_death(self) -> str:
        """How the process ended, in words."""
        try:
            code = self.process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()
            return "closed its connection"
        if code == RAN_OUT:
            return "ran out of memory, descriptors or threads"
        if code >= 0:
            return f"ended with code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"was killed by {name}" + (", for example for want of memory" if name == "SIGKILL" else "")

    def _read(self) -> bool:
        """Whether something came; raises `EOFError` if nothing can come any more."""
        try:
            chunk = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            raise EOFError
        self._received += chunk
        return True

    def _send(self, message: Any) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._unsent += CALLS.pack(len(data)) + data
        self.flush()


class ProcessVectorEnv(PooledVectorEnv[ProcessWorker]):
    """One process per core unless `workers` says otherwise; each serves several environments, one after the other.

    What a worker says is checked, as an environment can write to all that its process has open. Who ended a worker, or
    keeps it from answering, is certain only of an environment that has the worker to itself. So the call that is
    suspected is made again in a process of its own, and its environment has failed if that process is lost, too. The
    environment returns to its neighbors with its next episode.

    Args:
        homes: how to build the environment of each slot.
        builders: builds the environments, per id.
        args, settings: of `PooledVectorEnv`.

    Raises:
        EnvError: something cannot be pickled, or a worker could not start.
    """

    def __init__(
        self, homes: Sequence[SlotConfig], builders: Mapping[str, Callable[[], Env]], *args: Any, **settings: Any
    ) -> None:
        self._homes = homes
        self._builders = pickled_builders(builders)
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken_by = socket.socketpair()
        self._waker.setblocking(False)
        self._woken_by.setblocking(False)
        self._selector.register(self._woken_by, selectors.EVENT_READ)
        self._next_look = 0.0
        self._suspicions: dict[int, FailedCall] = {}
        """Of a slot in a process of its own: the failure that brought it there."""
        for entry in entry_points_of("gem_core.processes"):
            entry.load()()  # cleans up after this process
        try:
            super().__init__(*args, **settings)
            self._shared_home = tuple(self._home)
            while not all(worker.ready for worker in self._workers.values()):
                self._poll(1, LOOK_SECONDS)
        except BaseException:
            self.close()
            raise

    def _start_worker(self, slots: Sequence[int]) -> ProcessWorker:
        return self._watched(make_setup(self._homes, self._builders, slots), slots)

    def _watched(self, setup: Setup, slots: Sequence[int]) -> ProcessWorker:
        worker = ProcessWorker(slots, setup)
        self._selector.register(worker.socket, selectors.EVENT_READ, worker)
        self._watch(worker)  # a large setup does not fit the socket at once
        return worker

    def _submit(self, calls: Mapping[int, EnvCall]) -> None:
        for slot, call in calls.items():
            if self._home[slot] < 0:
                self._settle(slot, call)
        super()._submit(calls)
        for worker in self._workers.values():
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
            if worker.killed:  # while the answers of others were taken
                continue
            if event & selectors.EVENT_WRITE:
                worker.flush()
                self._watch(worker)
            if event & selectors.EVENT_READ:
                self._receive(worker)
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            for worker in [*self._workers.values()]:
                if not worker.killed:
                    self._check(worker)

    def _check(self, worker: ProcessWorker) -> None:
        if worker.process.poll() is not None:
            self._receive(worker)
            if not worker.killed:  # something that it left behind keeps its socket open
                self._bury(worker)
        elif not worker.ready and time.monotonic() - worker.began > START_SECONDS:
            raise EnvError(
                f"a worker process did not start within {START_SECONDS:g} s; look at what its environments import"
            )
        elif worker.ready and worker.awaited:
            worker.silent_looks += 1
            if (limit := self.failures.timeout) and worker.silent_looks * LOOK_SECONDS > self._patience(worker, limit):
                self._lose(worker, FailureKind.TIMEOUT, f"TimeoutError: no answer within {limit:g} s", worker.at_work)

    def _patience(self, worker: ProcessWorker, limit: float) -> float:
        """Seconds within which a worker gives an answer, whatever it says of who is at work.

        An answer that was given in time may have to wait for Python's lock during the call that follows, and a replay
        has the time of each of its turns.
        """
        calls = (self._calls[slot] for slot in worker.awaited)
        turns = max(len(call.actions) + 1 if isinstance(call, Replay) else 0 for call in calls)
        return (
            limit * (turns + (1 if self._home[worker.slots[0]] < 0 else 2))
            + SILENCE_SECONDS
            + (MAX_SECONDS if worker.waiting else 0.0)
        )

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is full of calls to wake up already, or closed
            self._waker.send(b"!")

    def _watch(self, worker: ProcessWorker) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.sending else 0)
        self._selector.modify(worker.socket, events, worker)

    def _receive(self, worker: ProcessWorker) -> None:
        try:
            for answers in worker.frames():
                self._take_answers(worker, answers)
                if worker.killed:  # its slot plays the next episode elsewhere
                    return
        except EOFError:
            self._bury(worker)
        except wire.Garbage as garbage:
            if not worker.ready:
                raise EnvError(f"a worker process said what is no answer before it could start: {garbage}") from None
            worker.trusted = False
            error = f"ChildProcessError: its process said what is no answer: {garbage}"
            self._lose(worker, FailureKind.LOST, error, worker.at_work)

    def _take_answers(self, worker: ProcessWorker, answers: list[wire.Answer]) -> None:
        if not worker.ready:
            worker.ready = _began(answers)
            return
        if not answers:
            raise wire.Garbage("a frame without an answer")
        for slot, outcome in answers:
            if worker.killed:  # by the answer before: its slot plays the next episode elsewhere
                return
            if slot not in worker.awaited:
                raise wire.Garbage("an answer that nobody asked for")
            if not self._fits(slot, outcome):
                raise wire.Garbage("an opening in place of a turn, or a turn in place of an opening")
            worker.answered(slot)
            self._take_outcome(worker, slot, outcome)

    def _take_outcome(self, worker: ProcessWorker, slot: int, outcome: CallOutcome) -> None:
        if type(outcome) is FailedCall and outcome.kind is FailureKind.DIVERGED and self._home[slot] < 0:
            outcome = self._suspicions[slot]  # it cannot be brought back to be tried again
        self._arrive(slot, outcome)
        if type(outcome) is Transition and (outcome[2] or outcome[3]) and self.resets_itself(slot):
            if self._home[slot] < 0:
                self._submit({slot: self._calls[slot]})
            else:
                worker.opens_next(slot)

    def _bury(self, worker: ProcessWorker) -> None:
        cause = worker.cause_of_death()
        if not worker.ready:
            raise EnvError(f"a worker process {cause} before it could start; its own output says more")
        self._lose(worker, FailureKind.LOST, f"ChildProcessError: its process {cause}", worker.at_work)

    # -- lost workers ------------------------------------------------------------------------------------------------

    def _lose(self, worker: ProcessWorker, kind: FailureKind, error: str, blamed: int | None) -> None:
        opening = worker.opening
        worker.stop()
        with contextlib.suppress(EOFError, wire.Garbage):
            for answers in worker.frames() if worker.trusted else ():  # what it had sent before it was lost
                self._take_answers(worker, answers)
                if worker.killed:
                    return
        self._forget_socket(worker)
        suspect = blamed if blamed in worker.awaited else next(iter(worker.awaited), None)
        if suspect is None and self._number(worker) < 0:  # its slot's next turn starts another one
            self._discard(worker)
        elif suspect is None:
            super()._lose(worker, kind, error, None)
        elif self._home[suspect] < 0:
            self._convict(worker, kind, error, suspect)
        elif suspect == blamed and self._lives_alone(suspect) and not (opening and self._is_turn(suspect)):
            super()._lose(worker, kind, error, suspect)
        else:  # of a turn that ended an episode, the answer may have been lost while the next one was opened
            self._suspicions[suspect] = FailedCall(kind, error, place=error)
            self._isolate(worker, suspect)

    def _is_turn(self, slot: int) -> bool:
        return not isinstance(self._calls[slot], Reset)

    def _lives_alone(self, slot: int) -> bool:
        return self._shared_home.count(self._shared_home[slot]) == 1

    def _isolate(self, worker: ProcessWorker, slot: int) -> None:
        """Make the call of a slot again in a process of its own, and those of its neighbors in another one."""
        self._home[slot] = -1 - slot
        self._states[slot].lose()
        self._replace(worker, None)
        call = self._calls[slot] = self._again(slot, self._calls[slot])
        self._workers[-1 - slot] = self._start_alone(slot)
        super()._submit({slot: call})

    def _convict(self, worker: ProcessWorker, kind: FailureKind, error: str, slot: int) -> None:
        self._discard(worker)
        self._arrive(slot, FailedCall(kind, error, place=error))

    def _discard(self, worker: ProcessWorker) -> None:
        """Give up the process of a slot that has one of its own."""
        [slot] = worker.slots
        worker.kill()
        del self._workers[self._home[slot]]
        self._states[slot].lose()

    def _settle(self, slot: int, call: EnvCall) -> None:
        """The next episode is played among the neighbors again; one that is under way, in a process of its own."""
        if isinstance(call, Reset):
            if (worker := self._workers.pop(self._home[slot], None)) is not None:
                self._forget_socket(worker)
                worker.kill()
            self._home[slot] = self._shared_home[slot]
        elif self._home[slot] not in self._workers:
            self._workers[self._home[slot]] = self._start_alone(slot)

    def _start_alone(self, slot: int) -> ProcessWorker:
        # The vector asks for the next opening, so that each answer is that of one call.
        homes = {slot: self._homes[slot]._replace(autoreset=False)}
        return self._watched(make_setup(homes, self._builders, [slot]), [slot])

    def _forget_socket(self, worker: ProcessWorker) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(worker.socket)

    def _shut_down(self) -> None:
        super()._shut_down()
        self._selector.close()
        self._waker.close()
        self._woken_by.close()


@contextlib.contextmanager
def _opened_anew(output: int) -> Generator[int | None]:
    """A pipe or terminal as a worker's own output, so that the worker cannot make it one that never blocks for us.

    `None` for what is inherited: files, whose position is shared, and what cannot be opened.
    """
    try:
        if stat.S_ISREG(os.fstat(output).st_mode):
            raise OSError
        own = os.open(f"/dev/fd/{output}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:  # a socket, a pipe that nobody reads, nothing at all
        yield None
        return
    try:
        os.set_blocking(own, True)
        yield own
    finally:
        os.close(own)


def _began(answers: list[wire.Answer]) -> bool:
    if not answers:
        return True
    slot, failure = answers[0]
    if not isinstance(failure, FailedCall) or slot != wire.NOBODY:
        raise wire.Garbage("an answer before the start")
    raise EnvError(f"a worker process could not build its environments: {failure.error}\n{failure.traceback}")


def pickled_builders(builders: Mapping[str, Callable[[], Env]]) -> dict[str, bytes]:
    """The builders for another process, classes and functions of the main script by value.

    Raises:
        EnvError: one cannot be pickled.
    """
    hint = "Its class, keyword arguments and wrappers must be picklable; open files and connections in its reset()."
    return {env_id: _by_value(build, env_id, hint) for env_id, build in builders.items()}


def _by_value(build: Callable[[], Env], env_id: str, hint: str) -> bytes:
    import cloudpickle  # pyright: ignore[reportMissingTypeStubs]

    try:
        return cloudpickle.dumps(build)  # pyright: ignore[reportUnknownMemberType]
    except Exception as error:
        raise EnvError(
            f"{env_id} cannot be sent to a worker process: {type(error).__name__}: {error}. {hint}"
        ) from error


def make_setup(
    homes: Sequence[SlotConfig] | Mapping[int, SlotConfig], builders: Mapping[str, bytes], slots: Sequence[int]
) -> Setup:
    """What a worker with these environments needs."""
    from gem_core.plugins import manager

    mine = {slot: homes[slot] for slot in slots}
    wanted = {home.env_id for home in mine.values()}
    return Setup(
        mine,
        {env_id: data for env_id, data in builders.items() if env_id in wanted},
        manager.enabled,
    )
