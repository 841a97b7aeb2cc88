"""Runs whose processes are forks of `gem_cpu.fork_server`: a server for all drivers, and which processes are forks."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from gem_cpu.fork_server import client_command, fork_server


def forked(script: Path, *modules: str, **variables: str) -> list[str]:
    """The command of a script as a fork of a server that all runs share; its arguments come after it.

    Ray's workers are no forks of this server, because `import ray` reads variables of its cluster.

    Args:
        script: the script.
        modules: what the server imports, once.
        variables: those for Python itself, which the script must have as well.
    """
    return [*_client(_shared_server(*modules, **variables)), str(script)]


@functools.cache
def _shared_server(*modules: str, **variables: str) -> str:
    """Start a server for all runs of this process with these variables. Returns its folder."""
    ends = contextlib.ExitStack()
    atexit.register(ends.close)
    folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="f"))
    ends.enter_context(fork_server(folder, modules))
    script = Path(folder, "first.py")
    script.touch()
    # The first to ask gives the server its environment, which must be of no run.
    subprocess.run([*_client(folder), str(script)], env={**os.environ, **variables}, check=True)
    return folder


def _client(folder: str) -> list[str]:
    return shlex.split(client_command(folder))


def note_process() -> None:
    """Note the command line of this process, in the folder of the run."""
    (Path(os.environ["GEM_SPY"]) / f"process-{os.getpid()}").write_text(" ".join(sys.orig_argv))


def are_forks(folder: Path) -> list[bool]:
    """For each noted process of the run in a folder, whether it is a fork. Forks come last."""
    return sorted("gem_cpu.fork_server" in path.read_text() for path in folder.glob("process-*"))
