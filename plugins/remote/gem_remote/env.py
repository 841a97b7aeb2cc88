"""An environment that a `gem-core serve` plays."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

from gem_core.errors import EnvError
from gem_remote._connection import Connection
from gem_remote._elsewhere import EnvElsewhere
from gem_remote._messages import URL, DataSize, Draw, RemoteCall, Render, Sample


class RemoteEnv(EnvElsewhere):
    """Plays an environment of a `gem-core serve` elsewhere. A seed gives the same episode as it does there.

    Args:
        env_id: the environment, as the server names it.
        url: `ws://host:port` or `wss://...`; by default the environment variable `GEM_REMOTE_URL`. With several
            addresses, separated by spaces, each session is with one of these servers that has room.
        patience: seconds for which `reset()` tries to reach a server that is starting or full.
    """

    reads_thoughts = True
    """The server's environment says whether it wants them."""

    def __init__(self, env_id: str, url: str | None = None, *, patience: float = 30.0) -> None:
        super().__init__()
        given = url or os.environ.get(URL, "")
        self._urls = given.split()
        if not self._urls or not all(one.startswith(("ws://", "wss://")) for one in self._urls):
            instead = f", not {given!r}" if given else ""
            raise EnvError(
                f"remote:{env_id} needs the address of its server{instead}: give url='ws://host:port', or set {URL}. "
                f"`gem-core serve {env_id}` prints it"
            )
        self._env_id = env_id
        self._patience = patience
        self._takes_data_index: bool | None = None

    def _opened(self) -> Connection:
        return Connection(self._urls, self._env_id, self._patience)

    @property
    def takes_data_index(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the server's environment takes the index of a row. Connects."""
        if self._takes_data_index is None:
            self._takes_data_index = bool(self._connected().takes_data_index)
        return self._takes_data_index

    @property
    def data_size(self) -> int | None:
        """The number of tasks of the server's environment. Connects."""
        return self._value(DataSize(), int, type(None))

    def sample_random_action(self) -> str:
        """A valid action, drawn by the server's environment from its own generator."""
        action = self._value(Sample(), str)
        self._played.append(Sample())
        return action

    def draw_action(self, rng: random.Random) -> str:
        """A valid action, drawn by the server's environment from a generator that `rng` seeds."""
        return self._value(Draw(rng.getrandbits(63)), str)

    def render(self) -> str | None:
        """What the server's environment shows to a person."""
        return self._value(Render(), str, type(None))

    def _value(self, call: RemoteCall, *types: type) -> Any:
        """The answer to a call. Raises `EnvError` if it has none of these types: a server may be another program."""
        answer = self._ask(call)
        if type(answer) not in types:
            wanted = " or ".join(one.__name__ for one in types)
            raise EnvError(f"{self!r}: the server's answer to {type(call).__name__} is {answer!r:.200}, not {wanted}")
        return answer

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """The server's environment checks them."""
