"""Workers that are forks: they run as a new Python would, and end with those who asked for them."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gem_cpu.fork_server import client_command, fork_server

WORKER = """
import json, os, random, signal, sys
import numpy
print(json.dumps({
    "command": sys.orig_argv, "arguments": sys.argv, "imports_from": sys.path[0], "name": __name__,
    "variable": os.environ.get("VARIABLE"), "folder": os.getcwd(), "read": sys.stdin.read(),
    "random": [random.random(), numpy.random.random()], "imported": "colorsys" in sys.modules,
    "blocked": [*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))], "niceness": os.nice(0),
    "ignores_interrupts": signal.getsignal(signal.SIGINT) == signal.SIG_IGN, "pid": os.getpid(),
}), flush=True)
print("an error", file=sys.stderr)
sys.exit(int(os.environ.get("CODE", "0")))
"""
WAITING = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("f")  # the path of a socket is short


@pytest.fixture
def server(folder: Path) -> Iterator[None]:
    # `colorsys` is imported by nobody else.
    with fork_server(folder, ["numpy", "colorsys"]):
        yield


def command(folder: Path, script: Path, *arguments: str) -> list[str]:
    return [*shlex.split(client_command(folder)), str(script), *arguments]


def said(folder: Path, script: Path, **variables: str) -> dict[str, object]:
    done = subprocess.run(
        command(folder, script, "one", "--two"),
        env={**os.environ, **variables},
        cwd=script.parent,
        input="given",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "an error\n"
    return json.loads(done.stdout)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return path


@pytest.mark.usefixtures("server")
def test_a_fork_runs_as_a_new_python_would(folder: Path, script: Path):
    fork = said(folder, script, VARIABLE="1")
    assert "gem_cpu.fork_server" in fork["command"]
    assert fork["imported"]
    new = json.loads(
        subprocess.run(
            [sys.executable, script, "one", "--two"],
            env={**os.environ, "VARIABLE": "1"},
            cwd=script.parent,
            input="given",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    different = {"command", "imported", "random", "pid"}
    assert {name: fork[name] for name in fork if name not in different} == {
        name: new[name] for name in new if name not in different
    }
    other = said(folder, script, VARIABLE="2")
    assert other["variable"] == "2"
    assert not {*fork["random"]} & {*other["random"]}


@pytest.mark.usefixtures("server")
def test_a_fork_has_the_priority_and_the_blocked_signals_of_its_client(folder: Path, script: Path):
    begin = "import os, signal, sys; os.nice(3); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]);"
    begin += "os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", begin, *command(folder, script)], input="", capture_output=True, text=True, check=True
    )
    worker = json.loads(done.stdout)
    assert worker["niceness"] == os.nice(0) + 3
    assert worker["blocked"] == [signal.SIGINT]


@pytest.mark.usefixtures("server")
def test_the_exit_code_is_the_worker_s(folder: Path, script: Path):
    assert subprocess.run(command(folder, script), env={**os.environ, "CODE": "7"}, capture_output=True).returncode == 7
    script.write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert subprocess.run(command(folder, script)).returncode == 128 + signal.SIGKILL
    script.write_text("raise ValueError('a fault')")
    failed = subprocess.run(command(folder, script), capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.strip().endswith("ValueError: a fault")


@pytest.mark.usefixtures("server")
def test_a_worker_ends_with_its_client(folder: Path, script: Path):
    script.write_text(WAITING)
    with subprocess.Popen(command(folder, script), stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        client.kill()
    wait_until(lambda: not lives(pid))


def test_a_worker_is_no_fork_without_a_server_or_with_other_variables_of_python(folder: Path, script: Path):
    assert "gem_cpu.fork_server" not in said(folder, script)["command"]
    with fork_server(folder, ["json"]):
        assert "gem_cpu.fork_server" in said(folder, script)["command"]
        other = said(folder, script, PYTHONHASHSEED="7")
        assert "gem_cpu.fork_server" not in other["command"]
        assert "gem_cpu.fork_server" in said(folder, script)["command"]


def test_what_cannot_be_imported_or_forked_is_said_and_workers_start_by_themselves(
    folder: Path, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "no_module_yet.py").write_text("raise ValueError('a fault')")
    (tmp_path / "starts_a_thread.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=[600], daemon=True).start()"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for module, message in (
        ("no_module_yet", "ValueError: a fault"),
        ("starts_a_thread", "are not forked: a fork would lack"),
    ):
        with fork_server(folder, [module]):
            assert "gem_cpu.fork_server" not in said(folder, script)["command"]
        assert message in capfd.readouterr().err
        (folder / "forks").unlink()


def test_a_server_ends_with_the_process_that_started_it(folder: Path, script: Path, tmp_path: Path):
    """Killed, or interrupted in a terminal; with and without a worker."""
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import sys, time\nfrom gem_cpu.fork_server import fork_server\n"
        "with fork_server(sys.argv[1], ['json']):\n    print('ready', flush=True)\n    time.sleep(600)"
    )
    for ended_by in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, str(owner), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert "gem_cpu.fork_server" in said(folder, script)["command"]
            os.killpg(process.pid, ended_by) if ended_by == signal.SIGINT else process.kill()
            # Every process of the session holds the pipe.
            process.communicate(timeout=120)
        (folder / "forks").unlink()


def lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
