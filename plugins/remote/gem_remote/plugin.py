"""What this package registers: `remote:` ids, and the command that serves them."""

from __future__ import annotations

from gem_core.errors import NotFoundError
from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_PREFIX = "remote:"


@hookimpl
def gem_find_env(env_id: str) -> EnvSpec:
    """`remote:ID` plays the environment ID of a server; only the server knows its ids.

    Raises:
        NotFoundError: no ID is given.
    """
    served = env_id.removeprefix(_PREFIX)
    if not served:
        raise NotFoundError(
            f"no environment {env_id!r}: name one of the server, as in 'remote:game:Corridor-v0'. "
            "See plugins/remote/README.md"
        )
    return EnvSpec(env_id, "gem_remote.env:RemoteEnv", {"env_id": served}, tags=("remote",), extra="remote")
