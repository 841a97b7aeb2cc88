"""Writing an environment as a package for OpenEnv."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gem_core.errors import EnvError
from gem_core.plugins import IN_PROCESS
from gem_core.registry import build, provenance, spec
from gem_core.specs import EnvSpec, Provenance

_PACKAGE = Path(__file__).with_name("package")
_REQUIRED = "openenv>=0.10,<0.11"
_EPISODE_SECONDS = 600.0


def write_package(
    env_id: str, kwargs: Mapping[str, Any], folder: Path | None, reward_range: tuple[float, float]
) -> Path:
    """Write the package of an environment.

    Args:
        env_id: the environment.
        kwargs: override its keyword arguments.
        folder: a new or empty folder; by default one in the current folder, named after the id.
        reward_range: least and largest reward of an episode.

    Returns:
        The folder.

    Raises:
        EnvError: the folder has files, the arguments are no JSON, a range that is none, or an environment that no
            installed package provides.
        NotFoundError, EnvKwargsError, MissingExtraError: as `gem_core.make`.
    """
    env_spec, source = spec(env_id), provenance(env_id)
    build(env_spec, kwargs).close()  # a mistake shows now and not in the server
    name = re.sub(r"[^a-z0-9]+", "_", env_id.lower()).strip("_")
    target = folder or Path(name)
    made_from = {"id": env_id, "kwargs": kwargs, "name": name, "version": source.version}
    _check(env_id, target, source, reward_range)
    try:
        text = json.dumps(made_from, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise EnvError(f"the arguments {dict(kwargs)!r} cannot be kept in a package: {error}") from error
    shutil.copytree(_PACKAGE, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (target / "server" / "gem.json").write_text(text)
    for file, content in {
        "openenv.yaml": _manifest(name, source, env_spec, reward_range),
        "pyproject.toml": _project(name, source, env_spec),
        "README.md": _readme(name, env_id),
    }.items():
        (target / file).write_text(content)
    return target


def _check(env_id: str, target: Path, source: Provenance, reward_range: tuple[float, float]) -> None:
    if source.plugin == IN_PROCESS:
        raise EnvError(
            f"{env_id} is registered in this process only; a package needs an installed plugin to get it from"
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise EnvError(f"{target} is there already; give --out a new or empty folder")
    if not reward_range[0] < reward_range[1]:
        raise EnvError(f"the reward range {reward_range} is none; give the least reward and then the largest")


def _manifest(name: str, source: Provenance, env_spec: EnvSpec, reward_range: tuple[float, float]) -> str:
    return f"""spec_version: 1
name: {name}
version: {json.dumps(source.version)}
type: space
runtime: fastapi
app: server.app:app
port: 8000
validation:
  reward:
    range: [{reward_range[0]}, {reward_range[1]}]
    floor_margin: 0.1
  resources:
    cpu: 1.0
    memory_mb: 1024
    disk_mb: 2048
    episode_timeout_s: {_EPISODE_SECONDS}
  capabilities:
    verifier:
      kind: reward_channel
  types:
    tags: {json.dumps(["gem-core", *env_spec.tags])}
"""


def _project(name: str, source: Provenance, env_spec: EnvSpec) -> str:
    extra = f"[{env_spec.extra}]" if env_spec.extra else ""
    core = [] if source.distribution == "gem-core" else [f"gem-core=={version('gem-core')}"]
    requirements = [_REQUIRED, *core, f"{source.distribution}{extra}=={source.version}"]
    return f"""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-{name.replace("_", "-")}"
version = "{source.version}"
description = "{env_spec.id} of gem-core, for OpenEnv"
readme = "README.md"
requires-python = ">=3.10"
dependencies = {json.dumps(requirements)}

[project.scripts]
server = "{name}.server.app:main"

[tool.setuptools]
packages = ["{name}", "{name}.server"]
package-dir = {{ "{name}" = ".", "{name}.server" = "server" }}

[tool.setuptools.package-data]
"{name}.server" = ["gem.json"]
"""


def _readme(name: str, env_id: str) -> str:
    return f"""# {name}

`{env_id}` of gem-core as an OpenEnv environment. An action is `{{"text": ...}}`. An observation has `text`,
`terminated`, `truncated` and `info`; `done` is either of the two. A seed and actions give the same transitions as in
`gem_core.make("{env_id}")`.

    pip install .
    uvicorn server.app:app --port 8000
    docker build -f server/Dockerfile -t {name} .
"""
