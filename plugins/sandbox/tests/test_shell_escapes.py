"""What a program must not be able to do, tried by programs that a shell runs: those of `test_escapes.py`, and more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_processes import available
from test_escapes import (
    SECRET,
    secrets,  # noqa: F401
    test_a_large_file,  # noqa: F401
    test_inherited_files,  # noqa: F401
    test_limits_cannot_be_raised,  # noqa: F401
    test_links_out,  # noqa: F401
    test_memory_that_is_not_counted,  # noqa: F401
    test_network,  # noqa: F401
    test_read_the_environment,  # noqa: F401
    test_survive_the_call,  # noqa: F401
    test_system_calls,  # noqa: F401
    test_the_template_is_not_to_be_found_in_proc,  # noqa: F401
)

from gem_sandbox import Entry, Execution, Limits, LocalSandbox, LocalShell
from gem_sandbox._backends import SAFE

pytestmark = pytest.mark.long

LONG = 240.0


class Shells:
    """A sandbox whose programs are commands of a shell, each in a shell of its own."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox

    def shell(self) -> LocalShell:
        return self._sandbox.shell()

    def run(self, code: str, *, limits: Limits | None = None) -> Execution:
        disk = limits.disk if limits else Limits().disk
        path = f"/usr/bin:/bin:{sys.base_prefix}/bin"
        with self._sandbox.shell(limits=Limits(wall=LONG, disk=disk), variables={"PATH": path}) as shell:
            shell.put({"/tmp/program.py": Entry(code.encode())})
            ran = shell.run("python3 /tmp/program.py")
            return Execution(ran.output, "", ran.exit_code, ran.ending, ran.seconds)


@pytest.fixture(scope="module", params=SAFE)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Shells]:
    with LocalSandbox(backend=available(request.param), limits=Limits(wall=LONG), concurrency=61) as one:
        yield Shells(one)


@pytest.fixture
def safe(sandbox: Shells) -> Shells:
    return sandbox


def test_folders_of_the_caller_are_not_there(sandbox: Shells, tmp_path: Path) -> None:
    (tmp_path / "a-file-of-the-caller").write_text(SECRET)
    with sandbox.shell() as shell:
        found = shell.run(
            f"ls -A {tmp_path} /home /var/log /root/.ssh; cat /etc/shadow /etc/machine-id {tmp_path}/*"
        ).output
        assert SECRET not in found
        assert found.count("No such file") == 5
        # The way to an installed Python may be seen, and nothing else.
        found = shell.run(f"ls -A {os.getcwd()} {Path(__file__).parents[3]}").output
        assert not [name for name in ("pyproject.toml", "tests", "docs") if name in found.split()]


def test_nothing_outside_is_written(sandbox: Shells, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with sandbox.shell() as shell:
        shell.run(
            f"mkdir -p {tmp_path}; echo x > {tmp_path}/kept; echo x > {tmp_path}/new; rm -rf /home /var /opt /srv"
        )
        ran = shell.run("rm -rf /usr/bin /usr/lib/python3 /etc /dev; echo still here")
        assert ran.output.endswith("still here\n")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "kept"
    with sandbox.shell() as shell:
        assert shell.run("ls /usr/bin/env; whoami").output == "/usr/bin/env\nroot\n"


def test_root_has_no_rights(sandbox: Shells) -> None:
    commands = {
        "mount -t tmpfs x /mnt": "mount",
        "unshare -Ur true": "unshare",
        "mknod /app/disk b 8 0": "mknod",
        "chroot / true": "chroot",
        "hostname other": "hostname",
        "echo 1 > /proc/2/oom_score_adj": "proc",
        "dd if=/dev/zero of=/proc/2/mem count=1": "memory",
        "kill -0 $PPID && cat /proc/1/environ": "first process",
    }
    with sandbox.shell() as shell:
        for command, what in commands.items():
            ran = shell.run(f"{command} 2>&1")
            assert ran.exit_code != 0, (what, ran)
        capabilities = shell.run("grep ^Cap /proc/self/status; grep NoNewPrivs /proc/self/status").output
        assert {line.split()[1] for line in capabilities.splitlines()[:3]} == {"0" * 16}
        assert capabilities.endswith("1\n")


def test_no_process_of_the_machine_is_seen_or_reached(sandbox: Shells) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander,
        sandbox.shell() as shell,
    ):
        found = shell.run("ls /proc | grep -c '^[0-9]'")
        assert int(found.output) < 10
        shell.run(f"kill -9 {bystander.pid} {os.getpid()} 1; kill -9 -{os.getpid()}")
        assert shell.run("echo alive").output == "alive\n"
        assert bystander.poll() is None
        assert bystander.stdin is not None
        bystander.stdin.write(b"\n")
        bystander.stdin.close()
        assert bystander.wait(120) == 0
