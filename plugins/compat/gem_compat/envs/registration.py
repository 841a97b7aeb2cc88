"""Environments by id, with upstream's arguments."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import gem_core.env
from gem_compat.core import Env
from gem_compat.kinds import lenient_kind
from gem_compat.vector.async_vector_env import AsyncVectorEnv
from gem_compat.vector.sync_vector_env import SyncVectorEnv
from gem_compat.vector.vector_env import VectorEnv
from gem_core import registry
from gem_core.errors import NotFoundError
from gem_core.plugins import manager
from gem_core.specs import EnvSpec, namespace_of

__all__ = ["ENV_REGISTRY", "EnvSpec", "make", "make_vec", "print_envs", "register"]


class _Registry(Mapping[str, EnvSpec]):
    """All ids and their specs."""

    def __getitem__(self, env_id: str) -> EnvSpec:
        try:
            found = manager.find("gem_envs", _full(env_id))
        except NotFoundError:  # from a plugin that knows why
            found = None
        if found is None:
            raise KeyError(env_id)
        return found.spec

    def __iter__(self) -> Iterator[str]:
        return (one.spec.id for one in manager.all_registrations("gem_envs"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


ENV_REGISTRY: Mapping[str, EnvSpec] = _Registry()
"""The specs of all environments, read-only; `register` adds one."""


def register(env_id: str, entry_point: str | Callable[..., gem_core.env.Env], **kwargs: Any) -> None:
    """Register an environment with these arguments. An id without a namespace belongs to the namespace `gem`.

    Raises:
        EnvError: the id belongs to an installed plugin.
    """
    registry.register(_full(env_id), entry_point, kwargs=kwargs)


def print_envs() -> None:
    """Print all ids with their entry points and arguments."""
    for env_id, spec in ENV_REGISTRY.items():
        print(f"{env_id}\n    entry point: {spec.entry_point}\n    kwargs: {dict(spec.kwargs)}")


def make(env_id: str, **kwargs: Any) -> gem_core.env.Env:
    """Build an environment; arguments may have upstream's names. Raises as `gem_core.make`.

    Arguments that one of this project's environments does not have are ignored, as upstream does.
    """
    spec = wanted = registry.spec(_full(env_id))
    constructor = spec.resolve()
    given = {name: value for name, value in kwargs.items() if value is not None or name != "dataset"}
    if not inspect.isclass(constructor):
        given = _accepted(constructor, given)
    elif _is_ours(constructor):
        wanted = dataclasses.replace(spec, entry_point=lenient_kind(constructor))
        if given.get("dataset_name") and "dataset" not in given:
            given["dataset"] = given.pop("dataset_name")  # in place of the id's own
    env = registry.make(wanted, **given)
    if env.spec is not None:
        env.spec = dataclasses.replace(env.spec, entry_point=spec.entry_point)
    vars(env).update(env_id=env_id, entry_point=spec.entry_point)
    return env


def make_vec(
    env_ids: str | Sequence[str],
    wrappers: Sequence[Callable[[gem_core.env.Env], gem_core.env.Env]] | None = None,
    vec_kwargs: Sequence[Mapping[str, Any]] | None = None,
    async_mode: bool = False,
    seed: int = 0,
    **kwargs: Any,
) -> VectorEnv:
    """Build a vector with one environment per id.

    Args:
        env_ids: one id, or a list.
        wrappers: applied to each environment in this order.
        vec_kwargs: arguments of each environment.
        async_mode: a thread per environment.
        seed: of the episodes that a reset without a seed starts. A class of yours that takes a `seed` gets `seed + i`.
        kwargs: arguments of all environments; they win over `vec_kwargs`.

    Raises:
        ValueError: not as many `vec_kwargs` as ids.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    ids = [env_ids] if isinstance(env_ids, str) else list(env_ids)
    own: list[dict[str, Any]] = [{} for _ in ids] if vec_kwargs is None else [dict(one) for one in vec_kwargs]
    if len(own) != len(ids):
        raise ValueError(f"got {len(own)} vec_kwargs for {len(ids)} environments; give one for each")
    builders = [
        partial(_wrapped, env_id, {**_seeded(env_id, seed + place), **own[place], **kwargs}, tuple(wrappers or ()))
        for place, env_id in enumerate(ids)
    ]
    return (AsyncVectorEnv if async_mode else SyncVectorEnv)(ids, builders, seed=seed)


def _wrapped(
    env_id: str, kwargs: Mapping[str, Any], wrappers: Sequence[Callable[[gem_core.env.Env], gem_core.env.Env]]
) -> gem_core.env.Env:
    env = make(env_id, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env


def _seeded(env_id: str, seed: int) -> dict[str, Any]:
    """The seed for a constructor of the user's, where it takes one. This project's environments need none."""
    constructor = registry.spec(_full(env_id)).resolve()
    return {} if _is_ours(constructor) else _accepted(constructor, {"seed": seed})


def _accepted(constructor: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a function has."""
    parameters = inspect.signature(constructor).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return dict(kwargs)
    return {name: value for name, value in kwargs.items() if name in parameters}


def _is_ours(constructor: Any) -> TypeGuard[type[gem_core.env.Env]]:
    """Whether it is a class that is not written for upstream."""
    return (
        inspect.isclass(constructor) and issubclass(constructor, gem_core.env.Env) and not issubclass(constructor, Env)
    )


def _full(env_id: str) -> str:
    return env_id if namespace_of(env_id) else f"gem:{env_id}"
