"""A session of the server: one environment, and the calls of one client."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

from gem_core.env import Env
from gem_core.errors import near_matches, printable
from gem_core.image import IMAGES, as_uris
from gem_core.vector import failure_of
from gem_remote._messages import (
    PROTOCOL,
    Answer,
    Draw,
    Failed,
    Open,
    RemoteCall,
    Render,
    Request,
    Reset,
    Sample,
    Step,
    decoded_request,
    encoded,
    least_size,
)

_log = logging.getLogger("gem_remote")


class EnvSession:
    """Plays one environment. Its methods run in threads, and wait for one another.

    Args:
        builders: builds an environment, by the ids that clients may play.
        most_bytes: of an answer.
    """

    def __init__(self, builders: Mapping[str, Callable[[], Env]], most_bytes: int) -> None:
        self._builders = builders
        self._most_bytes = most_bytes
        self._env: Env | None = None
        self._turn = threading.Lock()
        self.over = False
        """Whether the reply was the last one."""

    def answer(self, data: bytes) -> bytes:
        """The reply to a message. Raises nothing, whatever the client sends and the environment does."""
        with self._turn:
            try:
                request = _request(data)
                result = self._opened(request) if isinstance(request, Open) else self._called(request)
            except _Refused as refused:
                self.over = True
                return encoded(Failed("EnvError", str(refused), over=True))
            except BaseException as error:  # also SystemExit; Ctrl-C arrives in the main thread
                return encoded(_failed(error))
            return self._packed(result)

    def close(self) -> None:
        """Close the environment, after the last call; what it raises meanwhile is logged."""
        with self._turn:
            env, self._env = self._env, None
            if env is None:
                return
            try:
                env.close()
            except BaseException as error:
                _log.warning("closing an environment raised:\n%s", printable(failure_of(error).traceback))

    def _opened(self, request: Open) -> Any:
        if request.protocol != PROTOCOL:
            raise _Refused(
                f"protocol {request.protocol}, and this server speaks {PROTOCOL}: install one gem-core on both"
            )
        build = self._builders.get(request.env_id)
        if build is None or self._env is not None:
            hint = near_matches(request.env_id, self._builders)
            raise _Refused(f"{request.env_id!r} is not served.{hint} Served: {', '.join(self._builders)}")
        self._env = build()
        return [bool(self._env.takes_data_index)]

    def _called(self, call: RemoteCall) -> Any:
        env = self._env
        if env is None:
            raise _Refused("the session has no environment; its first message says which")
        if isinstance(call, Step):
            return _shown(env.step(call.action))
        if isinstance(call, Reset):
            return _shown(env.reset(seed=call.seed, **call.options))
        if isinstance(call, Sample):
            return env.sample_random_action()
        if isinstance(call, Draw):
            return env.draw_action(random.Random(call.seed))
        return env.render() if isinstance(call, Render) else env.data_size

    def _packed(self, result: Any) -> bytes:
        try:
            size = least_size(result, self._most_bytes)
            if size <= self._most_bytes:
                data = encoded(Answer(result))
                if (size := len(data)) <= self._most_bytes:
                    return data
        except Exception as error:  # also what its values raise while they are read
            return encoded(Failed("TypeError", f"the environment's answer cannot be sent: {error}", over=False))
        said = f"the environment's answer has {size:,} bytes or more, and the server sends {self._most_bytes:,} at most"
        return encoded(Failed("ValueError", said, over=False))


def _shown(result: Any) -> Any:
    """What a reset or a step returned, with its images as data URIs, as vectors make them."""
    if isinstance(result, tuple) and isinstance(info := cast("Any", result)[-1], dict) and IMAGES in info:
        return (*cast("Any", result)[:-1], {**info, IMAGES: as_uris(info[IMAGES])})
    return cast("Any", result)


class _Refused(Exception):
    """The session is over, for the reason that is said to the client."""


def _request(data: bytes) -> Request:
    try:
        return decoded_request(data)
    except ValueError as error:
        raise _Refused(str(error)) from error


def _failed(error: BaseException) -> Failed:
    failure = failure_of(error)
    _log.warning("an environment raised:\n%s", printable(failure.traceback))
    name = type(error).__name__
    return Failed(name, failure.error.removeprefix(f"{name}: "), over=False)
