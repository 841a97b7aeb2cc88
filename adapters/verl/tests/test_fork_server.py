"""Workers that are forks: they run as a new Python would, and end with those who asked for them."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from gem_cpu.fork_server import client_command, fork_server
from gem_cpu.processes import python_path
from gem_cpu.verl import overrides

WORKER = """
import json, os, random, resource, signal, sys
import numpy, ray._raylet
ray._raylet.setproctitle("ray::Title")
print(json.dumps({
    "command": " ".join(sys.orig_argv), "arguments": sys.argv, "path": sys.path, "name": __name__,
    "variable": os.environ.get("VARIABLE"), "folder": os.getcwd(), "read": sys.stdin.read(),
    "random": [random.random(), numpy.random.random()], "imported": "colorsys" in sys.modules,
    "title": open("/proc/self/cmdline").read().strip(" \\0"),
    "leads_group": os.getpgrp() == os.getpid(), "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
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
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # As `import ray` does.
    (tmp_path / "changes_the_path.py").write_text(f"import sys\nsys.path.insert(0, '{tmp_path}/own')\nprint('loaded')")
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path))
    # `colorsys` is imported by nobody else.
    with fork_server(folder, ["changes_the_path", "numpy", "colorsys"]):
        yield


def command(folder: Path, script: Path, *arguments: str) -> list[str]:
    return [*shlex.split(client_command(folder)), str(script), *arguments]


def said(folder: Path, script: Path, **variables: str) -> dict[str, Any]:
    return said_by(command(folder, script, "one", "--two"), script, **variables)


def new_python(script: Path, **variables: str) -> dict[str, Any]:
    return said_by([sys.executable, str(script), "one", "--two"], script, **variables)


def said_by(command: list[str], script: Path, **variables: str) -> dict[str, Any]:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, env=environment, cwd=script.parent, input="given", capture_output=True, text=True, check=True
    )
    assert done.stderr == "an error\n"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return path


@pytest.mark.usefixtures("server")
def test_a_fork_runs_as_a_new_python_would(folder: Path, script: Path):
    script.write_text(f"import ray\nimport changes_the_path\n{WORKER}")  # workers import Ray first
    fork = said(folder, script, VARIABLE="1")
    assert "gem_cpu.fork_server" in fork["command"]
    assert fork["imported"]
    assert fork["title"] == "ray::Title"
    new = new_python(script, VARIABLE="1")
    different = {"command", "imported", "random", "pid"}
    assert {name: fork[name] for name in fork if name not in different} == {
        name: new[name] for name in new if name not in different
    }
    other = said(folder, script, VARIABLE="2")
    assert other["variable"] == "2"
    assert not {*fork["random"]} & {*other["random"]}


def test_forks_make_ids_of_their_own(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "has_an_actor.py").write_text("import ray\n\n@ray.remote\nclass Actor: ...")
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path))
    script = tmp_path / "worker.py"
    script.write_text("import ray, sys; print('fork_server' in str(sys.orig_argv), ray.ObjectRef.from_random().hex())")
    with fork_server(folder, ["has_an_actor"]):
        made = [subprocess.check_output(command(folder, script), text=True).split() for _ in range(3)]
    assert [fork for fork, _ in made] == ["True"] * 3
    assert len({made_id for _, made_id in made}) == 3


@pytest.mark.usefixtures("server")
def test_a_fork_has_what_ray_sets_for_its_workers(folder: Path, script: Path):
    begin = (
        "import os, resource, signal, sys\n"
        "os.setpgid(0, 0)\nos.nice(3)\nresource.setrlimit(resource.RLIMIT_NOFILE, (321, 400))\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    worker = said_by([sys.executable, "-c", begin, *command(folder, script)], script)
    assert "gem_cpu.fork_server" in worker["command"]
    assert worker["niceness"] == os.nice(0) + 3
    assert worker["open_files"] == [321, 400]
    assert worker["blocked"] == [signal.SIGINT]
    assert worker["ignores_interrupts"]
    assert worker["leads_group"]


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
        worker = os.pidfd_open(int(client.stdout.readline()))
        client.kill()
        (ended, _, _) = select.select([worker], [], [], 120)
        os.close(worker)
    assert ended == [worker]


@pytest.mark.usefixtures("server")
def test_clients_and_workers_that_end_together_do_not_end_the_server(folder: Path, script: Path):
    script.write_text(WAITING)
    for _ in range(5):
        clients = [subprocess.Popen(command(folder, script), stdout=subprocess.PIPE, text=True) for _ in range(4)]
        workers = [int(client.stdout.readline()) for client in clients if client.stdout]
        for pid in (pid for pair in zip(workers, [one.pid for one in clients], strict=True) for pid in pair):
            os.kill(pid, signal.SIGKILL)
        for client in clients:
            client.communicate(timeout=120)
    script.write_text(WORKER)
    assert "gem_cpu.fork_server" in said(folder, script)["command"]


@pytest.mark.usefixtures("server")
def test_a_client_whose_server_ends_says_so(folder: Path, script: Path):
    script.write_text(f"{WAITING.replace('getpid', 'getppid')}")
    with subprocess.Popen(command(folder, script), stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        server = int(client.stdout.readline())
        (worker,) = [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
        os.kill(server, signal.SIGKILL)
        assert client.wait(120) == 1
        os.kill(worker, signal.SIGKILL)


def test_hydra_reads_the_command_of_a_folder_with_any_name():
    folder = Path("/tmp/é 'x'")
    (given,) = [one for one in overrides(folder) if "py_executable" in one]
    assert OverridesParser.create().parse_override(given).value() == client_command(folder)


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
    (tmp_path / "makes_an_id.py").write_text("import ray\nray.ObjectRef.from_random()")
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path))
    for module, message in (
        ("no_module_yet", "ValueError: a fault"),
        ("starts_a_thread", "are not forked: a fork would lack"),
        ("makes_an_id", "are not forked: all forks would make the same ids"),
    ):
        with fork_server(folder, [module]):
            assert "gem_cpu.fork_server" not in said(folder, script)["command"]
        assert message in capfd.readouterr().err
        (folder / "forks").unlink()


def test_a_server_ends_with_the_process_that_started_it(folder: Path, script: Path, tmp_path: Path):
    """Killed, or interrupted in a terminal."""
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import sys, time\nfrom gem_cpu.fork_server import fork_server\n"
        "with fork_server(sys.argv[1], ['json']):\n    print('ready', flush=True)\n    time.sleep(600)"
    )
    for end in (subprocess.Popen.kill, lambda process: os.killpg(process.pid, signal.SIGINT)):
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
            end(process)
            # Every process of the session holds the pipe.
            process.communicate(timeout=120)
        (folder / "forks").unlink()
