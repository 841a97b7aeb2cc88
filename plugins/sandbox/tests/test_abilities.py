"""What the machine has to confine programs with, as `gem-core doctor` shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_sandbox import _backends as backends
from gem_sandbox import _choice as choice
from gem_sandbox.capabilities import capabilities, cgroup_v2, seccomp


def test_abilities_are_read_from_the_system(tmp_path: Path) -> None:
    status, own = tmp_path / "status", tmp_path / "cgroup"
    assert not seccomp(status).available
    status.write_text("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n")
    assert seccomp(status).available
    assert "filtering" in seccomp(status).detail
    assert not cgroup_v2(tmp_path, own).available
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    own.write_text("0::/mine\n")
    assert cgroup_v2(tmp_path, own).detail == "own group not writable, controllers: cpu memory pids"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "cgroup.procs").touch()
    assert cgroup_v2(tmp_path, own).detail.startswith("own group writable")


def test_a_backend_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"

    def bubblewrap() -> tuple[bool, str]:
        monkeypatch.setattr(choice, "_found", {})
        row = next(row for row in capabilities() if row.name == "bubblewrap")
        return row.available, row.detail

    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap() == (False, "bwrap is not on PATH")
    fake.write_text("#!/bin/sh\necho 'No permissions' >&2\nexit 1\n")
    fake.chmod(0o755)
    assert bubblewrap() == (False, "its server died: No permissions")


def test_all_that_there_is() -> None:
    rows = {row.name: row for row in capabilities()}
    assert set(rows) == {
        *backends.SAFE,
        backends.UNSAFE,
        "seccomp",
        "landlock",
        "resource limits",
        "cgroup v2",
        "sandbox",
    }
    assert "UNSAFE" in rows[backends.UNSAFE].detail
    assert rows["sandbox"].available == any(rows[name].available for name in backends.SAFE)
