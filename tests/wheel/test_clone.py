"""A clone installed as the README says, with pip and with uv, into empty environments; `nox -s wheel`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = Path(__file__).with_name("installed_extra.py")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git knows, in a folder of their own."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for file in filter(None, files.split("\0")):
        if (ROOT / file).is_file():  # not one that was deleted and is not committed
            (tmp_path / "clone" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, tmp_path / "clone" / file)
    return tmp_path / "clone"


@pytest.mark.parametrize(("installer", "extra"), [("pip", "games"), ("uv", "remote")])
def test_it_installs_with_an_extra(installer: str, extra: str, clone: Path, tmp_path: Path) -> None:
    """Each installer and each light extra once: an extra is a list of requirements, which both read alike."""
    folder = tmp_path / "environment"
    python = folder / "bin" / "python"
    if installer == "pip":
        run(sys.executable, "-m", "venv", str(folder))
        run(str(python), "-m", "pip", "install", "--quiet", "-e", f"{clone}[{extra}]")
    else:
        run("uv", "venv", "--quiet", "--seed", "--python", sys.executable, str(folder))  # pip checks what is there
        run("uv", "pip", "install", "--quiet", "--python", str(python), "-e", f"{clone}[{extra}]")
    shown = run(str(python), "-P", str(CHECK), extra)
    assert f"[{extra}] works" in shown


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout
