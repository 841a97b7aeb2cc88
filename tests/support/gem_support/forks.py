"""Which processes of a run are forks of `gem_cpu.fork_server`: the spies note what their processes are."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def note_process() -> None:
    """Note the command line of this process, in the folder of the run."""
    (Path(os.environ["GEM_SPY"]) / f"process-{os.getpid()}").write_text(" ".join(sys.orig_argv))


def are_forks(folder: Path) -> list[bool]:
    """For each noted process of the run in a folder, whether it is a fork. Forks come last."""
    return sorted("gem_cpu.fork_server" in path.read_text() for path in folder.glob("process-*"))
