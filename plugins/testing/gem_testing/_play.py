"""Playing episodes and comparing them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from gem_core.env import Env
from gem_core.registry import make

MAX_TURNS = 200
"""Turns after which random play stops if the environment sets no limit."""

SEEDS = (0, 1, 2**63 - 1)
"""0, which `if seed:` takes for no seed, and the largest seed of the engine, too large for numpy's legacy generator."""

_EARLIER = "prev_ep_"
"""Prefix of the keys in a reset's info that describe the previous episode."""

Trace: TypeAlias = list[tuple[Any, ...]]
"""The observable part of an episode: a tuple for the reset and one for each turn."""


@dataclass(frozen=True)
class Subject:
    """The environment under test."""

    env_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seeds: int = 5
    """Seeds to play, from 0, where a check plays several episodes."""
    backend: str = "sync"
    """Of the vector that it is played in."""

    def make(self, **more: Any) -> Env:
        """Build an instance."""
        return make(self.env_id, **self.kwargs, **more)


def play(env: Env, seed: int | None, actions: Iterable[str] | None = None) -> Trace:
    """Play an episode from its reset to its end.

    Args:
        env: the environment.
        seed: of the episode.
        actions: what to play; random valid actions by default.
    """
    observation, info = env.reset(seed=seed)
    own = {key: value for key, value in info.items() if not key.startswith(_EARLIER)}
    return [(observation, as_json(own)), *go_on(env, actions)]


def go_on(env: Env, actions: Iterable[str] | None = None) -> Trace:
    """Continue an episode. Arguments as `play`."""
    trace: Trace = []
    for action in random_actions(env) if actions is None else actions:
        observation, reward, terminated, truncated, info = env.step(action)
        trace.append((action, observation, reward, terminated, truncated, as_json(info)))
        if terminated or truncated:
            break
    return trace


def go_midway(env: Env, seed: int) -> bool:
    """Bring an environment to the middle of an episode, or to its start if one turn ends it. Returns which."""
    env.reset(seed=seed)
    midway = not ended(go_on(env, [env.sample_random_action()]))
    if not midway:
        env.reset(seed=seed)
    return midway


def random_actions(env: Env) -> Iterator[str]:
    """Random valid actions, drawn on demand."""
    for _ in range(MAX_TURNS):
        yield env.sample_random_action()


def actions_of(trace: Trace) -> list[str]:
    """The actions of a trace that `play` made."""
    return [turn[0] for turn in trace[1:]]


def ended(trace: Trace) -> bool:
    """The last turn of a trace was the last of its episode."""
    return any(trace[-1][3:5])


def as_json(info: object) -> str:
    """The info as text, for comparison. A value that JSON does not support becomes its type."""
    try:
        return json.dumps(info, sort_keys=True, default=lambda value: type(value).__name__)
    except (TypeError, ValueError, RecursionError):
        return "<not JSON>"


def difference(one: Trace, other: Trace) -> str | None:
    """The first difference of two traces, as the end of a sentence, or `None`."""
    for turn, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return f"{f'turn {turn}' if turn else 'reset'} gave {left!r:.160} and then {right!r:.160}"
    if len(one) != len(other):
        return f"one has {len(one) - 1} turns and the other {len(other) - 1}"
    return None


def observation_problem(observation: Any) -> str | None:
    """What is wrong with an observation, as the end of a sentence, or `None`."""
    if not isinstance(observation, str):
        return f"gave the observation {observation!r:.80}. Give a string"
    try:
        observation.encode()
    except UnicodeEncodeError as error:
        return (
            f"gave an observation that UTF-8 cannot encode ({error.reason}), so no tokenizer takes it. "
            "Do not repeat an action unchecked"
        )
    return None


def transition_problem(result: Any) -> str | None:
    """What keeps a result of `step` from being a transition, as the end of a sentence, or `None`."""
    if not isinstance(result, tuple) or len(cast("tuple[Any, ...]", result)) != 5:
        return f"gave {result!r:.80}. Give the tuple (observation, reward, terminated, truncated, info)"
    observation, reward, terminated, truncated, info = cast("tuple[Any, ...]", result)
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not math.isfinite(reward):
        return f"gave the reward {reward!r:.80}. Give a finite float"
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool):
            return f"gave {flag!r:.80} for {name}. Give a bool"
    if not isinstance(info, dict):
        return f"gave the info {info!r:.80}. Give a dict"
    return observation_problem(observation)
