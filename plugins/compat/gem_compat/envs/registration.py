"""Environments by id, with upstream's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gem_core.env
from gem_compat.core import Env, EnvWrapper
from gem_compat.vector.async_vector_env import AsyncVectorEnv
from gem_compat.vector.sync_vector_env import SyncVectorEnv
from gem_compat.vector.vector_env import VectorEnv
from gem_core import registry
from gem_core.env import ResetResult
from gem_core.errors import NotFoundError
from gem_core.plugins import manager
from gem_core.specs import EnvSpec, namespace_of

__all__ = ["ENV_REGISTRY", "EnvSpec", "make", "make_vec", "print_envs", "register"]

_RENAMED = {
    "dataset_name": ("dataset",),
    "question_key": ("question",),
    "answer_key": ("answer",),
    "test_key": ("answer",),
    "image_key": ("images",),
    "extract_boxed": ("boxed",),
    "seed": ("shuffle_seed", "data_seed"),
}
"""Arguments of upstream's environments, and the names that they may have here."""
_IDLE = frozenset(
    {"load_from_cache_file", "max_workers", "only_real_words", "sandbox_type", "seed", "use_mp", "verbose"}
)
"""Arguments that change nothing here: answers and programs are always confined, and games are seeded by `reset`."""


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


class _Rows(EnvWrapper):
    """Takes `reset(idx=...)` for a row of the data."""

    def reset(self, seed: int | None = None, *, idx: int | None = None, **options: Any) -> ResetResult:
        return self.env.reset(seed=seed, **options, **({} if idx is None else {"row": idx}))


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
    """Build an environment; arguments may have upstream's names. Raises as `gem_core.make`."""
    spec = registry.spec(_full(env_id))
    constructor = spec.resolve()
    env = registry.make(spec, **{**_bare(spec, constructor), **_named(constructor, kwargs)})
    if "row" in inspect.signature(type(env).reset).parameters:
        env = _Rows(env)
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
    """The seed for a constructor that upstream would hand it to, and that knows what to do with it."""
    constructor = registry.spec(_full(env_id)).resolve()
    return {"seed": seed} if _takes(constructor, "seed") else {}


def _named(constructor: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """These arguments under the names that the constructor has for them."""
    parameters = inspect.signature(constructor).parameters
    named: dict[str, Any] = {}
    for name, value in kwargs.items():
        if _takes(constructor, name):
            named[name] = value
        elif name == "eval" and "shuffle_seed" in parameters:
            named.update({"shuffle_seed": None} if value else {})
        elif here := next((one for one in _RENAMED.get(name, ()) if one in parameters), None):
            named.setdefault(here, value)  # `eval` wins over `seed`
        elif name not in _IDLE:
            named[name] = value  # `gem_core.make` says what is wrong with it
    return named


def _bare(spec: EnvSpec, constructor: Callable[..., Any]) -> dict[str, Any]:
    """Upstream says the form of an answer only in the questions of its `QaEnv`."""
    says = "instruction" in inspect.signature(constructor).parameters
    return {"instruction": False} if says and not str(spec.entry_point).startswith("gem_qa.") else {}


def _takes(constructor: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(constructor).parameters
    # What this project's own environments do with further arguments is their business.
    upstreams = inspect.isclass(constructor) and issubclass(constructor, Env)
    return name in parameters or (upstreams and any(one.kind is one.VAR_KEYWORD for one in parameters.values()))


def _full(env_id: str) -> str:
    return env_id if namespace_of(env_id) else f"gem:{env_id}"
