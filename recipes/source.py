"""The source tree that plays a run."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path


@functools.cache
def commit() -> str:
    """The commit of the source tree when it was first asked for, with `+` if files that decide runs differ from it.

    Empty outside a git repository.
    """
    here = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "gem_core", "adapters", "plugins", "recipes/**.py")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
