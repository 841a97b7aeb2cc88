"""Tasks in containers, where Docker or podman can run some: commands, builds, tests, limits, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers_here import IMAGE
from playing import finished, run

import gem_core
from gem_core.errors import EnvError
from gem_sandbox import Entry, Limits, ShellError
from gem_support.waiting import wait_until
from gem_terminal import _container as container
from gem_terminal._container import ContainerShell, Engine
from gem_terminal._errors import TaskRefused
from gem_terminal._task import Image
from gem_terminal.formats import Where, read_task, read_tasks

pytestmark = pytest.mark.long

LONG = 300.0
CONTAINERS = Where(containers=True, network=False)
HARBOR = {
    "task.toml": '[environment]\nworkdir = "/work"\nenv = { GREETING = "Hello" }\n',
    "instruction.md": "Write the greeting to greeting.txt.\n",
    "environment/Dockerfile": f"FROM {IMAGE}\nRUN mkdir -p /opt/made && echo Ada > /opt/made/name\nCOPY *.txt /work/\n",
    "environment/one.txt": "1\n",
    "tests/test.sh": "#!/bin/bash\n"
    'if [ "$(cat /work/greeting.txt)" = "$GREETING $(cat /opt/made/name)" ]; then\n'
    "  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0.25 > /logs/verifier/reward.txt\nfi\n",
    "solution/solve.sh": 'echo "$GREETING $(cat /opt/made/name)" > greeting.txt\n',
}
BENCH = {
    "task.yaml": "instruction: Write 42 to answer.txt.\nparser_name: pytest\n",
    "Dockerfile": f"FROM {IMAGE}\nWORKDIR /app\nRUN touch built\n",
    "run-tests.sh": '#!/bin/bash\nif [ -e /app/built ] && [ "$(cat /app/answer.txt)" = 42 ]; then\n'
    "  echo 'PASSED tests/test_outputs.py::test'\nelse\n  echo 'FAILED tests/test_outputs.py::test'\nfi\n",
    "tests/test_outputs.py": "",
    "solution.sh": "echo 42 > answer.txt\n",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def shell(engine: str) -> Iterator[ContainerShell]:
    limits = Limits(wall=LONG, memory=64 << 20, processes=64, output=1000)
    opened = ContainerShell(Engine(engine), IMAGE, limits, "/app", {"A": "b c"})
    yield opened
    opened.close()


def running(program: str) -> list[str]:
    said = subprocess.run(
        [program, "ps", "-a", "--filter", "name=gem-core-", "--format", "{{.Names}}"], capture_output=True, text=True
    )
    return said.stdout.split()


def test_commands_share_a_shell(shell: ContainerShell) -> None:
    assert shell.run("cd /tmp; X=5; echo $A")[:3] == ("b c\n", 0, "exit")
    assert shell.run("pwd; echo $X; printf end")[:3] == ("/tmp\n5\nend", 0, "exit")
    assert shell.run("ls /nothing; (exit 3)").exit_code == 3
    assert "syntax error" in shell.run("if").output
    assert shell.run("cat; echo 'a\"b'").output == 'a"b\n', "the input is empty"
    left = shell.run("exit 7")
    assert (left.exit_code, left.ending, left.new_shell) == (7, "exit", True)
    assert shell.run("pwd").output == "/app\n", "another bash, where the first began"


def test_a_command_whose_time_is_up_is_ended_and_the_shell_stays(
    shell: ContainerShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("X=5")
    late = shell.run("sleep 1000", seconds=1.0)
    assert (late.ending, late.exit_code, late.new_shell) == ("timeout", None, False)
    assert shell.run("echo $X").output == "5\n"
    monkeypatch.setattr(container, "_GRACE", 1.0)
    stuck = shell.run("while :; do :; done", seconds=1.0)
    assert (stuck.ending, stuck.new_shell) == ("timeout", True), "bash itself is busy, and is replaced"
    assert shell.run("echo x$X").output == "x\n"


def test_long_output_is_cut_in_the_middle(shell: ContainerShell) -> None:
    ran = shell.run("seq 100000")
    assert ran.truncated
    assert ran.output.startswith("1\n2\n")
    assert ran.output.endswith("99999\n100000\n")
    total = sum(len(str(number)) + 1 for number in range(1, 100001))
    assert f"\n[... {total - 1000} bytes left out ...]\n" in ran.output
    assert not shell.run("seq 100").truncated


def test_output_without_end_is_no_way_around_the_limit(shell: ContainerShell) -> None:
    flood = shell.run("bash -c 'while :; do echo 123456789; done'", seconds=0.5)
    assert (flood.ending, flood.truncated) == ("timeout", True)
    assert shell.run("echo there").output == "there\n"


def test_text_that_is_no_unicode_is_no_trouble(shell: ContainerShell) -> None:
    assert shell.run("echo '\ud800'").output == "?\n"


def test_a_bash_that_does_not_read_is_replaced_when_time_is_up(
    shell: ContainerShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("(while [ ! -e /tmp/go ]; do :; done; kill -STOP $$; touch /tmp/stopped) &")
    shell.put({"/tmp/go": Entry(b"")})
    wait_until(lambda: "/tmp/stopped" in shell.take("/tmp"), "bash is stopped")
    monkeypatch.setattr(container, "_GRACE", 1.0)
    stuck = shell.run(f"true {'x' * 300_000}", seconds=1.0)  # more than a pipe holds
    assert (stuck.ending, stuck.new_shell) == ("timeout", True)
    assert shell.run("echo there").output == "there\n"


def test_a_container_without_a_bash_says_so(shell: ContainerShell) -> None:
    assert shell.run("rm /bin/bash; exit 7").ending == "killed"
    with pytest.raises(ShellError, match="no bash starts in it any more"):
        shell.run("true")


def test_files_go_in_and_out_and_processes_are_ended(shell: ContainerShell) -> None:
    shell.put(
        {"/data/a/b.txt": Entry(b"hello"), "/data/l": Entry(target="a/b.txt"), "/data/x": Entry(b"echo hi", 0o755)}
    )
    assert shell.run("cat /data/l; /data/x").output == "hellohi\n"
    assert shell.take("/data")["/data/a/b.txt"].content == b"hello"
    shell.run("sleep 1000 & sleep 1000 &")
    shell.settle()
    assert shell.run("grep -c sleep /proc/[0-9]*/comm").exit_code == 1, "no process is left"
    with pytest.raises(ShellError, match="could not be read from"):
        shell.take("/none")


def test_limits_and_the_network(shell: ContainerShell) -> None:
    assert shell.run("x=$(seq 12000000); echo no").output != "no\n", "it needs more than the memory"
    assert not Path("oom").exists(), "podman's helper writes it"
    assert shell.run("ls /sys/class/net").output == "lo\n"
    assert shell.run("cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null").output == "64\n"


def test_containers_know_nothing_of_each_other_and_nothing_is_left(engine: str) -> None:
    limits = Limits(wall=LONG, memory=128 << 20)
    first = ContainerShell(Engine(engine), IMAGE, limits, "/app", {})
    second = ContainerShell(Engine(engine), IMAGE, limits, "/app", {})
    first.run("echo 1 > /app/mine; sleep 1000 &")
    assert second.run("ls /app").output == ""
    assert len(running(engine)) == 2
    first.close()
    first.close()
    second.close()
    assert running(engine) == []
    with pytest.raises(ShellError, match="the container has ended"):
        first.run("true")
    with pytest.raises(EnvError, match="cannot start a container of localhost/none:1"):
        ContainerShell(Engine(engine), "localhost/none:1", limits, "/app", {})


_OWNER = """
import sys, time
from gem_sandbox import Limits
from gem_terminal._container import ContainerShell, Engine
shell = ContainerShell(Engine(sys.argv[1]), sys.argv[2], Limits(wall=100), "/app", {})
shell.run("sleep 1000 &")
print("ready", flush=True)
shell.run("sleep 1000")
"""


def test_a_killed_process_leaves_no_container(engine: str) -> None:
    command = [sys.executable, "-c", _OWNER, engine, IMAGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        assert len(running(engine)) == 1
        os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: running(engine) == [], "the container ends")


@pytest.mark.parametrize(("files", "wrong"), [(HARBOR, 0.25), (BENCH, 0.0)], ids=["harbor", "terminal-bench"])
def test_a_task_with_a_build_is_solved_and_not(
    engine: str,
    tmp_path: Path,
    files: dict[str, str],
    wrong: float,
) -> None:
    written(tmp_path / "task", files)
    with pytest.raises(TaskRefused, match="image"):
        gem_core.make("terminal:Folder", tasks=tmp_path)
    with gem_core.make("terminal:Folder", tasks=tmp_path, backend=engine, timeout=LONG) as env:
        solution = env.unwrapped.tasks[0].solution
        for action, reward in ((solution, 1.0), ("sleep 1000 &", wrong)):
            text, info = env.reset(seed=0, data_index=0)
            assert info["task_name"] == "task"
            assert "There is no network." in text
            run(env.unwrapped, action)
            assert finished(env.unwrapped)[0] == reward
            assert running(engine) == []
        env.reset(seed=0, data_index=0)
        run(env.unwrapped, "bash -c 'kill -9 1'; true")  # the first process of a container ignores it
        assert running(engine)
    assert running(engine) == [], "closing ends the container of an episode that was left"


def test_an_image_with_a_user_of_its_own_is_tested(engine: str, tmp_path: Path) -> None:
    image = f"{HARBOR['environment/Dockerfile']}RUN chmod 777 /work\nUSER 1000:1000\n"
    written(tmp_path / "task", {**HARBOR, "environment/Dockerfile": image})
    with gem_core.make("terminal:Folder", tasks=tmp_path, backend=engine, timeout=LONG) as env:
        env.reset(seed=0, data_index=0)
        run(env.unwrapped, env.unwrapped.tasks[0].solution)
        assert finished(env.unwrapped)[0] == 1.0


def test_tasks_for_containers_are_read_or_refused_by_name(tmp_path: Path) -> None:
    plain = {**HARBOR, "environment/Dockerfile": "FROM debian\n"}
    written(tmp_path / "built", HARBOR)
    written(tmp_path / "named", {**plain, "task.toml": '[environment]\ndocker_image = "ghcr.io/some/image:1"\n'})
    (tmp_path / "named" / "environment" / "Dockerfile").unlink()
    written(tmp_path / "bare", {name: text for name, text in HARBOR.items() if "Dockerfile" not in name})
    written(tmp_path / "online", {**plain, "tests/test.sh": "pip install pytest\n"})
    two = "services:\n  one: {image: a}\n  two: {image: b}\n"
    written(tmp_path / "two", {**plain, "environment/docker-compose.yaml": two})
    found = read_tasks(tmp_path, CONTAINERS)
    assert [(task.name, task.folder) for task in found.runnable] == [("built", "/work"), ("named", "")]
    assert [task.image and task.image.name for task in found.runnable] == [None, "ghcr.io/some/image:1"]
    assert "names no image" in found.refused["bare"]
    assert "needs the network" in found.refused["online"]
    assert "needs 2 containers" in found.refused["two"]
    assert read_task(tmp_path / "online", Where(containers=True, network=True)).image is not None


def test_what_cannot_be_started_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "task", HARBOR)
    with pytest.raises(EnvError, match=r"network='bridge' needs backend='docker' or 'podman'"):
        gem_core.make("terminal:Folder", tasks=tmp_path, network="bridge")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvError, match=r"there is no program 'docker'. Next: install it"):
        gem_core.make("terminal:Folder", tasks=tmp_path, backend="docker").reset(seed=0)


def test_an_image_whose_name_is_an_option_is_refused() -> None:
    with pytest.raises(EnvError, match=r"'--volume=/:/host' begins with '-'"):
        Engine("docker").image(Image("--volume=/:/host"))


def test_tests_run_in_another_container(engine: str, tmp_path: Path) -> None:
    """With what is judged, and nothing that the policy has put in the system's places."""
    written(tmp_path / "greet", HARBOR)
    evil = "printf '#!/bin/bash\\nexit 0\\n' | tee /bin/cat > /bin/grep; rm -f one.txt; echo x > /opt/made/new"
    with gem_core.make("terminal:Folder", tasks=tmp_path, backend=engine, timeout=LONG) as env:
        for work, reward in (("true", 0.25), (env.tasks[0].solution, 1.0)):
            env.reset(data_index=0)
            run(env, f"{work}\n{evil}")
            assert finished(env)[0] == reward
            assert running(engine) == []


def test_a_reward_that_cannot_be_removed_is_none(engine: str, tmp_path: Path) -> None:
    settings = HARBOR["task.toml"] + '[verifier]\njudged = ["/"]\n'
    written(tmp_path / "greet", {**HARBOR, "task.toml": settings, "tests/test.sh": "#!/bin/bash\nexit 1\n"})
    with gem_core.make("terminal:Folder", tasks=tmp_path, backend=engine, timeout=LONG) as env:
        env.reset(data_index=0)
        run(env, "mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt && rm $(command -v rm)")
        reward, info = finished(env)
    assert (reward, info["success"]) == (0.0, False)
    assert "could not be emptied" in info["test_problem"]


def test_a_build_that_fails_says_why(engine: str, tmp_path: Path) -> None:
    broken = {**HARBOR, "environment/Dockerfile": f"FROM {IMAGE}\nRUN echo before && exit 3\n"}
    written(tmp_path / "task", broken)
    with (
        gem_core.make("terminal:Folder", tasks=tmp_path, backend=engine) as env,
        pytest.raises(EnvError, match=r"(?s)cannot be built: .*\b3\W*$"),
    ):
        env.reset(seed=0)
