"""What this package registers: any installed environment module of verifiers, when it is asked for."""

from __future__ import annotations

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_verifiers._names import distributions_of, module_of

GEM_PLUGIN_API = ">=1,<2"

_PREFIX = "verifiers:"


@hookimpl
def gem_find_env(env_id: str) -> EnvSpec:
    """`verifiers:<module>`, also in the spellings of the hub: `verifiers:my-env`, `verifiers:owner/my-env`."""
    module = module_of(env_id.removeprefix(_PREFIX))
    libraries = ("verifiers", *distributions_of(module))
    return EnvSpec(
        f"{_PREFIX}{env_id.removeprefix(_PREFIX)}",
        "gem_verifiers.env:Verifiers",
        {"module": module},
        ("verifiers",),
        "verifiers",
        tuple(dict.fromkeys(libraries)),
    )
