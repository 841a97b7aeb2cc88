"""Random play of environments, as data for tiny models before training."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from gem_core.env import Env, Info, StepResult, Wrapper
from gem_core.failures import FailurePolicy
from gem_core.vector import Autoreset, VectorEnv, make_vec

LONGEST_PLAY = 40
"""Turns after which an episode is abandoned: random play may never end it, and the action format is seen by then."""

SECONDS = 60.0
"""Time limit of one reset or step, in seconds."""

_ACTION = "gem_tiny_action"


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
        Episodes of up to `LONGEST_PLAY` turns; the last entry of each has no action.

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
        failures=FailurePolicy(timeout=SECONDS),
    ) as vec:
        for number in itertools.count():
            if episode := _episode(vec, number % len(env_ids)):
                yield episode


def _episode(vec: VectorEnv, index: int) -> list[RandomTurn]:
    """One episode of one environment; empty if the environment failed."""
    (observation,), (info,) = vec.reset(slots=[index])
    turns: list[RandomTurn] = []
    done = False
    while not done and len(turns) < LONGEST_PLAY:
        (shown,), _, (terminated,), (truncated,), (after,) = vec.step({index: ""})
        if _ACTION not in after:  # the vector ended the episode, not the environment
            return []
        turns.append(RandomTurn(observation, info, after[_ACTION]))
        observation, info, done = shown, after, terminated or truncated
    return [*turns, RandomTurn(observation, info, None)]


class _RandomPlayer(Wrapper):
    """Plays a random valid action in place of the given one, and reports it in `info`."""

    def step(self, action: str) -> StepResult:
        own = self.env.sample_random_action()
        observation, reward, terminated, truncated, info = self.env.step(own)
        return observation, reward, terminated, truncated, {**info, _ACTION: own}
