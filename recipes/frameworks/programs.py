"""Programs in the environments of other frameworks, and what they cost."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from recipes.results import RecipeError

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = {
    "trl": ("trl",),
    "verl": ("verl",),
    "openrlhf": ("openrlhf",),
    "oat": ("oat_full", "oat"),
    "roll": ("roll",),
}
"""The nox sessions whose environment a framework has, the preferred one first."""
PATIENCE = 120.0
"""Seconds that the processes of a program have to end after it."""
SUBREAPER = 36
"""Constant PR_SET_CHILD_SUBREAPER of Linux's prctl."""


def python_of(framework: str) -> Path:
    """The Python of a framework in this checkout.

    `GEM_PYTHON_<FRAMEWORK>` names another one, for example `GEM_PYTHON_VERL=~/verl/bin/python`.

    Raises:
        RecipeError: there is none, or ROLL's clone is not named.
    """
    if framework == "roll" and "ROLL_HOME" not in os.environ:
        raise RecipeError("ROLL needs its clone. Next: ROLL_HOME=~/ROLL, see docs/roll.md")
    if given := os.environ.get(f"GEM_PYTHON_{framework.upper()}"):
        return Path(given)
    for session in ENVIRONMENTS[framework]:
        for folder in sorted((ROOT / ".nox").glob(f"{session}-[0-9]*")):
            if (folder / "complete").exists():
                return folder / "bin" / "python"
    session = ENVIRONMENTS[framework][-1]
    raise RecipeError(
        f"there is no environment of {framework} in {ROOT / '.nox'}. Next: nox -s {session} -- --collect-only, or "
        f"GEM_PYTHON_{framework.upper()}=PYTHON"
    )


def answer(python: Path, *words: str) -> str:
    """What a short program prints last.

    Raises:
        RecipeError: it failed.
    """
    done = subprocess.run([str(python), *words], env=environment(python), cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RecipeError(f"{python} {' '.join(words)[:100]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().rpartition("\n")[2]


def environment(python: Path) -> dict[str, str]:
    """The environment variables of a program."""
    # Launchpad calls the `python` on the path.
    path = f"{python.absolute().parent}{os.pathsep}{os.environ['PATH']}"
    # Oat's environment has an incomplete TensorFlow, which transformers would import.
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "USE_TF": "0", "PATH": path}


def run(python: Path, words: Sequence[str], log: Path) -> float:
    """Run a program to its end, and wait for all processes that it started.

    Args:
        python: of the framework.
        words: the program and its arguments.
        log: takes what it prints.

    Returns:
        CPU seconds of all its processes.

    Raises:
        RecipeError: it failed, or left processes behind.
    """
    # Orphans, for example Ray's, become children of this process, so that they are counted.
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with log.open("wb") as output:
        program = psutil.Popen(
            [str(python), *words], env=environment(python), cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
        used: dict[psutil.Process, float] = {}
        while program.poll() is None:
            _read_cpu(used)
            time.sleep(0.5)
    deadline = time.monotonic() + PATIENCE
    while _read_cpu(used):
        if time.monotonic() > deadline:
            raise RecipeError(f"{words[0]} still has processes {PATIENCE:.0f} s after its end. Next: read {log}")
        time.sleep(0.5)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # orphans that have ended
            pass
    if program.returncode:
        raise RecipeError(f"{words[0]} ended with exit code {program.returncode}. Next: read {log}")
    return sum(used.values())


def _read_cpu(used: dict[psutil.Process, float]) -> bool:
    """Record the CPU time of each descendant, in seconds; returns whether any is alive.

    Not from the kernel's sums over children, because Ray's daemon makes the kernel drop them.
    """
    alive = False
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used[process] = times.user + times.system
            alive |= process.status() != psutil.STATUS_ZOMBIE
    return alive
