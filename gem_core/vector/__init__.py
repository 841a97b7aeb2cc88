"""Environments played side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from gem_core._arguments import strict
from gem_core.env import Env
from gem_core.errors import EnvFailure, FailureKind, convert_errors, described, near_matches
from gem_core.failures import DEFAULT_TIMEOUT, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import build
from gem_core.registry import spec as find_spec
from gem_core.seeding import fresh_seed
from gem_core.specs import BackendSpec
from gem_core.upstream import no_attribute
from gem_core.vector._autoreset import Autoreset
from gem_core.vector._base import VectorEnv
from gem_core.vector._calls import Transition, failure_of
from gem_core.vector._concurrency import ConcurrencyLimits, limits_of
from gem_core.vector._failures import decide_failure
from gem_core.vector._hosted import HostedEnv, checked_step
from gem_core.vector._statistics import EnvStatistics
from gem_core.vector._tasks import (
    EnvIds,
    Task,
    TaskPlan,
    TaskTable,
    fewest_slots,
    is_whole_number,
    share_slots,
    weights_of,
)
from gem_core.vector._thread import ThreadVectorEnv
from gem_core.vector.sync import SyncVectorEnv

__all__ = [
    "Autoreset",
    "EnvIds",
    "EnvStatistics",
    "HostedEnv",
    "SyncVectorEnv",
    "Task",
    "TaskPlan",
    "TaskTable",
    "ThreadVectorEnv",
    "Transition",
    "VectorEnv",
    "backend_spec",
    "checked_step",
    "decide_failure",
    "failure_of",
    "is_whole_number",
    "make_vec",
    "share_slots",
    "weights_of",
]


if not TYPE_CHECKING:  # a type checker finds the names that do not exist

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name)


BACKENDS = ("sync", "thread", "process")
"""Those of the core; plugins add others."""


@strict(
    {
        "async_mode": "Use backend='thread' for environments that wait, backend='process' for those that compute",
        "vec_kwargs": "Use env_kwargs={...} for all environments, or env_kwargs={id: {...}} for those of an id; "
        "gem_compat.make_vec takes a list with those of each place",
    },
    "Arguments of the environments go into env_kwargs={...}.",
)
def make_vec(
    env_ids: EnvIds,
    num_envs: int | None = None,
    *,
    backend: str = "sync",
    autoreset: Autoreset | str = Autoreset.SAME_STEP,
    seed: int | None = None,
    group_size: int = 1,
    first_episode: int = 0,
    shard: tuple[int, int] = (0, 1),
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    env_limits: Mapping[str, int] | None = None,
    workers: int | None = None,
    failures: FailurePolicy | None = None,
) -> VectorEnv:
    """Build a vector of environments.

    Args:
        env_ids: one id, a list, or `{id: weight}`. Slot `i` plays `list[i]`; a wider vector deals the list out
            again from its start. Weights are shares of the slots, evenly interleaved, so environments with short
            episodes play more of them. With groups and shards, this holds for the tasks of a round, not the slots.
        num_envs: number of slots; by default as many as the list or the (whole) weights say.
        backend: `sync` for environments that answer in microseconds, `thread` for those that wait, `process` for those
            that compute, hang or crash, `ray` for more than one machine, or one that another plugin adds.
        autoreset: see `Autoreset`.
        seed: seed of the run; task `n` has the seed `derive_seed(seed, n)`, in every backend and at every width. `None`
            draws a seed from the operating system.
        group_size: number of neighboring slots that play the same task, for estimators that compare episodes of one.
        first_episode: number of the first episode of each slot; a resumed run continues where it stopped.
        shard: `(number, count)` of this vector among equal ones that share the tasks, for example one on each rank.
            `env_ids` are those of all shards. See `TaskPlan` for which slot plays which task.
        wrappers: applied to each environment in this order.
        env_kwargs: override the specs' keyword arguments: of all environments, or `{id: {...}}` of those named.
        env_limits: `{id: episodes}`: how many episodes of an id may be under way at once, for environments that need
            something scarce. The slots of an id with fewer places than slots start no episode by themselves, whatever
            `autoreset` is: `reset` or `send_reset` them when `places_left` has room. Collectors do.
        workers: how many threads (by default one per environment), processes (one per core) or Ray actors (one per
            CPU of the cluster) share the environments, neighbors together.
        failures: what becomes of environments that raise, hang, die or return garbage; see `FailurePolicy`.

    Returns:
        A vector to `reset()` first.

    Raises:
        ValueError: a number of environments that cannot work, an unknown backend or autoreset mode, a wrong limit.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError, PluginError: as `make`; one
            environment of each id is built here, so that a mistake shows at once and not as a failed episode.
    """
    if num_envs is None:
        num_envs = fewest_slots(env_ids) * group_size
    plan = TaskPlan(env_ids, num_envs, fresh_seed() if seed is None else seed, group_size, first_episode, shard)
    policy = FailurePolicy() if failures is None else failures
    _check_backend(backend, workers, policy)
    mode = _mode(autoreset)
    ids = weights_of(env_ids)
    limits_of(ids, env_limits)
    builders = {env_id: _builder(env_id, tuple(wrappers), _kwargs_of(env_id, ids, env_kwargs)) for env_id in ids}
    for env_id, build_env in builders.items():
        _try(env_id, build_env)
    return _build(backend, plan, builders, workers, {"autoreset": mode, "failures": policy, "env_limits": env_limits})


def _builder(env_id: str, wrappers: tuple[Callable[[Env], Env], ...], kwargs: dict[str, Any]) -> Callable[[], Env]:
    return partial(build, find_spec(env_id), kwargs, wrappers)


def _kwargs_of(env_id: str, env_ids: Iterable[str], env_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of one environment, from those of all or of each."""
    if env_kwargs is None:
        return {}
    _check_kwargs("env_kwargs", env_kwargs)
    if not any(":" in name for name in env_kwargs):  # no id
        return dict(env_kwargs)
    if unknown := [name for name in env_kwargs if name not in env_ids]:
        raise ValueError(f"env_kwargs names {unknown}, and the environments are {[*env_ids]}")
    own = env_kwargs.get(env_id, {})
    _check_kwargs(f"env_kwargs[{env_id!r}]", own)
    return dict(own)


def _check_kwargs(what: str, given: Any) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in cast("Mapping[Any, Any]", given)):
        raise ValueError(f"{what} must be a dict of keyword arguments, not {given!r:.200}")


def _build(
    backend: str,
    plan: TaskPlan,
    builders: Mapping[str, Callable[[], Env]],
    workers: int | None,
    settings: dict[str, Any],
) -> VectorEnv:
    same_step = settings["autoreset"] is Autoreset.SAME_STEP
    ids, count = [plan.task(slot, 0).env_id for slot in range(plan.num_envs)], plan.num_envs
    places = ConcurrencyLimits(ids, settings["env_limits"])

    def autoreset(env_id: str) -> bool:
        return same_step and not places.limited(env_id)

    def hosted(slot: int) -> HostedEnv:
        return HostedEnv(slot, builders[ids[slot]], autoreset=autoreset(ids[slot]))

    if backend == "sync":
        return SyncVectorEnv([hosted(slot) for slot in range(count)], plan, **settings)
    if backend == "thread":
        return ThreadVectorEnv(hosted, plan, min(workers or count, count), **settings)
    from gem_core.vector._worker import SlotConfig

    homes = [SlotConfig(env_id, autoreset(env_id)) for env_id in ids]
    if backend == "process":
        from gem_core.vector._process import ProcessVectorEnv

        return ProcessVectorEnv(homes, builders, plan, min(workers or _cores(), count), **settings)
    spec = backend_spec(backend)
    assert spec is not None  # the core's are above
    return spec.resolve()(homes, builders, plan, workers, **settings)


def backend_spec(name: str) -> BackendSpec | None:
    """The spec of a plugin's vector backend; `None` for those of the core.

    Raises:
        ValueError: there is no such backend.
        DuplicateIdError: two distributions add it.
    """
    if name in BACKENDS:
        return None
    namespace = str(name).partition(":")[0]
    if (found := manager.find("gem_backends", name, namespace)) is not None:
        return found.spec
    if unusable := [plugin for plugin in manager.load(namespace) if plugin.status != "ok"]:
        reasons = "; ".join(f"{plugin.provenance} is {plugin.status}: {plugin.reason}" for plugin in unusable)
        raise ValueError(f"no vector backend {name!r}: {reasons}")
    known = [*BACKENDS, *(one.spec.id for one in manager.all_registrations("gem_backends"))]
    raise ValueError(
        f"no vector backend {name!r}.{near_matches(str(name), known)} Use one of {known}, or install the distribution "
        f"whose plugin {namespace!r} adds it"
    )


def _check_backend(backend: str, workers: int | None, policy: FailurePolicy) -> None:
    if not isinstance(policy, FailurePolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"failures must be a FailurePolicy, not {policy!r}; for example FailurePolicy(then='drop')")
    if (spec := backend_spec(backend)) is not None:
        spec.resolve()  # before any environment is built
    if workers is not None and not is_whole_number(workers):
        raise ValueError(f"workers must be a whole number or None, not {workers!r}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if backend != "sync":
        return
    if workers is not None:
        raise ValueError(f"workers={workers} has no effect on the sync backend; use backend='thread'")
    if policy.timeout not in (None, DEFAULT_TIMEOUT):
        raise ValueError(
            f"the sync backend cannot enforce timeout={policy.timeout:g}: it has no other thread to continue in. Use "
            "backend='process', or timeout=None."
        )


def _mode(autoreset: Autoreset | str) -> Autoreset:
    try:
        return Autoreset(autoreset)
    except ValueError:
        raise ValueError(f"autoreset must be one of {[one.value for one in Autoreset]}, not {autoreset!r}") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _try(env_id: str, build_env: Callable[[], Env]) -> None:
    env = build_env()
    with convert_errors(
        lambda error: EnvFailure(env_id, None, FailureKind.RAISED, f"close() raised {described(error)}")
    ):
        env.close()
