"""The environments of an environment worker, which all its managers share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gem_core.rollout import AsyncPolicy, Episode, EpisodeRunner


class Player:
    """Plays episodes for many threads, in an event loop of its own.

    Args:
        runner: plays them; closed with this.
    """

    def __init__(self, runner: EpisodeRunner) -> None:
        self._runner = runner
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gem-player", daemon=True)
        self._thread.start()

    def play(self, policy: AsyncPolicy, task: int, env_id: str, row: int) -> Episode | None:
        """Play one episode; blocks. As `EpisodeRunner.run`, raises as that does."""
        playing = self._runner.run(policy, task, env_id, row=row)
        return asyncio.run_coroutine_threadsafe(playing, self._loop).result()

    def close(self) -> None:
        """Close the environments."""
        self._runner.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class _Shared:
    player: Player
    users: int = 0


_players: dict[str, _Shared] = {}
_lock = threading.Lock()


@contextmanager
def shared_player(name: str, build: Callable[[], EpisodeRunner]) -> Iterator[Player]:
    """The player of that name of this process: the first who asks for it builds it, the last who leaves closes it.

    Args:
        name: of the split.
        build: makes its runner.
    """
    with _lock:
        if name not in _players:
            _players[name] = _Shared(Player(build()))
        shared = _players[name]
        shared.users += 1
    try:
        yield shared.player
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _players[name]
                shared.player.close()
