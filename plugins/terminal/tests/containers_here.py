"""A container engine and an image for tests: bash, and a few programs of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem_terminal._container import PROGRAMS

_IMAGE = "localhost/gem-core-tests:1"
_TOOLS = ("bash", "cat", "chmod", "env", "grep", "ls", "mkdir", "rm", "seq", "sleep", "touch", "wc")
# What podman needs where the caller may not raise limits, as in many containers, or has the older cgroups.
_CONF = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
"""
_STORAGE = '[storage]\ndriver = "vfs"\nrunroot = "{0}/run"\ngraphroot = "{0}/graph"\n'


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a program that can run containers here; skips where there is none."""
    folder = tmp_path_factory.mktemp("containers")
    (folder / "containers.conf").write_text(_CONF)
    (folder / "storage.conf").write_text(_STORAGE.format(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        patch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
        tried = [_trouble(program, folder) for program in PROGRAMS]
        if None not in tried:
            pytest.skip(f"no containers here: {'; '.join(filter(None, tried))}")
        program = PROGRAMS[tried.index(None)]
        yield program
        left = _said(program, "ps", "-aq", "--filter", "name=gem-core-")
        assert not left.stdout, "containers are left"
        _said(program, "rmi", "-f", _IMAGE)


def _trouble(program: str, folder: Path) -> str | None:
    """Why a program cannot run containers here."""
    if shutil.which(program) is None:
        return f"no {program}"
    archive = folder / "root.tar"
    if not archive.exists():
        subprocess.run(["tar", "-cf", archive, "-C", _root(folder / "root"), "."], check=True)
    imported = _said(program, "import", str(archive), _IMAGE)
    if imported.returncode:
        return f"{program}: {imported.stderr.strip()[-200:]}"
    started = _said(program, "run", "--rm", "--network", "none", _IMAGE, "bash", "-c", "exit 0")
    return f"{program}: {started.stderr.strip()[-200:]}" if started.returncode else None


def _said(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def _root(folder: Path) -> Path:
    """A folder with a few programs and the libraries that these need."""
    for name in ("bin", "tmp", "etc", "app"):
        (folder / name).mkdir(parents=True)
    for tool in _TOOLS:
        path = shutil.which(tool)
        assert path is not None
        shutil.copy(path, folder / "bin" / tool)
        for library in re.findall(r"(/\S+) \(0x", _said("ldd", path).stdout):
            target = folder / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(library), target)
    (folder / "bin" / "sh").symlink_to("bash")
    return folder


IMAGE = _IMAGE
