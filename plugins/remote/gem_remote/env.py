"""An environment that a server plays."""

from __future__ import annotations

import copy
import os
import random
import zlib
from collections.abc import Mapping
from typing import Any

from gem_core.env import Env, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_remote.connection import Connection, Lost
from gem_remote.messages import Call, Draw, NumTasks, Played, Render, Reset, Sample, Step

URL = "GEM_REMOTE_URL"
"""Environment variable with the server's address, for environments that are given none."""
_EPISODE = ("_rng", "_played", "_shown", "_lost", "_unplayable")
"""The attributes that a snapshot keeps."""


class RemoteEnv(Env):
    """Plays an environment of a `gem-core serve` elsewhere, in a session of its own.

    A seed gives the same episode as it does where the server is. A `reset()` without a seed draws one from this
    environment's own generator. If the server is lost, the episode fails with an `EnvError`, and the next `reset()`
    connects again.

    A snapshot is the seed and the calls of the episode so far, which are played again when it is restored.

    Args:
        env_id: the environment, as the server names it.
        url: `ws://host:port` or `wss://...`; by default the environment variable `GEM_REMOTE_URL`.
        patience: seconds for which `reset()` tries to reach a server that is starting or full.
    """

    def __init__(self, env_id: str, url: str | None = None, *, patience: float = 30.0) -> None:
        self._url = url or os.environ.get(URL, "")
        if not self._url.startswith(("ws://", "wss://")):
            raise EnvError(
                f"remote:{env_id} needs the address of its server, not {self._url!r}: give url='ws://host:port', or "
                f"set {URL}. `gem-core serve {env_id}` prints it"
            )
        self._env_id = env_id
        self._patience = patience
        self._connection: Connection | None = None
        self._takes_task: bool | None = None
        self._played: list[Played] = []
        self._shown = 0
        self._behind = False
        self._lost = ""

    @property
    def takes_task(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the server's environment takes a task number. Connects."""
        if self._takes_task is None:
            self._takes_task = self._connected().takes_task
        return self._takes_task

    @property
    def num_tasks(self) -> int | None:
        """The number of tasks of the server's environment. Connects."""
        return self._ask(NumTasks())

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, in a new session if the last one is lost. Options are the served environment's.

        Raises:
            EnvError: no server was reached within `patience`, or it does not serve the environment. What the
                environment raises is a `RemoteError`.
        """
        super().reset(seed=seed)
        call = Reset(self.rng.getrandbits(63) if seed is None else seed, options)
        self._played, self._lost, self._behind = [], "", False
        try:
            result = self._connected().ask(call)
        except Lost:  # in the time between two episodes: nothing is lost
            self._connection = None
            result = self._asked(call)
        self._played, self._shown = [call], _digest(0, result)
        return result

    def step(self, action: str) -> StepResult:
        """Play one turn. Raises an `EnvError` where the session was lost, and a `RemoteError` as `reset`."""
        call = Step(action)
        result = self._ask(call)
        self._played.append(call)
        self._shown = _digest(self._shown, result)
        return result

    def sample_random_action(self) -> str:
        """A valid action, drawn by the server's environment from its own generator."""
        action = self._ask(Sample())
        self._played.append(Sample())
        return action

    def draw_action(self, rng: random.Random) -> str:
        """A valid action, drawn by the server's environment from a generator that `rng` seeds."""
        return self._ask(Draw(rng.getrandbits(63)))

    def render(self) -> str | None:
        """What the server's environment shows to a person."""
        return self._ask(Render())

    def close(self) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        self._behind = True
        if connection is not None:
            connection.close()

    def get_state(self) -> Any:
        """The seed and the calls of the episode so far."""
        return copy.deepcopy({name: vars(self).get(name) for name in _EPISODE})

    def set_state(self, state: Any) -> None:
        """Continue from a snapshot. The next call plays the episode so far again.

        That call raises an `EnvError` if the episode went another way, as it may if the environment does not draw from
        `self.rng` only.
        """
        vars(self).update(copy.deepcopy(state))
        self._behind = True

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_connection": None, "_behind": True}

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """The server's environment checks them."""

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._url, self._env_id, self._patience)
        return self._connection

    def _ask(self, call: Call) -> Any:
        if self._lost:
            raise EnvError(f"{self!r}: this episode is lost: {self._lost}. Call reset()")
        if self._behind:
            self._catch_up()
        return self._asked(call)

    def _asked(self, call: Call) -> Any:
        try:
            return self._connected().ask(call)
        except Lost as error:
            self._connection, self._lost = None, str(error)
            raise EnvError(f"{self!r}: {error}. The episode is lost; reset() connects again") from error

    def _catch_up(self) -> None:
        self._behind, shown = False, 0
        try:
            for call in self._played:
                result = self._asked(call)
                shown = shown if isinstance(call, Sample) else _digest(shown, result)
            if shown != self._shown:
                raise EnvError(
                    f"{self!r}: the episode went another way when its seed and actions were played again. Only an "
                    "environment that draws from self.rng can be restored"
                )
        except EnvError as error:
            self._lost = self._lost or str(error)
            raise


def _digest(previous: int, result: Any) -> int:
    """A checksum over what an episode has shown, its infos aside, one turn at a time."""
    shown = result[:-1] if isinstance(result, tuple) else result
    return zlib.crc32(repr(shown).encode("utf-8", "surrogatepass"), previous)
