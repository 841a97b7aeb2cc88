"""Programs in the environments of other frameworks, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.results import RecipeError

ROOT = Path(__file__).parents[2]


def python_of(framework: str) -> Path:
    """The Python of nox's environment of a framework in this checkout, of the whole framework if there is one.

    `GEM_PYTHON_<FRAMEWORK>` names another one, for example `GEM_PYTHON_VERL=~/verl/bin/python`.

    Raises:
        RecipeError: there is none, or ROLL's clone is not named.
    """
    if framework == "roll" and "ROLL_HOME" not in os.environ:
        raise RecipeError("ROLL needs its clone. Next: ROLL_HOME=~/ROLL, see adapters/roll/README.md")
    if given := os.environ.get(f"GEM_PYTHON_{framework.upper()}"):
        return Path(given)
    for session in (f"{framework}_full", framework):
        python = ROOT / ".nox" / session / "bin" / "python"
        if python.exists():
            return python
    raise RecipeError(
        f"there is no environment of {framework} in {ROOT / '.nox'}. Next: nox -s {framework} -- --collect-only, or "
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
    """Run a program to its end, and wait for all processes that it started (`recipes.frameworks.supervisor`).

    Args:
        python: of the framework.
        words: the program and its arguments.
        log: takes what it prints.

    Returns:
        CPU seconds of all its processes.

    Raises:
        RecipeError: it failed, or left processes behind, which were killed.
    """
    supervisor = [sys.executable, "-m", "recipes.frameworks.supervisor", str(log), str(python), *words]
    done = subprocess.run(supervisor, env=environment(python), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RecipeError(f"the supervisor of {python} {words[0]} ended with exit code {done.returncode}")
    told = json.loads(done.stdout)
    if told["left"]:
        raise RecipeError(f"{words[0]} left {told['left']} processes behind, which were killed. Next: read {log}")
    if told["code"]:
        raise RecipeError(f"{words[0]} ended with exit code {told['code']}. Next: read {log}")
    return told["cpu"]
