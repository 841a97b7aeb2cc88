"""An environment in a vector plays what it plays alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gem_core.env import RESERVED
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.vector import make_vec
from gem_testing._play import Subject, Trace, actions_of, as_json, difference, ended, go_on


def vector(subject: Subject) -> Iterator[str]:
    """Episodes in a vector of the subject's backend, one per seed and side by side, are those played alone."""
    seeds = [*range(subject.seeds)]
    with make_vec(
        subject.env_id,
        len(seeds),
        backend=subject.backend,
        autoreset="disabled",
        seed=0,
        env_kwargs=subject.kwargs,
        failures=FailurePolicy(then=ErrorAction.RAISE),
    ) as envs:
        openings = zip(*envs.reset(seed=seeds), strict=True)
        together: list[Trace] = [[(observation, _own(info))] for observation, info in openings]
        rows = [envs.task(slot).data_index for slot in range(len(seeds))]
        alone = [_alone(subject, seed, row) for seed, row in zip(seeds, rows, strict=True)]
        moves = [actions_of(trace) for trace in alone]
        for turn in range(max(map(len, moves), default=0)):
            playing = {
                slot: own[turn] for slot, own in enumerate(moves) if turn < len(own) and not _over(together[slot])
            }
            *results, infos = envs.step(playing)
            for place, (slot, action) in enumerate(playing.items()):
                together[slot].append((action, *(result[place] for result in results), _own(infos[place])))
    for seed, one, other in zip(seeds, alone, together, strict=True):
        if where := difference(one, other):
            yield (
                f"the episode of seed {seed} in a vector with backend={subject.backend!r} was not the one played "
                f"alone: {where}. Let it depend on the seed and the actions only, not on the process"
            )
            return


def _alone(subject: Subject, seed: int, data_index: int) -> Trace:
    env = subject.make()
    options: dict[str, Any] = {"data_index": data_index} if env.takes_data_index else {}
    observation, info = env.reset(seed=seed, **options)
    trace: Trace = [(observation, _own(info))]
    played = go_on(env)
    env.close()
    return [*trace, *played]


def _over(trace: Trace) -> bool:
    return len(trace) > 1 and ended(trace)


def _own(info: dict[str, Any]) -> str:
    """The info without what the engine adds."""
    return as_json({key: value for key, value in info.items() if key not in RESERVED})
