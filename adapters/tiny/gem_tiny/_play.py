"""Random play of environments, as data for tiny models before training."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from gem_core.env import Env, Info, ResetResult, Wrapper
from gem_core.failures import FailurePolicy
from gem_core.vector import Autoreset, VectorEnv, checked_step, make_vec

MAX_PLAYED_TURNS = 40
"""Turns after which an episode is abandoned: random play may never end it, and the action format is seen by then."""

SECONDS = 60.0
"""Seconds after which an episode is abandoned. One that takes three times as many, its start included, has failed."""

_EPISODE = "gem_tiny_episode"


class RandomTurn(NamedTuple):
    """An observation, and the random valid action after it; `None` after the last observation."""

    observation: str
    info: Info
    action: str | None


def random_play(
    env_ids: Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Generator[list[RandomTurn], None, None]:
    """An endless stream of episodes, alternating between environments. Episodes whose environment fails are left out.

    Args:
        env_ids: environments to play.
        wrappers, env_kwargs: as for `make_vec`.
        seed: seed of the play.

    Yields:
        Episodes of up to `MAX_PLAYED_TURNS` turns; the last entry of each has no action.

    Raises:
        EnvFailure: more than half of 40 episodes of an environment failed.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    with make_vec(
        env_ids,
        len(env_ids),
        backend="thread",
        autoreset=Autoreset.DISABLED,
        seed=seed,
        wrappers=[*wrappers, _RandomPlayer],
        env_kwargs=env_kwargs,
        failures=FailurePolicy(timeout=3 * SECONDS),
    ) as vec:
        for number in itertools.count():
            if episode := _episode(vec, number % len(env_ids)):
                yield episode


def _episode(vec: VectorEnv, index: int) -> list[RandomTurn]:
    """One episode of one environment; empty if the environment failed."""
    _, (info,) = vec.reset(slots=[index])
    episode: list[RandomTurn] = info.get(_EPISODE, [])  # where an environment fails, the vector's info has none
    return episode


class _RandomPlayer(Wrapper):
    """Plays random valid actions to the end in its reset.

    A call wakes another thread and waits for it, which costs several times as much as an episode of a game.
    """

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        opening, first_info = self.env.reset(seed=seed, **options)
        observation, info = opening, first_info
        turns: list[RandomTurn] = []
        done = False
        end = time.monotonic() + SECONDS
        while not done and len(turns) < MAX_PLAYED_TURNS and time.monotonic() < end:
            own = self.env.sample_random_action()
            after = checked_step(self.env.step(own))  # the vector checks only what the reset gives
            turns.append(RandomTurn(observation, info, own))
            observation, info, done = after.observation, after.info, after.done
        turns.append(RandomTurn(observation, info, None))
        return opening, {**first_info, _EPISODE: turns}
