"""One seed and one list of actions give one episode: alone, next to others, in threads, and from a copy."""

from __future__ import annotations

import hashlib
import pickle
import random
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from gem_core.env import Env
from gem_core.errors import ResetNeededError
from gem_testing._play import (
    MAX_TURNS,
    SEEDS,
    Subject,
    Trace,
    actions_of,
    difference,
    ended,
    go_midway,
    go_on,
    play,
)

MANY_SEEDS = 20
"""Seeds after which an environment that never differed counts as ignoring them."""
EQUAL_EPISODES = 3
"""Episodes after which a movement of the global random state is taken to be the environment's own."""
THREADS = 8
EPISODES_PER_THREAD = 5


def seeding(subject: Subject) -> Iterator[str]:
    """One seed and one list of actions give one episode, and the unseeded one after it."""
    used = subject.make()
    for seed in dict.fromkeys([*SEEDS, *range(subject.seeds)]):
        # Actions are drawn in advance: another check finds out whether drawing them is reproducible.
        actions, later = actions_of(play(used, seed)), actions_of(play(used, None))
        fresh = [subject.make(), subject.make()]
        expected, other = (play(env, seed, actions) for env in fresh)
        again = play(used, seed, actions)
        for what, found in (("an instance that had played before", again), ("two instances", other)):
            if where := difference(expected, found):
                yield (
                    f"reset(seed={seed}) and the same actions gave different episodes on {what}: {where}. Call super()."
                    "reset(seed=seed), draw from self.rng only, and set every attribute of an episode in reset()"
                )
                return
        if where := difference(*(play(env, None, later) for env in fresh)):
            yield (
                f"reset() after the episode of seed {seed} gave different episodes on two instances: {where}. "
                "Without a seed, continue with self.rng"
            )
            return


def seeds_differ(subject: Subject) -> Iterator[str]:
    """Different seeds give different episodes, unless there is only one."""
    env = subject.make()
    actions = actions_of(play(env, SEEDS[0]))
    expected = play(env, SEEDS[0], actions)
    if any(play(env, seed, actions) != expected for seed in range(1, MANY_SEEDS)):
        return
    if any(play(env, None, actions) != expected for _ in range(MANY_SEEDS)):
        yield (
            f"{MANY_SEEDS} different seeds gave the same episode, though episodes without a seed differ. "
            "Pass the seed on: super().reset(seed=seed)"
        )


def global_random(subject: Subject) -> Iterator[str]:
    """The global generators of `random` and `numpy.random` are neither moved nor used."""
    with _borrowed_global_random() as seed_globally:
        for name in _moving_global_random(subject, seed_globally):
            yield f"{name} moved the global random state, which belongs to the training run. Draw from self.rng"
        actions = actions_of(play(subject.make(), SEEDS[0]))
        seed_globally(1)
        one = play(subject.make(), SEEDS[0], actions)
        seed_globally(2)
        if where := difference(one, play(subject.make(), SEEDS[0], actions)):
            yield f"random.seed() or numpy.random.seed() outside changed the episode: {where}. Draw from self.rng"


def _moving_global_random(subject: Subject, seed_globally: Callable[[int], None]) -> list[str]:
    """The calls that move the global state.

    Other threads of the process may draw numbers during a call. Such a draw is not repeated at the same place, so a
    call counts only if it moves the state in every one of several equal episodes, and always to the same place.
    """
    episodes = [_global_random_after_each_call(subject, seed_globally) for _ in range(EQUAL_EPISODES)]
    moved = [calls[0] for calls in zip(*episodes, strict=False) if len({*calls}) == 1 and calls[0][1] is not None]
    return [*dict.fromkeys(name for name, _ in moved)]


def _global_random_after_each_call(
    subject: Subject, seed_globally: Callable[[int], None]
) -> list[tuple[str, bytes | None]]:
    """The calls of one episode and the global state after each, or `None` where the call left it alone."""
    calls: list[tuple[str, bytes | None]] = []
    seed_globally(1)
    before = _global_random()

    def call(name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        after = _global_random()
        calls.append((name, None if after == before else after))
        if after != before:
            seed_globally(1)
        return result

    env = call("the constructor", subject.make)
    call("reset()", env.reset, seed=SEEDS[0])
    for _ in range(MAX_TURNS):
        action = call("sample_random_action()", env.sample_random_action)
        _, _, terminated, truncated, _ = call("step()", env.step, action)
        if terminated or truncated:
            break
    return calls


@contextmanager
def _borrowed_global_random() -> Generator[Callable[[int], None], None, None]:
    import numpy

    def seed_globally(seed: int) -> None:
        random.seed(seed)
        numpy.random.seed(seed)

    states = random.getstate(), numpy.random.get_state()
    try:
        yield seed_globally
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])


def _global_random() -> bytes:
    import numpy

    states = pickle.dumps((random.getstate(), numpy.random.get_state()))
    return hashlib.sha256(states).digest()


def own_state(subject: Subject) -> Iterator[str]:
    """Instances that take turns do not change one another."""
    alone = [play(subject.make(), seed) for seed in SEEDS]
    envs = [subject.make() for _ in SEEDS]
    together = [play(env, seed, ()) for env, seed in zip(envs, SEEDS, strict=True)]
    for _ in range(max(map(len, alone)) - 1):
        for env, trace in zip(envs, together, strict=True):
            if not ended(trace):
                trace += go_on(env, [env.sample_random_action()])
    for seed, one, other in zip(SEEDS, alone, together, strict=True):
        if where := difference(one, other):
            yield (
                f"the episode of seed {seed} changed when other instances were played in between: {where}. "
                "Keep all state in the instance: no module variables, no mutable class attributes"
            )
            return


def threads(subject: Subject) -> Iterator[str]:
    """Instances in threads play as they do alone."""
    env = subject.make()
    alone = [play(env, seed) for seed in range(THREADS + EPISODES_PER_THREAD - 1)]
    start = threading.Barrier(THREADS)

    def work(worker: int) -> list[Trace]:
        start.wait()
        return _episodes_of(subject, worker)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads switch in the middle of calls
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(work, range(THREADS)))
    finally:
        sys.setswitchinterval(interval)
    for worker, episodes in enumerate(together):
        if episodes == alone[worker : worker + EPISODES_PER_THREAD]:
            continue
        # The actions may depend on what the instance had played, which is for another check to find.
        if where := next(filter(None, map(difference, _episodes_of(subject, worker), episodes)), None):
            yield (
                f"{THREADS} instances in threads played other episodes than alone: {where}. "
                "Share nothing that changes between instances"
            )
            return


def _episodes_of(subject: Subject, worker: int) -> list[Trace]:
    env = subject.make()
    return [play(env, seed) for seed in range(worker, worker + EPISODES_PER_THREAD)]


def pickling(subject: Subject) -> Iterator[str]:
    """An environment can be sent to another process, before its first episode and in the middle of one."""
    for moment in ("before its first reset", "in the middle of an episode"):
        midway = moment == "in the middle of an episode"
        env = subject.make()
        if midway:
            go_midway(env, SEEDS[0])
        try:
            copy: Env = pickle.loads(pickle.dumps(env))
        except Exception as error:
            yield (
                f"pickling it {moment} raised {type(error).__name__}: {error}. Define the class at the top of a "
                "module, and leave handles and lambdas out in __getstate__"
            )
            return
        one, other = (go_on(each) if midway else play(each, SEEDS[0]) for each in (env, copy))
        if where := difference(one, other):
            yield f"a copy pickled {moment} played on differently: {where}. Let __getstate__ keep all of the state"
            return


def saved_state(subject: Subject) -> Iterator[str]:
    """`set_state` restores what `get_state` saved, more than once; environments may refuse both."""
    env = subject.make()
    go_midway(env, SEEDS[0])
    try:
        state = env.get_state()
    except NotImplementedError:
        return
    expected = go_on(env)
    for which in ("first", "second"):
        env.set_state(state)
        if where := difference(expected, go_on(env)):
            yield (
                f"an episode went on differently after the {which} set_state() with one state: {where}. "
                "Save all that changes, the generator included, as a copy, and copy it again in set_state()"
            )
            return


def spawning(subject: Subject) -> Iterator[str]:
    """`spawn` gives another environment of the same id, which leaves this one alone."""
    env = subject.make()
    expected = play(subject.make(), SEEDS[0])
    env.reset(seed=SEEDS[0])
    twin = env.spawn()
    if twin is env or not isinstance(twin, Env):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield f"spawn() of {env!r} gave {twin!r}. Give a new environment"
        return
    if where := difference(expected, play(twin, SEEDS[0])):
        yield f"a spawned environment played seed {SEEDS[0]} differently: {where}. Build it with the same arguments"
    try:
        where = difference(expected[1:], go_on(env))
    except ResetNeededError:
        where = "its episode was over"
    if where:
        yield f"playing a spawned environment changed the one it came from: {where}. Share nothing that changes"
    go_midway(env, SEEDS[0])
    with suppress(NotImplementedError):
        twin = env.spawn(same_state=True)
        if where := difference(go_on(env), go_on(twin)):
            yield f"spawn(same_state=True) played on differently: {where}. Hand over all of the state"
