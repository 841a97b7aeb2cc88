"""What every vector backend has in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any

from gem_core.env import Info, ResetResult
from gem_core.errors import ClosedError, EnvFailure, PluginError
from gem_core.failures import CircuitBreaker, ErrorAction, FailurePolicy
from gem_core.vector._autoreset import Autoreset
from gem_core.vector._calls import CallOutcome, EnvCall, FailedCall, Reset, Transition, merged
from gem_core.vector._concurrency import ConcurrencyLimits
from gem_core.vector._failures import cut_off, decide_alone, log_failure
from gem_core.vector._slots import SlotState, first_starts, start_of, start_of_task
from gem_core.vector._statistics import EnvStatistics
from gem_core.vector._tasks import Task, TaskPlan, is_whole_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorEnv(ABC):
    """Environments that are played side by side; built by `make_vec`.

    `send` hands out actions and `recv` takes what has come back, so that nobody waits for the slowest; `step` is both
    in one. A backend implements `_submit`, `_gather`, `_wake` and `_shut_down`, and nothing else.

    Args:
        plan: which tasks the slots play.
        autoreset: when an ended environment starts its next episode.
        failures: what becomes of environments that fail.
        env_limits: how many episodes of an environment id may be under way at once.
    """

    def __init__(
        self,
        plan: TaskPlan,
        *,
        autoreset: Autoreset,
        failures: FailurePolicy,
        env_limits: Mapping[str, int] | None = None,
    ) -> None:
        starts = first_starts(plan)
        self.plan = plan
        self.env_ids = tuple(start.task.env_id for start in starts)
        self.autoreset = autoreset
        self.failures = failures
        self.statistics = {env_id: EnvStatistics() for env_id in self.env_ids}
        """What each environment id did so far."""
        self.on_failure: Callable[[EnvFailure], ErrorAction] = partial(decide_alone, failures)
        """Says what becomes of a failure. A rollout puts its own here, which knows the episode's turns."""
        self._states = [SlotState(start.task.env_id, start) for start in starts]
        self._places = ConcurrencyLimits(self.env_ids, env_limits)
        self._breaker = CircuitBreaker(failures)
        self._stop: Exception | None = None
        self._woken = False
        self._calls: dict[int, EnvCall] = {}
        self._results: dict[int, Transition] = {}
        self._closed = False

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self.env_ids)

    @property
    def group_size(self) -> int:
        """Neighboring slots that play the same task."""
        return self.plan.group_size

    def task(self, slot: int) -> Task:
        """The task of the episode under way in a slot, or of the last one; before the first reset, of the first.

        With same-step autoreset, an ended episode has given way to the next one by the time its end is received.
        """
        return self._states[slot].start.task

    def resets_itself(self, slot: int) -> bool:
        """Whether the end of an episode opens the next one there: with same-step autoreset, and no limit on its id."""
        return self.autoreset is Autoreset.SAME_STEP and not self._places.limited(self.env_ids[slot])

    def places_left(self, env_id: str) -> int | None:
        """How many further episodes of that id may begin now; `None` if it has no limit that matters here."""
        if not self._places.limited(env_id):
            return None
        taken = sum(self._has_place(slot) for slot, one in enumerate(self.env_ids) if one == env_id)
        return self._places.left(env_id, taken)

    @property
    def pending(self) -> frozenset[int]:
        """The slots whose answer has not been received."""
        return frozenset([*self._calls, *self._results])

    # -- playing ---------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int] | None = None, slots: Sequence[int] | None = None
    ) -> tuple[list[str], list[Info]]:
        """Start the next episode in the slots given, side by side.

        Args:
            seed: an integer is a new seed of the run, and episode numbers start again at 0. A list has one seed per
                slot, for the environment itself and for this episode only.
            slots: which slots; all by default.

        Returns:
            Observations and infos in the order of `slots`. `info["seed"]` and `info["episode"]` name the episode.

        Raises:
            ClosedError: the vector is closed.
            ValueError: a slot out of range, given twice, or still at work; a seed that is neither of the two; more
                episodes of an id than its limit.
            EnvFailure: a failure that is to stop the run.
        """
        if isinstance(slots, int):
            raise ValueError(f"reset() takes a list of slots, not {slots}; pass slots=[{slots}]")
        chosen = list(range(self.num_envs)) if slots is None else list(slots)
        seeds = _seeds(seed, len(chosen))
        self._check_none_pending()
        self._check_free(chosen)
        self._check_places(chosen)
        self._start_episodes({slot: self._reset_call(slot, seeds, position) for position, slot in enumerate(chosen)})
        try:
            results = self._wait_for(len(chosen), None)
        except (EnvFailure, PluginError):
            self.drain()
            raise
        return [results[slot].observation for slot in chosen], [results[slot].info for slot in chosen]

    def step(
        self, actions: Sequence[str] | Mapping[int, str]
    ) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]:
        """Play one turn in every environment, or in those that the mapping names, and wait for all of them.

        Returns:
            Observations, rewards, terminated, truncated and infos in the order of `actions`: rewards are an array of
            float64 and flags are arrays of bool, each of shape (number of actions,); the others are lists.

        Raises:
            ClosedError: the vector is closed.
            ValueError: not one action per environment, an action that is no text, or a slot out of range or still
                at work.
            EnvFailure: a failure that is to stop the run; what the others answered is there to `recv`.
        """
        self._check_none_pending()
        if not isinstance(actions, Mapping):
            if isinstance(actions, str):  # which is a sequence of texts, too
                raise ValueError(f"got the text {actions!r:.200} as actions; pass a list, or {{slot: action}}")
            if len(actions) != self.num_envs:
                raise ValueError(
                    f"got {len(actions)} actions for {self.num_envs} environments; pass {{slot: action}} to step some"
                )
            actions = dict(enumerate(actions))
            self._send(actions)  # every slot, and `_check_none_pending` has found all of them free
        else:
            self.send(actions)
        results = self._wait_for(len(actions), None)
        return _stacked([results[slot] for slot in actions])

    def send(self, actions: Mapping[int, str]) -> None:
        """Start one turn in the environments named. Raises as `step`."""
        self._check_open()
        if not isinstance(actions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"send() takes {{slot: action}}, not {actions!r:.200}")
        self._check_free(list(actions))
        self._send(actions)

    def _send(self, actions: Mapping[int, str]) -> None:
        if not {str}.issuperset(map(type, actions.values())):
            actions = {slot: _plain_text(slot, action) for slot, action in actions.items()}
        calls: dict[int, EnvCall] = {}
        for slot, action in actions.items():
            state = self._states[slot]
            if state.steady:
                calls[slot] = action
            elif state.playable:
                calls[slot] = state.step(action)
            elif (call := self._unplayable(slot, state)) is not None:
                calls[slot] = call
        self._start(calls)

    def send_reset(
        self, slots: Sequence[int], *, tasks: Sequence[Task] | None = None, partner_replies: Sequence[str] = ()
    ) -> None:
        """Start the next episode in the slots named, without waiting.

        `recv` gives each opening as a transition with no reward that ends nothing. Raises as `step`.

        Args:
            slots: which slots.
            tasks: a task of the run for each, in place of the slot's own next one. Its episode has number 0, and the
                next episodes of that slot move on from there, by one round each.
            partner_replies: with `tasks`: what partners answered when they were played before; see `gem_core.partner`.
        """
        if tasks is None:
            self._check_free(slots)
            self._check_places(slots)
            self._start_episodes({slot: self._states[slot].next_start for slot in slots})
            return
        if len(tasks) != len(slots):
            raise ValueError(f"got {len(tasks)} tasks for {len(slots)} slots; give one for each")
        self._check_free(slots)
        for slot, task in zip(slots, tasks, strict=True):
            if task.env_id != self.env_ids[slot]:
                raise ValueError(f"slot {slot} has {self.env_ids[slot]}, which cannot play {task}")
        self._check_places(slots)
        starts = {
            slot: start_of_task(self.plan, task)._replace(partner_replies=tuple(partner_replies))
            for slot, task in zip(slots, tasks, strict=True)
        }
        self._start_episodes({slot: partial(self._states[slot].start_with, start) for slot, start in starts.items()})

    def abandon(self, slots: Sequence[int]) -> None:
        """Give up the episodes under way in these slots, which makes their places free. Raises as `step`."""
        self._check_free(slots)
        for slot in slots:
            self._count_abandoned(self._states[slot])
            self._states[slot].give_up()

    def recv(self, at_least: int = 1, timeout: float | None = None) -> dict[int, Transition]:
        """Wait until at least `at_least` of the turns sent have come back, and take all that have.

        Args:
            at_least: 0 takes what is there.
            timeout: seconds after which to take what is there, be it less; `None` waits.

        Raises:
            ClosedError: the vector is closed.
            ValueError: fewer turns than that are under way.
            EnvFailure: a failure that is to stop the run; what has come back stays, for another `recv`.
            PluginError: a plugin answered a failure with something that is no `ErrorAction`.
            EnvError: workers cannot be started, or are lost one after the other.
        """
        self._check_open()
        if not isinstance(at_least, int) or not (timeout is None or _is_seconds(timeout)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"recv() takes a number of turns and seconds or None, not {at_least!r} and {timeout!r}")
        under_way = len(self._calls) + len(self._results)
        if at_least > under_way:
            raise ValueError(f"recv(at_least={at_least}), but {under_way} turns are under way")
        return self._wait_for(at_least, timeout, wakeable=True)

    def take_completed(self) -> dict[int, Transition]:
        """What has come back, after `recv` raised; does not wait, and raises for no failure."""
        self._check_open()
        self._stop = None
        return self._take()

    def wake(self) -> None:
        """Have a `recv` that waits in another thread return with what is there; any thread may call this."""
        self._woken = True
        self._wake()

    def drain(self) -> None:
        """Wait for the calls under way and forget their results.

        For a caller that was interrupted between `send` and `recv`: afterwards it can `reset` those environments.

        Raises:
            ClosedError: the vector is closed.
        """
        self._check_open()
        while self._calls:
            self._gather(len(self._calls), None)
        self._forget()

    def close(self) -> None:
        """Close every environment and stop every worker. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._calls.clear()
            self._forget()
            self._shut_down()

    # -- what a backend does -----------------------------------------------------------------------------------------

    @abstractmethod
    def _submit(self, calls: Mapping[int, EnvCall]) -> None:
        """Have the members perform these calls, now or in the background."""

    @abstractmethod
    def _gather(self, wanted: int, timeout: float | None) -> None:
        """Pass on outcomes to `_arrive`; wait for about `wanted` of them, for at most `timeout` seconds."""

    @abstractmethod
    def _wake(self) -> None:
        """Have a `_gather` that waits in another thread return."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Close the members and stop the workers."""

    # -- outcomes --------------------------------------------------------------------------------------------------

    def _reset_call(self, slot: int, seeds: int | Sequence[int] | None, position: int) -> Callable[[], Reset]:
        state = self._states[slot]
        if seeds is None:
            return state.next_start
        if isinstance(seeds, Sequence):
            return partial(state.next_start, seeds[position])
        return partial(state.start_with, start_of(self.plan, slot, 0, seed=seeds))

    def _start_episodes(self, starts: Mapping[int, Callable[[], Reset]]) -> None:
        for slot in starts:
            self._count_abandoned(self._states[slot])
        self._start({slot: start() for slot, start in starts.items()})

    def _count_abandoned(self, state: SlotState) -> None:
        if state.playable:  # it has not failed so far, so it counts as one that did not
            self._breaker.success(state.env_id)
            self.statistics[state.env_id].abandoned += 1

    def _has_place(self, slot: int) -> bool:
        """An episode is under way there, or being opened."""
        return slot in self._calls or not self._states[slot].over

    def _start(self, calls: Mapping[int, EnvCall]) -> None:
        self._calls.update(calls)
        if calls:
            self._submit(calls)

    def _arrive(self, slot: int, outcome: CallOutcome) -> None:
        """Take the outcome of the call under way at `slot`."""
        call, state = self._calls.pop(slot), self._states[slot]
        if type(outcome) is Transition:
            turn: Any = call
            state.played(turn if type(turn) is str else turn.action, outcome)
            if outcome.terminated or outcome.truncated:
                self._end_episode(slot, state, outcome)
            else:
                self._results[slot] = outcome
        elif isinstance(outcome, FailedCall):
            self._fail(slot, state, call, outcome)
        else:
            opening: Any = outcome
            state.opened(opening)
            self._open_episode(slot, state, (opening[0], {**opening[1], **state.named}))

    def _end_episode(self, slot: int, state: SlotState, transition: Transition, *, failed: bool = False) -> None:
        if state.error is None:  # otherwise it was counted when it failed to begin
            self._count_episode(state, transition, failed)
        state.over, state.steady, state.error = True, False, None
        if not self.resets_itself(slot):
            self._results[slot] = transition
            return
        state.ended = transition
        call = state.next_start()
        if failed:  # otherwise the member is at it already
            self._start({slot: call})
        else:
            self._calls[slot] = call

    def _open_episode(self, slot: int, state: SlotState, opening: ResetResult) -> None:
        ended, state.ended = state.ended, None
        observation, info = opening
        alone = Transition(observation, 0.0, False, False, info)
        self._results[slot] = alone if ended is None else merged(ended, opening)

    def _fail(self, slot: int, state: SlotState, call: EnvCall, failure: FailedCall) -> None:
        state.lose()
        state.attempts += 1
        start = state.start
        where = slot, start.episode, start.task.task_id, state.attempts
        error = EnvFailure(state.env_id, start.seed, failure.kind, failure.error, *where)
        wrong = None
        try:
            action = self.on_failure(error)
        except PluginError as refused:  # it stops the run, and costs nobody's answer
            action, wrong = ErrorAction.RAISE, refused
        log_failure(state.env_id, failure, action)
        self.statistics[state.env_id].failures += 1
        if action is ErrorAction.RETRY:
            self._start({slot: self._again(slot, call)})
            return
        tripped = self._breaker.failure(state.env_id, failure.error)
        if tripped is not None or action is ErrorAction.RAISE:
            self._stop = wrong or tripped or error
        if isinstance(call, Reset):
            opening = state.broken(failure.error)
            self._count_episode(state, cut_off(failure.error), failed=True)
            self._open_episode(slot, state, opening)
        else:
            self._end_episode(slot, state, cut_off(failure.error, failure.kind), failed=True)

    def _again(self, slot: int, call: EnvCall) -> EnvCall:
        """The same call, for a fresh environment."""
        if isinstance(call, Reset):
            return call
        return self._states[slot].step(call if isinstance(call, str) else call.action)

    def _unplayable(self, slot: int, state: SlotState) -> EnvCall | None:
        """Answer a step without the environment's help, or say how to open its next episode."""
        if state.error is not None:
            self._end_episode(slot, state, cut_off(state.error), failed=True)
            return None
        when = "after its episode ended" if state.begun else "before its first reset"
        self._results[slot] = cut_off(f"stepped {when}; reset it first")
        return None

    def _count_episode(self, state: SlotState, transition: Transition, failed: bool) -> None:
        if not failed:
            self._breaker.success(state.env_id)
        self.statistics[state.env_id].end(
            len(state.turns),
            sum([turn[2] for turn in state.turns]),
            success=bool(transition.info.get("success")),
            truncated=transition.truncated,
            failed=failed,
        )

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _wait_for(self, at_least: int, timeout: float | None, *, wakeable: bool = False) -> dict[int, Transition]:
        deadline = None if timeout is None else time.monotonic() + timeout
        remaining = timeout
        while True:
            if wakeable and self._woken:  # perhaps before this wait, or while nobody could be woken
                self._woken = False
                at_least = 0
            if self._calls:
                self._gather(max(0, at_least - len(self._results)), remaining)
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._stop or not self._calls or len(self._results) >= at_least or remaining == 0:
                return self._take()

    def _forget(self) -> None:
        self._stop = None
        self._results.clear()

    def _take(self) -> dict[int, Transition]:
        if self._stop:
            stop, self._stop = self._stop, None
            raise stop
        results, self._results = self._results, {}
        return results

    # -- misuse ----------------------------------------------------------------------------------------------------

    def _check_free(self, slots: Sequence[int]) -> None:
        self._check_open()
        if not {int}.issuperset(map(type, slots)) and not all(map(is_whole_number, slots)):
            raise ValueError(f"slots are named by their numbers, not by {list(slots)!r:.200}")
        named, count = set(slots), self.num_envs
        if unknown := [slot for slot in slots if not 0 <= slot < count]:
            raise ValueError(f"no slots {unknown}; there are {count}, from 0")
        busy = sorted(named & (self._calls.keys() | self._results.keys())) if self._calls or self._results else []
        if busy or len(named) < len(slots):
            raise ValueError(f"slots {busy or list(slots)} are still at work or named twice; recv() them first")

    def _check_places(self, slots: Sequence[int]) -> None:
        wanted = Counter(self.env_ids[slot] for slot in slots if not self._has_place(slot))
        for env_id, count in wanted.items():
            left = self.places_left(env_id)
            if left is not None and count > left:
                raise ValueError(
                    f"{count} more episodes of {env_id} would exceed its limit, which leaves {left} now: start others "
                    "when some have ended, or raise env_limits"
                )

    def _check_none_pending(self) -> None:
        # What `send` started must not come back as the result of a `reset` or `step`.
        self._check_open()
        if self._calls or self._results:
            raise ValueError(f"{len(self.pending)} turns sent earlier are under way; recv() them before this")

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self!r} is closed; build a new one with make_vec()")

    def __enter__(self) -> VectorEnv:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = {env_id: self.env_ids.count(env_id) for env_id in self.statistics}
        shown = ", ".join(f"{count} x {env_id}" for env_id, count in list(counts.items())[:3])
        more = f" and {len(counts) - 3} more ids" if len(counts) > 3 else ""
        state = "closed" if self._closed else f"{len(self.pending)} at work"
        return f"<{type(self).__name__} {shown}{more}, {self.autoreset.value}, {state}>"


def _stacked(
    transitions: Sequence[Transition],
) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]:
    import numpy as np  # rollouts use `send` and `recv`, and need none of it

    count = len(transitions)
    return (
        [one[0] for one in transitions],
        np.fromiter([one[1] for one in transitions], np.float64, count),
        np.fromiter([one[2] for one in transitions], np.bool_, count),
        np.fromiter([one[3] for one in transitions], np.bool_, count),
        [one[4] for one in transitions],
    )


def _seeds(seed: Any, count: int) -> int | list[int] | None:
    if seed is None or is_whole_number(seed):
        return None if seed is None else int(seed)
    if not _is_list(seed) or not all(map(is_whole_number, seed)):
        raise ValueError(f"seed must be a whole number, a list with one per slot, or None, not {seed!r:.200}")
    if len(seed) != count:
        raise ValueError(f"got {len(seed)} seeds for {count} slots; give one for each")
    return [int(one) for one in seed]


def _is_list(value: Any) -> bool:
    """A list of any class, such as a tuple or numpy's array."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping | Set)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and value == value  # NaN is no time


def _plain_text(slot: int, action: Any) -> str:
    if not isinstance(action, str):
        raise ValueError(f"the action for slot {slot} is {action!r:.200}, which is not a string")
    return str.__str__(action)  # of a class of its own, such as numpy's
