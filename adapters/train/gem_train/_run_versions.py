"""Which versions a run was made with."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
from pathlib import Path

from gem_core.specs import AdapterSpec
from gem_train.versions import installed_version


def versions_of(adapter: AdapterSpec | None) -> dict[str, str]:
    """The versions of gem-core, of the framework, and of what else the adapter names, where they are installed.

    That of a clone has its commit, too: `0.3.0+<commit>`, and `-dirty` if files of it were changed.
    """
    names = ["gem-core"] if adapter is None else ["gem-core", adapter.distribution, *adapter.versions]
    found = {name: version for name in names if (version := _installed(name))}
    if adapter is not None and adapter.clone is not None and (version := installed_version(adapter)):
        found[adapter.distribution] = f"{version}{_commit(adapter.distribution)}"
    return found


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit(package: str) -> str:
    """What follows the version of a package in a clone; nothing without git or its folder."""
    spec = importlib.util.find_spec(package)
    folder = Path(spec.origin).parents[1] if spec is not None and spec.origin is not None else Path()
    if not (folder / ".git").exists():  # the commit would be that of a repository around the folder
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    except OSError:
        return ""
    return f"+{done.stdout.strip()}" if done.returncode == 0 else ""
