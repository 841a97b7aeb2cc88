"""What this package adds: the vector backend `ray`."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core import hookimpl
from gem_core.specs import BackendSpec


@hookimpl
def gem_backends() -> Iterable[BackendSpec]:
    """Environments in Ray actors."""
    yield BackendSpec("ray", "gem_ray.vector:RayVectorEnv", extra="ray")
