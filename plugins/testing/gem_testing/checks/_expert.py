"""The check of the expert that an environment may have."""

from __future__ import annotations

from collections.abc import Iterator

from gem_core.env import Env
from gem_testing._play import MAX_TURNS, Subject, as_json, ended, play

_ROUNDING = 1e-6


def expert(subject: Subject) -> Iterator[str]:
    """`expert_action`, if there is one, gives valid actions, leaves the episode alone, and beats chance."""
    env, twin = subject.make(), subject.make()
    returns: list[tuple[float, float]] = []
    for seed in range(subject.seeds):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        earned = 0.0
        for turn in range(1, MAX_TURNS + 1):
            try:
                action, again = env.expert_action(), env.expert_action()
            except NotImplementedError:
                return
            if problem := _problem(action, again):
                yield f"expert_action() gave {problem} in turn {turn} of seed {seed}"
                return
            observation, reward, terminated, truncated, info = env.step(action)
            *other, other_info = twin.step(action)
            if ([observation, reward, terminated, truncated], as_json(info)) != (other, as_json(other_info)):
                yield (
                    f"expert_action() changed the episode: turn {turn} of seed {seed} differs from the same turn "
                    "without it. Read the state, and leave it and self.rng alone"
                )
                return
            earned += reward
            if info.get("invalid_action"):
                yield f"expert_action() gave {action!r:.60} in turn {turn} of seed {seed}, which step() called invalid"
                return
            if terminated or truncated:
                if (drawn := _random_return(twin, seed)) is not None:
                    returns.append((earned, drawn))
                break
    best, chance = (sum(one) for one in zip(*returns, strict=True)) if returns else (0.0, 0.0)
    if best < chance - _ROUNDING:
        count = len(returns)
        yield (
            f"the expert earned {best / count:.3f} an episode, and random play {chance / count:.3f}. "
            "Play better, or leave expert_action out"
        )


def _problem(action: object, again: object) -> str | None:
    if not isinstance(action, str):
        return f"{action!r:.80}, which is no string,"
    return None if action == again else f"{action!r:.60} and then {again!r:.60}"


def _random_return(env: Env, seed: int) -> float | None:
    """The return of random play; `None` if the episode did not end."""
    trace = play(env, seed)
    return sum(turn[2] for turn in trace[1:]) if ended(trace) else None
