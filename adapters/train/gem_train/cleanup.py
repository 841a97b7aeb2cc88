"""Ends the processes that a run leaves behind, however the run ends."""

from __future__ import annotations

import functools
import logging
import os
import secrets
import subprocess
import sys
from pathlib import Path

MARK = "GEM_CORE_RUN"
"""Environment variable by which a run's processes are recognized."""
_SCRIPT = Path(__file__).with_name("_cleanup_process.py")
_log = logging.getLogger(__name__)


@functools.cache
def clean_up_after_this_process(*folders: str) -> None:
    """Make everything that this process starts end at most 15 seconds after this process, on Linux.

    A small process watches this one. When this process ends, even by SIGKILL, the processes that it started, and those
    that they started, have five seconds to end by themselves. The rest are killed, and the shared memory that they
    created is removed. Start a process that is to outlive the run elsewhere.

    The launchers of the adapters, evaluations and the first vector of processes call this function. Another
    call with the same folders has no effect. A run inside a run has both marks.

    Args:
        folders: temporary folders that are removed at last, if they are still there.
    """
    if not hasattr(os, "pidfd_open"):
        return
    mark = secrets.token_hex(8)
    os.environ[MARK] = f"{os.environ.get(MARK, '')} {mark}".strip()
    # Isolated and without site-packages: it starts in 20 ms and takes 10 MB.
    command = [sys.executable, "-I", "-S", str(_SCRIPT), str(os.getpid()), mark, *map(os.path.abspath, folders)]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("what this run leaves behind cannot be cleaned up: no process for it could be started: %s", error)
