"""Environments that are played elsewhere, in a session that can be lost."""

from __future__ import annotations

import copy
import zlib
from abc import abstractmethod
from typing import Any, Protocol, cast

from gem_core.env import Env, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_core.image import IMAGES
from gem_remote._messages import PlayedCall, RemoteCall, Reset, Step
from gem_remote._sockets import Lost

_EPISODE = ("_rng", "_played", "_shown", "_lost", "_unplayable")
"""The attributes that a snapshot keeps."""


class EnvConnection(Protocol):
    """A connection to an environment elsewhere."""

    def ask(self, call: RemoteCall, /) -> Any:
        """What the environment returns. Raises `Lost` if the session is over, else as `EnvElsewhere.reset`."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class EnvElsewhere(Env):
    """Plays an environment in a session, which opens with the first call.

    A `reset()` without a seed draws one from this environment's own generator. If the session is lost, the episode
    fails with an `EnvError`, and the next `reset()` opens another session.

    A snapshot is the seed and the calls of the episode so far, which are played again when it is restored.
    """

    def __init__(self) -> None:
        self._session: Any = None
        self._played: list[PlayedCall] = []
        self._shown = 0
        self._behind = False
        self._lost = ""

    @abstractmethod
    def _opened(self) -> EnvConnection:
        """A new session. Raises `EnvError` if none can be had."""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, in a new session if the last one is lost. Options are those of the environment elsewhere.

        Raises:
            EnvError: no session can be had. What the environment raises is a `RemoteError`.
        """
        super().reset(seed=seed)
        call = Reset(self.rng.getrandbits(63) if seed is None else seed, options)
        self._played, self._lost, self._behind = [], "", False
        try:
            result = self._connected().ask(call)
        except Lost:  # in the time between two episodes: nothing is lost
            self._session = None
            result = self._asked(call)
        self._played.append(call)
        self._shown = _digest(0, result)
        return result

    def step(self, action: str) -> StepResult:
        """Play one turn. Raises an `EnvError` where the session was lost, and a `RemoteError` as `reset`."""
        call = Step(action)
        result = self._ask(call)
        self._played.append(call)
        self._shown = _digest(self._shown, result)
        return result

    def close(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        self._behind = True
        if session is not None:
            session.close()

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
        return {**vars(self), "_session": None, "_behind": True}

    def _connected(self) -> Any:
        if self._session is None:
            self._session = self._opened()
        return self._session

    def _ask(self, call: RemoteCall) -> Any:
        if self._lost:
            raise EnvError(f"{self!r}: this episode is lost: {self._lost}. Call reset()")
        if self._behind:
            self._catch_up()
        return self._asked(call)

    def _asked(self, call: RemoteCall) -> Any:
        try:
            return self._connected().ask(call)
        except Lost as error:
            self._session, self._lost = None, str(error)
            raise EnvError(f"{self!r}: {error}. The episode is lost; reset() connects again") from error

    def _catch_up(self) -> None:
        self._behind, shown = False, 0
        try:
            for call in self._played:
                result = self._asked(call)
                shown = _digest(shown, result) if isinstance(call, Reset | Step) else shown
            if shown != self._shown:
                raise EnvError(
                    f"{self!r}: the episode went another way when its seed and actions were played again. Only an "
                    "environment that draws from self.rng can be restored"
                )
        except EnvError as error:
            self._lost = self._lost or str(error)
            raise


def _digest(previous: int, result: Any) -> int:
    """A checksum over what an episode has shown, images included and other infos aside, one turn at a time."""
    shown: Any = result
    if isinstance(result, tuple) and result:
        *values, info = cast("tuple[Any, ...]", result)
        shown = (*values, _images(info))
    return zlib.crc32(repr(shown).encode("utf-8", "surrogatepass"), previous)


def _images(info: Any) -> Any:
    return cast("Any", info).get(IMAGES) if isinstance(info, dict) else None
