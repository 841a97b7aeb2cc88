"""What every vector backend does alike."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem_core.env import Info, ResetResult
from gem_core.errors import ClosedError, EnvFailure, PluginError
from gem_core.failures import CircuitBreaker, ErrorAction, FailurePolicy, env_failure
from gem_core.vector.autoreset import Autoreset
from gem_core.vector.calls import Call, Failure, Outcome, Reset, Transition, merged
from gem_core.vector.faults import Fault, cut_off, judge_alone, log_failure
from gem_core.vector.seat import Seat
from gem_core.vector.statistics import EnvStatistics


class VectorEnv(ABC):
    """Environments that are played side by side; built by `make_vec`.

    `send` hands out actions and `recv` takes what has come back, so that nobody waits for the slowest; `step` is both
    in one. A backend implements `_submit`, `_gather`, `_wake` and `_shut_down`, and nothing else.

    Args:
        seats: where each environment stands, in order.
        autoreset: when an ended environment starts its next episode.
        group_size: so many neighbours in a row play the same seeds.
        failures: what becomes of environments that fail.
    """

    def __init__(
        self, seats: Sequence[Seat], *, autoreset: Autoreset, group_size: int, failures: FailurePolicy
    ) -> None:
        self.env_ids = tuple(seat.env_id for seat in seats)
        self.autoreset = autoreset
        self.group_size = group_size
        self.failures = failures
        self.statistics = {env_id: EnvStatistics() for env_id in self.env_ids}
        """What each environment id did so far."""
        self.judge: Callable[[Fault], ErrorAction] = partial(judge_alone, failures)
        """Says what becomes of a failure. A rollout puts its own here, which knows the episode's turns."""
        self._seats = list(seats)
        self._breaker = CircuitBreaker(failures)
        self._stop: Exception | None = None
        self._woken = False
        self._calls: dict[int, Call] = {}
        self._results: dict[int, Transition] = {}
        self._closed = False

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self.env_ids)

    @property
    def pending(self) -> frozenset[int]:
        """The environments whose answer has not been received."""
        return frozenset([*self._calls, *self._results])

    # -- playing ---------------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, indices: Sequence[int] | None = None) -> tuple[list[str], list[Info]]:
        """Start the next episode of the environments given, side by side.

        Args:
            seed: a new seed for the vector; episode numbers start again at 0.
            indices: which environments; all by default.

        Returns:
            Observations and infos in the order of `indices`. `info["seed"]` and `info["episode"]` name the episode.

        Raises:
            ClosedError: the vector is closed.
            ValueError: an index out of range, given twice, or still at work.
            EnvFailure: a failure that is to stop the run.
        """
        if isinstance(indices, int):
            raise ValueError(f"reset() takes a list of indices, not {indices}; pass indices=[{indices}]")
        chosen = list(range(self.num_envs)) if indices is None else list(indices)
        self._check_none_pending()
        self._claim(chosen)
        for index in chosen if seed is not None else ():
            self._seats[index].seed, self._seats[index].episode = seed or 0, -1
        self._start_episodes(chosen)
        try:
            results = self._wait_for(len(chosen), None)
        except (EnvFailure, PluginError):
            self.drain()
            raise
        return [results[index].observation for index in chosen], [results[index].info for index in chosen]

    def step(
        self, actions: Sequence[str] | Mapping[int, str]
    ) -> tuple[list[str], list[float], list[bool], list[bool], list[Info]]:
        """Play one turn in every environment, or in those that the mapping names, and wait for all of them.

        Returns:
            Observations, rewards, terminated, truncated and infos, each a list in the order of `actions`.

        Raises:
            ClosedError: the vector is closed.
            ValueError: not one action per environment, an action that is no text, or an index out of range or still
                at work.
            EnvFailure: a failure that is to stop the run; what the others answered is there to `recv`.
        """
        self._check_none_pending()
        if not isinstance(actions, Mapping):
            if isinstance(actions, str):  # which is a sequence of texts, too
                raise ValueError(f"got the text {actions!r:.200} as actions; pass a list, or {{index: action}}")
            if len(actions) != self.num_envs:
                raise ValueError(
                    f"got {len(actions)} actions for {self.num_envs} environments; pass {{index: action}} to step some"
                )
            actions = dict(enumerate(actions))
        self.send(actions)
        results = self._wait_for(len(actions), None)
        if not results:
            return [], [], [], [], []
        observations, rewards, terminated, truncated, infos = zip(*[results[index] for index in actions], strict=True)
        return list(observations), list(rewards), list(terminated), list(truncated), list(infos)

    def send(self, actions: Mapping[int, str]) -> None:
        """Start one turn in the environments named. Raises as `step`."""
        self._check_open()
        if not isinstance(actions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"send() takes {{index: action}}, not {actions!r:.200}")
        self._claim(list(actions))
        if not {str}.issuperset(map(type, actions.values())):
            actions = {index: _plain_text(index, action) for index, action in actions.items()}
        calls: dict[int, Call] = {}
        for index, action in actions.items():
            seat = self._seats[index]
            if seat.steady:
                calls[index] = action
            elif seat.playable:
                calls[index] = seat.step(action)
            elif (call := self._unplayable(index, seat)) is not None:
                calls[index] = call
        self._start(calls)

    def send_reset(
        self, indices: Sequence[int], *, streams: Sequence[int] | None = None, tasks: Sequence[int] | None = None
    ) -> None:
        """Start the next episode in the environments named, without waiting.

        `recv` gives each opening as a transition with no reward that ends nothing. Raises as `step`.

        Args:
            indices: which environments.
            streams: for each, a sequence of seeds to begin at its first episode, instead of going on with its own:
                `derive_seed(seed, stream, 0)`.
            tasks: for each stream, the task that an environment over data is told; by default the stream's number.
        """
        if streams is not None and len(streams) != len(indices):
            raise ValueError(f"got {len(streams)} streams of seeds for {len(indices)} environments")
        if tasks is not None and (streams is None or len(tasks) != len(streams)):
            raise ValueError(f"got {len(tasks)} tasks for {len(streams or ())} streams of seeds; give one for each")
        self._claim(indices)
        for index, stream, task in zip(indices, streams or (), tasks or streams or (), strict=False):
            self._seats[index].switch(stream, task)
        self._start_episodes(indices)

    def recv(self, at_least: int = 1, timeout: float | None = None) -> dict[int, Transition]:
        """Wait until at least so many of the turns sent have come back, and take all that have.

        Args:
            at_least: 0 takes what is there.
            timeout: seconds after which to take what is there, be it less; `None` waits.

        Raises:
            ClosedError: the vector is closed.
            ValueError: fewer turns than that are under way.
            EnvFailure: a failure that is to stop the run; what has come back stays, for another `recv`.
            PluginError: a plugin judged a failure with something that is no `ErrorAction`.
            EnvError: workers cannot be started, or are lost one after the other.
        """
        self._check_open()
        if not isinstance(at_least, int) or not (timeout is None or _is_seconds(timeout)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"recv() takes a number of turns and seconds or None, not {at_least!r} and {timeout!r}")
        under_way = len(self._calls) + len(self._results)
        if at_least > under_way:
            raise ValueError(f"recv(at_least={at_least}), but {under_way} turns are under way")
        return self._wait_for(at_least, timeout, wakeable=True)

    def salvage(self) -> dict[int, Transition]:
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
    def _submit(self, calls: Mapping[int, Call]) -> None:
        """Have the members perform these calls, now or in the background."""

    @abstractmethod
    def _gather(self, wanted: int, timeout: float | None) -> None:
        """Pass on outcomes to `_arrive`; wait until there are about so many of them, or so many seconds are over."""

    @abstractmethod
    def _wake(self) -> None:
        """Have a `_gather` that waits in another thread return."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Close the members and stop the workers."""

    # -- outcomes --------------------------------------------------------------------------------------------------

    def _start_episodes(self, indices: Sequence[int]) -> None:
        for index in indices:
            if (seat := self._seats[index]).playable:  # it has not failed so far, so it counts as one that did not
                self._breaker.success(seat.env_id)
                self.statistics[seat.env_id].abandoned += 1
        self._start({index: self._seats[index].next_start() for index in indices})

    def _start(self, calls: Mapping[int, Call]) -> None:
        self._calls.update(calls)
        if calls:
            self._submit(calls)

    def _arrive(self, index: int, outcome: Outcome) -> None:
        """Take the outcome of the call under way at `index`."""
        call, seat = self._calls.pop(index), self._seats[index]
        if type(outcome) is Transition:
            turn: Any = call
            seat.played(turn if type(turn) is str else turn.action, outcome)
            if outcome.terminated or outcome.truncated:
                self._end_episode(index, seat, outcome)
            else:
                self._results[index] = outcome
        elif isinstance(outcome, Failure):
            self._fail(index, seat, call, outcome)
        else:
            opening: Any = outcome
            seat.opened(opening)
            self._open_episode(index, seat, opening)

    def _end_episode(self, index: int, seat: Seat, transition: Transition, *, failed: bool = False) -> None:
        if seat.error is None:  # otherwise it was counted when it failed to begin
            self._count_episode(seat, transition, failed)
        seat.over, seat.steady, seat.error = True, False, None
        if self.autoreset is not Autoreset.SAME_STEP:
            self._results[index] = transition
            return
        seat.ended = transition
        call = seat.next_start()
        if failed:  # otherwise the member is at it already
            self._start({index: call})
        else:
            self._calls[index] = call

    def _open_episode(self, index: int, seat: Seat, opening: ResetResult) -> None:
        ended, seat.ended = seat.ended, None
        observation, info = opening
        alone = Transition(observation, 0.0, False, False, info)
        self._results[index] = alone if ended is None else merged(ended, opening)

    def _fail(self, index: int, seat: Seat, call: Call, failure: Failure) -> None:
        seat.lose()
        seat.attempts += 1
        fault = Fault(
            index, seat.env_id, seat.episode_seed, seat.episode, failure.error, seat.attempts, failure.repeatable
        )
        wrong = None
        try:
            action = self.judge(fault)
        except PluginError as error:  # it stops the run, and costs nobody's answer
            action, wrong = ErrorAction.RAISE, error
        log_failure(seat.env_id, failure, action)
        self.statistics[seat.env_id].failures += 1
        if action is ErrorAction.RETRY:
            self._start({index: self._again(index, call)})
            return
        tripped = self._breaker.failure(seat.env_id, failure.error)
        if tripped is not None or action is ErrorAction.RAISE:
            self._stop = wrong or tripped or env_failure(seat.env_id, fault.seed, failure.error)
        if isinstance(call, Reset):
            opening = seat.broken(failure.error)
            self._count_episode(seat, cut_off(failure.error), failed=True)
            self._open_episode(index, seat, opening)
        else:
            self._end_episode(index, seat, cut_off(failure.error), failed=True)

    def _again(self, index: int, call: Call) -> Call:
        """The same call, for a fresh environment."""
        if isinstance(call, Reset):
            return call
        return self._seats[index].step(call if isinstance(call, str) else call.action)

    def _unplayable(self, index: int, seat: Seat) -> Call | None:
        """Answer a step without the environment's help, or say how to open its next episode."""
        if seat.error is not None:
            self._end_episode(index, seat, cut_off(seat.error), failed=True)
            return None
        if self.autoreset is Autoreset.NEXT_STEP:
            return seat.next_start()
        self._results[index] = cut_off("stepped after its episode ended; reset it first")
        return None

    def _count_episode(self, seat: Seat, transition: Transition, failed: bool) -> None:
        if not failed:
            self._breaker.success(seat.env_id)
        self.statistics[seat.env_id].end(
            len(seat.actions),
            seat.total,
            success=bool(transition.info.get("success")),
            truncated=transition.truncated,
            failed=failed,
        )

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _wait_for(self, at_least: int, timeout: float | None, *, wakeable: bool = False) -> dict[int, Transition]:
        deadline = None if timeout is None else time.monotonic() + timeout
        remaining = timeout
        while True:
            if self._calls:
                self._gather(max(0, at_least - len(self._results)), remaining)
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._stop or not self._calls or len(self._results) >= at_least or remaining == 0:
                return self._take()
            if wakeable and self._woken:
                self._woken = False
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

    def _claim(self, indices: Sequence[int]) -> None:
        self._check_open()
        if not all(hasattr(index, "__index__") for index in indices):
            raise ValueError(f"environments are named by their numbers, not by {list(indices)!r:.200}")
        named, count = set(indices), self.num_envs
        unknown = [index for index in indices if not 0 <= index < count]
        if unknown:
            raise ValueError(f"no environments {unknown}; there are {count}")
        busy = sorted(named & (self._calls.keys() | self._results.keys()))
        if busy or len(named) < len(indices):
            raise ValueError(
                f"environments {busy or list(indices)} are still at work or named twice; recv() them first"
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


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and value == value  # NaN is no time


def _plain_text(index: int, action: Any) -> str:
    if not isinstance(action, str):
        raise ValueError(f"the action of environment {index} is {action!r:.200}, which is not a string")
    return str.__str__(action)  # of a class of its own, such as numpy's
