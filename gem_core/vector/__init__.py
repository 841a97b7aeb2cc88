"""Environments played side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from gem_core.env import Env
from gem_core.errors import EnvFailure, near_matches
from gem_core.registry import build
from gem_core.registry import spec as find_spec
from gem_core.seeding import fresh_seed
from gem_core.specs import EnvSpec
from gem_core.vector.autoreset import Autoreset
from gem_core.vector.base import VectorEnv
from gem_core.vector.member import Member, Transition
from gem_core.vector.sync import SyncVectorEnv
from gem_core.vector.thread import ThreadVectorEnv

__all__ = ["Autoreset", "Transition", "VectorEnv", "make_vec"]

Backend = Literal["sync", "thread"]
_BACKENDS: dict[str, Callable[..., VectorEnv]] = {"sync": SyncVectorEnv, "thread": ThreadVectorEnv}


def make_vec(
    env_ids: str | Sequence[str],
    num_envs: int | None = None,
    *,
    backend: Backend = "sync",
    autoreset: Autoreset | str = Autoreset.SAME_STEP,
    seed: int | None = None,
    group_size: int = 1,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    workers: int | None = None,
) -> VectorEnv:
    """Build a vector of environments.

    Args:
        env_ids: one id, or several that take turns (by group, where `group_size` is above 1).
        num_envs: how many environments; by default one per id.
        backend: `sync` for environments that answer in microseconds, `thread` for those that wait.
        autoreset: see `Autoreset`.
        seed: the episode `k` of environment `i` has the seed `derive_seed(seed, i // group_size, k)`, in every
            backend and at every width; `None` draws a seed from the operating system.
        group_size: so many neighbours in a row play the same seeds, for estimators that compare episodes of one task.
        wrappers: applied to each environment in this order.
        env_kwargs: override the specs' keyword arguments.
        workers: number of threads of the `thread` backend; one per environment by default.

    Returns:
        A vector to `reset()` first.

    Raises:
        ValueError: a number of environments that cannot work, an unknown backend or autoreset mode.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError: as `make`; one environment of
            each id is built here, so that a mistake shows at once and not as a failed episode.
    """
    ids = [env_ids] if isinstance(env_ids, str) else list(env_ids)
    count = len(ids) if num_envs is None else num_envs
    if not ids or count < 1 or group_size < 1 or count % group_size:
        raise ValueError(
            f"cannot make {count} environments of {len(ids)} ids in groups of {group_size}: all three must be at "
            "least 1, and the groups must be full"
        )
    if count // group_size < len(ids):
        raise ValueError(f"{len(ids)} environment ids for {count // group_size} places: some would never be played")
    if backend not in _BACKENDS:
        raise ValueError(f"no vector backend {backend!r}.{near_matches(backend, _BACKENDS)} Use one of {[*_BACKENDS]}")
    if backend == "sync" and workers is not None:
        raise ValueError(f"workers={workers} has no effect on the sync backend; use backend='thread'")
    specs = {env_id: find_spec(env_id) for env_id in ids}
    for env_spec in specs.values():
        _try(env_spec, wrappers, env_kwargs or {})
    run_seed = fresh_seed() if seed is None else seed
    mode = Autoreset(autoreset)
    chosen = [ids[index // group_size % len(ids)] for index in range(count)]
    members = [
        Member(partial(build, specs[env_id], env_kwargs or {}, wrappers), index // group_size, run_seed, mode, env_id)
        for index, env_id in enumerate(chosen)
    ]
    extra = {"workers": workers} if backend == "thread" else {}
    return _BACKENDS[backend](members, chosen, autoreset=mode, group_size=group_size, **extra)


def _try(env_spec: EnvSpec, wrappers: Sequence[Callable[[Env], Env]], env_kwargs: Mapping[str, Any]) -> None:
    env = build(env_spec, env_kwargs, wrappers)
    try:
        env.close()
    except SystemExit as error:
        raise EnvFailure(f"{env_spec.id} called sys.exit({error}) in close()") from error
