"""What every vector backend does alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from gem_core.env import Info
from gem_core.errors import ClosedError
from gem_core.vector.autoreset import Autoreset
from gem_core.vector.member import Transition


class VectorEnv(ABC):
    """Environments that are played side by side; built by `make_vec`.

    `send` hands out actions and `recv` takes what has come back, so that nobody waits for the slowest; `step` is both
    in one. A backend implements `_submit`, `_receive`, `_settle` and `_shut_down`, and nothing else.

    Args:
        env_ids: the id of each environment, in order.
        autoreset: when an ended environment starts its next episode.
        group_size: so many neighbours in a row play the same seeds.
    """

    def __init__(self, env_ids: Sequence[str], *, autoreset: Autoreset, group_size: int) -> None:
        self.env_ids = tuple(env_ids)
        self.autoreset = autoreset
        self.group_size = group_size
        self._pending: set[int] = set()
        self._closed = False

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self.env_ids)

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
        """
        chosen = list(range(self.num_envs)) if indices is None else list(indices)
        self._check_none_pending()
        self._claim(chosen)
        for index in chosen:
            self._submit(index, "reset", seed)
        results = self._wait_for(chosen)
        return [results[index][0] for index in chosen], [results[index][1] for index in chosen]

    def step(
        self, actions: Sequence[str] | Mapping[int, str]
    ) -> tuple[list[str], list[float], list[bool], list[bool], list[Info]]:
        """Play one turn in every environment, or in those that the mapping names, and wait for all of them.

        Returns:
            Observations, rewards, terminated, truncated and infos, each a list in the order of `actions`.

        Raises:
            ClosedError: the vector is closed.
            ValueError: not one action per environment, or an index out of range or still at work.
        """
        if not isinstance(actions, Mapping):
            if isinstance(actions, str):  # which is a sequence of texts, too
                raise ValueError(f"got the text {actions!r:.200} as actions; pass a list, or {{index: action}}")
            if len(actions) != self.num_envs:
                raise ValueError(
                    f"got {len(actions)} actions for {self.num_envs} environments; pass {{index: action}} to step some"
                )
            actions = dict(enumerate(actions))
        self._check_none_pending()
        self.send(actions)
        results = self._wait_for(list(actions))
        transitions: list[Transition] = [results[index] for index in actions]
        return (
            [one.observation for one in transitions],
            [one.reward for one in transitions],
            [one.terminated for one in transitions],
            [one.truncated for one in transitions],
            [one.info for one in transitions],
        )

    def send(self, actions: Mapping[int, str]) -> None:
        """Start one turn in the environments named. Raises as `step`."""
        self._claim(list(actions))
        for index, action in actions.items():
            self._submit(index, "step", action)

    def recv(self, at_least: int = 1) -> dict[int, Transition]:
        """Wait until at least so many of the turns sent have come back, and take all that have.

        Raises:
            ClosedError: the vector is closed.
            ValueError: fewer turns than that are under way.
        """
        self._check_open()
        if at_least > len(self._pending):
            raise ValueError(f"recv(at_least={at_least}), but {len(self._pending)} turns are under way")
        return self._take(self._receive(at_least))

    def drain(self) -> None:
        """Wait for the calls under way and forget their results.

        For a caller that was interrupted between `send` and `recv`: afterwards it can `reset` those environments.

        Raises:
            ClosedError: the vector is closed.
        """
        self._check_open()
        if self._pending:
            self._settle()
            self._pending.clear()

    def close(self) -> None:
        """Close every environment and stop every worker. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._pending.clear()
            self._shut_down()

    @abstractmethod
    def _submit(self, index: int, method: str, argument: Any) -> None:
        """Call a `Member` method of one environment, now or in the background."""

    @abstractmethod
    def _receive(self, at_least: int) -> dict[int, Any]:
        """Results of finished calls, each handed out once, waiting until there are `at_least` of them."""

    @abstractmethod
    def _settle(self) -> None:
        """Wait until no call is under way, and forget all results."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Close the members and stop the workers."""

    def _wait_for(self, indices: Sequence[int]) -> dict[int, Any]:
        return self._take(self._receive(len(indices)))

    def _take(self, results: dict[int, Any]) -> dict[int, Any]:
        self._pending.difference_update(results)
        return results

    def _claim(self, indices: Sequence[int]) -> None:
        self._check_open()
        unknown = [index for index in indices if not 0 <= index < self.num_envs]
        if unknown:
            raise ValueError(f"no environments {unknown}; there are {self.num_envs}")
        busy = [index for index in indices if index in self._pending]
        if busy or len(set(indices)) < len(indices):
            raise ValueError(
                f"environments {busy or list(indices)} are still at work or named twice; recv() them first"
            )
        self._pending.update(indices)

    def _check_none_pending(self) -> None:
        # What `send` started must not come back as the result of a `reset` or `step`.
        if self._pending:
            raise ValueError(f"{len(self._pending)} turns sent earlier are under way; recv() them before this")

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self!r} is closed; build a new one with make_vec()")

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        ids = sorted(set(self.env_ids))
        shown = ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more ids"
        return f"<{type(self).__name__} {self.num_envs} x {shown}{', closed' if self._closed else ''}>"
