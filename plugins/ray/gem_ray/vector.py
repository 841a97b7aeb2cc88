"""Environments in Ray actors, for more than one machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import textwrap
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeAlias

from gem_core.env import Env
from gem_core.errors import EnvError, FailureKind
from gem_core.interrupts import uninterrupted
from gem_core.vector import TaskPlan
from gem_core.vector.backends import (
    LOOK_SECONDS,
    START_SECONDS,
    CallOutcome,
    EnvCall,
    FailedCall,
    Garbage,
    PooledVectorEnv,
    Replay,
    Setup,
    SlotConfig,
    Transition,
    Worker,
    listed,
    make_setup,
    pickled_builders,
    unpacked,
)

ray: Any = importlib.import_module("ray")  # untyped, and missing where types are checked

NOBODY = -1
"""Stands for a slot in a question to the actor itself."""
IDLE_SECONDS = 1.0
"""After so long without calls, an actor is asked whether it is still there before it gets another one."""
SHOWN_CHARACTERS = 200
"""Length of the excerpt of Ray's account of a loss, whose rest is advice."""
_rays_threads: set[int] = set()
"""Threads of Ray's that called back. One that asked Ray for something would wait for itself."""


class EnvHost:
    """What runs in an actor: environments, and one task per call, so that each answer is there as soon as it can be.

    Args:
        setup: the environments.
        path: where the vector's process finds modules; what is missing here is added.
    """

    def __init__(self, setup: Setup, path: Sequence[str]) -> None:
        sys.path.extend(entry for entry in path if entry not in sys.path)
        hosted = setup.hosted()
        self._failure = hosted if isinstance(hosted, FailedCall) else None
        self._hosted = {} if isinstance(hosted, FailedCall) else hosted

    def ready(self) -> FailedCall | None:
        """Why the environments could not be built, if they could not."""
        return self._failure

    def answer(self, slot: int, call: EnvCall) -> bytes:
        """The outcome of a call, as data."""
        hosted = self._hosted[slot]
        return listed([hosted.data(hosted.answer(call))])

    def close(self) -> None:
        """Close the environments."""
        for hosted in self._hosted.values():
            hosted.close()


class RayWorker(Worker):
    """An actor. Ray performs its tasks in the order in which they were sent, so the first one that is not answered is
    the one at work, at the earliest since the answer before came in.

    Answers come in as `ObjectRef.future()`, from a thread of Ray's, which costs nothing while nothing happens;
    `ray.wait` would look at every call under way each time.

    What an actor answered just before it died may be lost, so its death says for certain who was at work only if it
    had a single call. Its successor therefore gets what was under way call by call, and only then the rest in advance.

    Args:
        slots: those whose environments live here.
        actor: the handle of an `EnvHost`.
        node: the id of the node that the actor was meant for.
        limit: seconds that one turn may take.
        inbox: takes this worker, the slot and the answer.
    """

    def __init__(self, slots: Sequence[int], actor: Any, node: str, limit: float, inbox: Inbox) -> None:
        super().__init__(slots)
        self.node = node
        self.ready = False
        """It was placed, and has built its environments."""
        self.began = self._since = time.monotonic()
        self._actor = actor
        self._limit = limit
        self._inbox = inbox
        self._expected: dict[int, Future[Any]] = {}
        self._unanswered: dict[int, float] = {}
        """Those that Ray has not answered yet, in order, with seconds that they may take beyond the limit. This and
        `_since` are all that Ray's thread changes."""
        self._suspects: deque[tuple[int, EnvCall]] = deque()
        self._held: dict[int, EnvCall] = {}
        self._careful = True
        self._closing: Future[Any] | None = None
        self._ask(NOBODY, actor.ready.remote())

    def submit(self, calls: Mapping[int, EnvCall]) -> None:
        if not self._expected and time.monotonic() - self._since > IDLE_SECONDS:
            self._ask(NOBODY, self._actor.ready.remote())  # if it died meanwhile, none of these calls is to blame
        if not self._careful:
            for slot, call in calls.items():
                self._send(slot, call)
        elif self.ready:
            self._held.update(calls)
        else:
            self._suspects.extend(calls.items())

    def running(self) -> tuple[int, float] | None:
        for slot, extra in list(self._unanswered.items()):
            return None if slot == NOBODY else (slot, self._since + extra)
        return None

    def take(self, slot: int) -> Future[Any]:
        """The answer that has come in for this slot; it is not expected any more."""
        answer = self._expected.pop(slot)
        if self._suspects:
            self._send(*self._suspects.popleft())
        elif self._careful:
            self._careful = False
            self.submit(self._held)
        return answer

    def answered(self) -> Iterator[int]:
        """The environments whose answers have come in, and were not taken."""
        for slot, answer in list(self._expected.items()):
            if slot != NOBODY and answer.done() and answer.exception() is None:
                yield slot

    def culprit(self) -> int | None:
        """Of an actor that died: the slot that was at work, if that is certain."""
        # All fail now, but what was answered before may still be on its way.
        wait(self._expected.values(), LOOK_SECONDS)
        failed = [slot for slot, answer in self._expected.items() if not answer.done() or answer.exception()]
        return failed[0] if len(failed) == 1 and failed != [NOBODY] else None

    def kill(self) -> None:
        self._suspects.clear()
        self._held.clear()
        if threading.get_ident() not in _rays_threads:
            _kill(self._actor)
        else:  # the garbage collector found a vector there
            threading.Thread(target=_kill, args=(self._actor,), daemon=True).start()

    def end(self) -> None:
        if self.ready and ray.is_initialized():
            with contextlib.suppress(Exception):
                self._closing = self._actor.close.remote().future()

    def join(self, timeout: float) -> bool:
        closed = self._closing is not None and bool(wait([self._closing], timeout).done)
        self.kill()  # it would go on, with nothing to do
        return closed

    def _send(self, slot: int, call: EnvCall) -> None:
        # Nothing is heard of a replay's turns, so it has the time of all of them, the first reset included.
        extra = self._limit * (len(call.actions) + 1) if isinstance(call, Replay) else 0.0
        self._ask(slot, self._actor.answer.remote(slot, call), extra)

    def _ask(self, slot: int, ref: Any, extra: float = 0.0) -> None:
        if not self._unanswered:
            self._since = time.monotonic()
        self._unanswered[slot] = extra
        answer: Future[Any] = ref.future()
        self._expected[slot] = answer
        answer.add_done_callback(partial(self._hear, slot, threading.get_ident()))

    def _hear(self, slot: int, asked_in: int, answer: Future[Any]) -> None:
        # In a thread of Ray's, unless the answer was there at once. The time comes first, or the next call would
        # seem to have begun with this one.
        self._since = time.monotonic()
        self._unanswered.pop(slot, None)
        if threading.get_ident() != asked_in:
            _rays_threads.add(threading.get_ident())
        self._inbox.put((self, slot, answer))


Answer: TypeAlias = tuple[RayWorker, int, Future[Any]]
Inbox: TypeAlias = "queue.SimpleQueue[Answer | None]"  # None only wakes


class RayVectorEnv(PooledVectorEnv[RayWorker]):
    """Environments in Ray actors, each of which serves several, one after the other.

    Ray is used as it is, in a trainer or on a cluster, where it has been initialised. Otherwise `ray.init()` connects
    to the cluster that `RAY_ADDRESS` or this machine names, or starts Ray here, without dashboard and without the
    actors' output. It stays up when the vector is closed, as others may use it by then.

    `workers` is the number of actors, by default one per CPU of the cluster. They are spread over the nodes, in
    proportion to the nodes' CPUs. An actor needs a free CPU to be placed, and none from then on, so there may be more
    actors than CPUs; but where everything is reserved, as by a trainer's placement groups, they wait for room, for up
    to `START_SECONDS`. Time limits count from when an actor runs.

    An actor that dies with several calls under way is replaced, and the calls are made again, one by one. The
    environment whose call ends the actor again has failed. So the loss of a node makes no environment fail.

    Modules of the environments, plugins included, must be importable on every node: installed, on a shared disk, or
    sent with `ray.init(runtime_env=...)`. What the main script or a notebook defines travels by value.

    Args:
        homes: how to build the environment of each slot.
        builders: builds the environments, per id.
        plan: which tasks the slots play.
        workers: number of actors; at most one per environment.
        settings: of `PooledVectorEnv`.

    Raises:
        EnvError: something cannot be pickled or imported by an actor, or an actor could not start.
    """

    def __init__(
        self,
        homes: Sequence[SlotConfig],
        builders: Mapping[str, Callable[[], Env]],
        plan: TaskPlan,
        workers: int | None,
        **settings: Any,
    ) -> None:
        # The vector asks for each opening, so that it has a time limit of its own, as every call.
        self._homes = [home._replace(autoreset=False) for home in homes]
        self._builders = pickled_builders(builders)
        _connect()
        self._host: Any = ray.remote(EnvHost)
        self._inbox: Inbox = queue.SimpleQueue()
        self._arrived: deque[Answer] = deque()
        try:
            super().__init__(plan, min(workers or _cpus(), plan.num_envs), **settings)
            while not all(worker.ready for worker in self._workers.values()):
                self._poll(1, LOOK_SECONDS)
        except BaseException:
            self.close()
            raise

    def _start_worker(self, slots: Sequence[int]) -> RayWorker:
        path = [os.path.abspath(entry) for entry in sys.path]
        node = self._next_node()
        host = self._host.options(
            scheduling_strategy=_preferring(node), max_restarts=0, max_task_retries=0, enable_task_events=False
        )
        actor = host.remote(make_setup(self._homes, self._builders, slots), path)
        return RayWorker(slots, actor, node, self.failures.timeout or 0.0, self._inbox)

    def _next_node(self) -> str:
        """The node with the fewest actors of this vector per CPU. Ray's spreading ignores actors without a CPU."""
        actors = Counter(worker.node for worker in self._workers.values())
        cpus = {node["NodeID"]: node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]}
        with_cpus = [node for node, count in cpus.items() if count]
        return min(with_cpus, key=lambda node: actors[node] / cpus[node], default="")

    def _submit(self, calls: Mapping[int, EnvCall]) -> None:
        _check_connected()
        super()._submit(calls)

    def _poll(self, wanted: int, timeout: float | None) -> None:
        self._listen(wanted, LOOK_SECONDS if timeout is None else min(timeout, LOOK_SECONDS))
        if not self._arrived and wanted:
            self._check_workers()
        # One at a time off the queue, so that an error in the middle leaves the rest for the next poll.
        with uninterrupted():
            while self._arrived:
                worker, slot, answer = self._arrived.popleft()
                if worker is self._workers[self._home[worker.slots[0]]]:  # and not one that was given up
                    self._receive(worker, slot, answer)

    def _listen(self, wanted: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with contextlib.suppress(queue.Empty):
            while len(self._arrived) < wanted or not self._inbox.empty():
                answer = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
                if answer is None:
                    break
                self._arrived.append(answer)

    def _wake(self) -> None:
        self._inbox.put(None)

    def _receive(self, worker: RayWorker, slot: int, answer: Future[Any]) -> None:
        if (error := answer.exception()) is not None:
            self._bury(worker, error)
            return
        # Taken first: what the answer leads to may be a call of the same slot, which is expected under the same number.
        worker.take(slot)
        if slot != NOBODY:
            self._take_outcome(worker, slot, answer.result())
        elif (failure := answer.result()) is not None:
            raise EnvError(f"a Ray actor could not build its environments: {failure.error}\n{failure.traceback}")
        else:
            worker.ready = True

    def _take_outcome(self, worker: RayWorker, slot: int, data: Any) -> None:
        try:
            outcome = self._outcome(slot, data)
        except Garbage as garbage:
            self._lose(worker, FailureKind.LOST, f"ChildProcessError: its actor gave no answer: {garbage}", slot)
        else:
            self._arrive(slot, outcome)

    def _arrive(self, slot: int, outcome: CallOutcome) -> None:
        super()._arrive(slot, outcome)
        ended = type(outcome) is Transition and (outcome.terminated or outcome.truncated)
        if ended and self.resets_itself(slot):
            self._submit({slot: self._calls[slot]})

    def _outcome(self, slot: int, data: Any) -> CallOutcome:
        answers = unpacked(data)
        if [one for one, _ in answers] != [slot] or not self._fits(slot, answers[0][1]):
            raise Garbage("an answer of somebody else, or to something else")
        return answers[0][1]

    def _check_workers(self) -> None:
        _check_connected()
        now = time.monotonic()
        if any(not worker.ready and now - worker.began > START_SECONDS for worker in self._workers.values()):
            raise EnvError(
                f"Ray did not start an actor within {START_SECONDS:g} s; each needs a free CPU to be placed. Next: see "
                "`ray status`, pass fewer workers, or leave CPUs out of placement groups"
            )

    def _bury(self, worker: RayWorker, error: BaseException) -> None:
        if not worker.ready:
            raise EnvError(f"a Ray actor was lost before it could start: {error}") from error
        worker.kill()  # it may be half alive, and must answer nothing after its successor has begun
        text = f"{type(error).__name__}: its actor was lost. {_last_line(error)}"
        self._lose(worker, FailureKind.LOST, text, worker.culprit())

    def _lose(self, worker: RayWorker, kind: FailureKind, error: str, blamed: int | None) -> None:
        worker.kill()
        # Answers that came before the loss count; without them those turns would be played twice.
        for slot in worker.answered():
            with contextlib.suppress(Garbage):
                self._arrive(slot, self._outcome(slot, worker.take(slot).result()))
                if slot == blamed:
                    blamed = None
        super()._lose(worker, kind, error, blamed)


def _connect() -> None:
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)


def _preferring(node: str) -> Any:
    """Place an actor on this node if it is there and has room, otherwise anywhere."""
    if not node:  # no node has a CPU yet; Ray may still add one
        return "DEFAULT"
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)


def _kill(actor: Any) -> None:
    if ray.is_initialized():
        with contextlib.suppress(Exception):  # from a session of Ray's that has ended
            ray.kill(actor)


def _check_connected() -> None:
    # Ray would start itself anew, where nobody knows these actors.
    if not ray.is_initialized():
        raise EnvError("Ray was shut down, and this vector's environments with it; build a new one with make_vec()")


def _cpus() -> int:
    resources: Any = ray.cluster_resources()
    return max(1, int(resources.get("CPU", 1)))


def _last_line(error: BaseException) -> str:
    # What comes before names this one actor, and would make each failure one of a new kind.
    return textwrap.shorten(str(error).strip().rpartition("\n")[2], SHOWN_CHARACTERS)
