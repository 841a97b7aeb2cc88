"""What this package registers: `openenv:` ids, and the command that exports ids."""

from __future__ import annotations

from gem_core.errors import NotFoundError
from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_PREFIX = "openenv:"


@hookimpl
def gem_find_env(env_id: str) -> EnvSpec:
    """`openenv:http://host:port` plays the server at that address; `openenv:./folder` and `openenv:name` start one.

    Raises:
        NotFoundError: nothing is given after `openenv:`.
    """
    given = env_id.removeprefix(_PREFIX)
    if not given:
        raise NotFoundError(
            f"no environment {env_id!r}: name a server, as in 'openenv:http://localhost:8000', the folder of a "
            "package, as in 'openenv:./my_env', or an installed package. See plugins/openenv/README.md"
        )
    kind, name = ("OpenEnvEnv", "url") if "://" in given else ("PackageEnv", "package")
    return EnvSpec(env_id, f"gem_openenv._env:{kind}", {name: given}, tags=("openenv",), extra="remote")
