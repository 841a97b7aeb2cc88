"""Environments that a file of others names: what may be built of it, and what needs the user's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem_core.plugins import manager
from gem_core.specs import EnvSpec, namespace_of


def needs_trust(env_id: str, kwargs: Mapping[str, Any]) -> list[str]:
    """The code, paths, addresses and permissions that an untrusted file would choose, a phrase each.

    Nothing but the plugin's list of ids is loaded for this question. An id that a plugin makes from its text may name
    a module, a folder or an address. Of an environment that doesn't mark its arguments, all but numbers may be such.
    """
    registered = manager.registrations("gem_envs", namespace_of(env_id))
    specs = [one.spec for one in registered if one.spec.id == env_id]
    if not specs:
        return [f"the id {env_id!r}, which no plugin lists"]
    return [
        f"{name}={value!r:.200}" for name, value in kwargs.items() if any(_is_open(one, name, value) for one in specs)
    ]


def _is_open(spec: EnvSpec, name: str, value: Any) -> bool:
    """Whether this argument can be anything that its author likes."""
    if spec.trusting is None:
        return type(value) not in (int, float)
    return name in spec.trusting
