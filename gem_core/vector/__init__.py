"""Environments played side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from gem_core.env import Env
from gem_core.errors import EnvFailure, near_matches
from gem_core.failures import DEFAULT_TIMEOUT, FailurePolicy
from gem_core.registry import build
from gem_core.registry import spec as find_spec
from gem_core.seeding import fresh_seed
from gem_core.specs import EnvSpec
from gem_core.vector.autoreset import Autoreset
from gem_core.vector.base import VectorEnv
from gem_core.vector.calls import Transition
from gem_core.vector.faults import Fault
from gem_core.vector.member import Member
from gem_core.vector.mixture import fewest_places, share_places, weights_of
from gem_core.vector.seat import Seat
from gem_core.vector.statistics import EnvStatistics
from gem_core.vector.sync import SyncVectorEnv
from gem_core.vector.thread import ThreadVectorEnv

__all__ = [
    "Autoreset",
    "Backend",
    "EnvStatistics",
    "Fault",
    "Transition",
    "VectorEnv",
    "make_vec",
    "share_places",
    "weights_of",
]

Backend = Literal["sync", "thread", "process", "ray"]
BACKENDS: tuple[Backend, ...] = ("sync", "thread", "process", "ray")


def make_vec(
    env_ids: str | Sequence[str] | Mapping[str, float],
    num_envs: int | None = None,
    *,
    backend: Backend = "sync",
    autoreset: Autoreset | str = Autoreset.SAME_STEP,
    seed: int | None = None,
    group_size: int = 1,
    first_episode: int = 0,
    shard: tuple[int, int] = (0, 1),
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    workers: int | None = None,
    failures: FailurePolicy | None = None,
) -> VectorEnv:
    """Build a vector of environments.

    Args:
        env_ids: one id, several that share the places equally, or `{id: weight}`. The shares are of places, so
            environments with short episodes play more of them.
        num_envs: how many environments; by default as many as the list or the (whole) weights say.
        backend: `sync` for environments that answer in microseconds, `thread` for those that wait, `process` for those
            that compute, hang or crash, `ray` for more than one machine.
        autoreset: see `Autoreset`.
        seed: the episode `k` of environment `i` has the seed `derive_seed(seed, i // group_size, k)`, in every
            backend and at every width; `None` draws a seed from the operating system.
        group_size: so many neighbours in a row play the same seeds, for estimators that compare episodes of one task.
        first_episode: number of the first episode of each environment; a run that is resumed goes on where it was.
        shard: `(number, count)` of this vector among several that share the tasks, for example one on each rank.
            Environments over a data set (`Env.takes_task`) play different rows in all of them.
        wrappers: applied to each environment in this order.
        env_kwargs: override the specs' keyword arguments: of all environments, or `{id: {...}}` of those named.
        workers: how many threads (by default one per environment), processes (one per core) or Ray actors (one per
            CPU of the cluster) share the environments, neighbours together.
        failures: what becomes of environments that raise, hang, die or return garbage; see `FailurePolicy`.

    Returns:
        A vector to `reset()` first.

    Raises:
        ValueError: a number of environments that cannot work, an unknown backend or autoreset mode.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError: as `make`; one environment of
            each id is built here, so that a mistake shows at once and not as a failed episode.
    """
    weights = weights_of(env_ids)
    count = fewest_places(weights) * group_size if num_envs is None else num_envs
    whole = {"num_envs": count, "group_size": group_size, "workers": 1 if workers is None else workers}
    number, shards = _pair(shard)
    whole |= {"first_episode": first_episode, "shard[0]": number, "shard[1]": shards}
    if wrong := {name: value for name, value in whole.items() if type(value) is not int}:
        raise ValueError(f"whole numbers are needed, not {wrong}")
    if seed is not None and not isinstance(seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"seed must be a whole number or None, not {seed!r}")
    if failures is not None and not isinstance(failures, FailurePolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"failures must be a FailurePolicy, not {failures!r}; for example FailurePolicy(then='drop')")
    if count < 1 or group_size < 1 or count % group_size:
        raise ValueError(
            f"cannot make {count} environments in groups of {group_size}: both must be at least 1, and the groups full"
        )
    if first_episode < 0 or not 0 <= number < shards:
        raise ValueError(
            f"first_episode must be at least 0, and shard a number below its count: {first_episode}, {shard}"
        )
    if backend not in BACKENDS:
        raise ValueError(
            f"no vector backend {backend!r}.{near_matches(str(backend), BACKENDS)} Use one of {[*BACKENDS]}"
        )
    policy = failures or FailurePolicy()
    _check_backend(backend, workers, policy)
    places = share_places(weights, count // group_size)
    specs = {env_id: find_spec(env_id) for env_id in weights}
    kwargs = {env_id: _kwargs_of(env_id, weights, env_kwargs or {}) for env_id in weights}
    for env_id, env_spec in specs.items():
        _try(env_spec, wrappers, kwargs[env_id])
    run_seed = fresh_seed() if seed is None else seed
    seats = _seats(places, group_size, run_seed, first_episode, (number, shards))
    builders = {env_id: partial(build, one, kwargs[env_id], tuple(wrappers)) for env_id, one in specs.items()}
    mode = _mode(autoreset)
    settings: dict[str, Any] = {"autoreset": mode, "group_size": group_size, "failures": policy}
    return _build(backend, seats, builders, workers, settings)


def _pair(shard: object) -> tuple[Any, Any]:
    if not isinstance(shard, tuple | list) or len(shard) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise ValueError(f"shard must be (number, count), for example (0, 2), not {shard!r}")
    return tuple(shard)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _kwargs_of(env_id: str, env_ids: Iterable[str], env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one environment, from those of all or of each."""
    if not any(":" in name for name in env_kwargs):  # no id
        return dict(env_kwargs)
    if unknown := [name for name in env_kwargs if name not in env_ids]:
        raise ValueError(f"env_kwargs names {unknown}, and the environments are {[*env_ids]}")
    return dict(env_kwargs.get(env_id, {}))


def _seats(places: Sequence[str], group_size: int, seed: int, first_episode: int, shard: tuple[int, int]) -> list[Seat]:
    """One seat per environment; those of one id share its tasks, across all shards."""
    own, shards = shard
    seats: list[Seat] = []
    for stream, env_id in enumerate(places):
        task = places[:stream].count(env_id) * shards + own
        stride = places.count(env_id) * shards
        seats += [Seat(env_id, stream, seed, task, stride, first_episode - 1) for _ in range(group_size)]
    return seats


def _build(
    backend: Backend,
    seats: list[Seat],
    builders: Mapping[str, Callable[[], Env]],
    workers: int | None,
    settings: dict[str, Any],
) -> VectorEnv:
    autoreset = settings["autoreset"] is Autoreset.SAME_STEP

    def member(index: int) -> Member:
        return Member(index, builders[seats[index].env_id], autoreset=autoreset)

    if backend == "sync":
        return SyncVectorEnv([member(index) for index in range(len(seats))], seats, **settings)
    if backend == "thread":
        return ThreadVectorEnv(member, seats, min(workers or len(seats), len(seats)), **settings)
    from gem_core.vector.worker import Home

    homes = [Home(seat.env_id, autoreset) for seat in seats]
    if backend == "process":
        from gem_core.vector.process import ProcessVectorEnv

        return ProcessVectorEnv(homes, builders, seats, min(workers or _cores(), len(seats)), **settings)
    from gem_core.vector.ray import RayVectorEnv

    return RayVectorEnv(homes, builders, seats, workers, **settings)


def _check_backend(backend: Backend, workers: int | None, policy: FailurePolicy) -> None:
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if backend != "sync":
        return
    if workers is not None:
        raise ValueError(f"workers={workers} has no effect on the sync backend; use backend='thread'")
    if policy.timeout not in (None, DEFAULT_TIMEOUT):
        raise ValueError(
            f"the sync backend cannot enforce timeout={policy.timeout:g}: it has no other thread to go on in. Use "
            "backend='process', or timeout=None."
        )


def _mode(autoreset: Autoreset | str) -> Autoreset:
    try:
        return Autoreset(autoreset)
    except ValueError:
        raise ValueError(f"autoreset must be one of {[one.value for one in Autoreset]}, not {autoreset!r}") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _try(env_spec: EnvSpec, wrappers: Sequence[Callable[[Env], Env]], env_kwargs: Mapping[str, Any]) -> None:
    env = build(env_spec, env_kwargs, wrappers)
    try:
        env.close()
    except SystemExit as error:
        raise EnvFailure(f"{env_spec.id} called sys.exit({error}) in close()") from error
