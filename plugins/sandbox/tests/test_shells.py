"""Shells with a root of their own: what commands find, what ends them, and what is left."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_processes import available, children

from gem_sandbox import Entry, Limits, LocalSandbox, LocalShell, SandboxError, ShellError, view
from gem_sandbox._backends import SAFE
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

LONG = Limits(wall=240.0)
"""A busy machine makes no command late."""


FORKS = """
import os, time
started = 0
try:
    while os.fork():
        started += 1
    time.sleep(1000)
except OSError:
    print(started)
"""


@pytest.fixture(scope="module", params=SAFE)
def shells(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    with LocalSandbox(backend=available(request.param), limits=LONG, concurrency=64) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def best_shells() -> Iterator[LocalSandbox]:
    """Of one backend, for what is no matter of it."""
    with LocalSandbox(limits=LONG, concurrency=64) as sandbox:
        yield sandbox


def said(shell: LocalShell, command: str) -> str:
    """What a command writes; it must have ended by itself."""
    ran = shell.run(command)
    assert ran.ending == "exit", ran
    return ran.output


def test_the_state_is_kept(shells: LocalSandbox) -> None:
    with shells.shell() as shell:
        assert said(shell, "pwd; X=7; cd /tmp; f() { echo \"f $1\"; }; export Y='a b'") == "/app\n"
        assert said(shell, "echo $X $PWD; f 1; bash -c 'echo $Y'") == "7 /tmp\nf 1\na b\n"
        assert shell.run("false").exit_code == 1
        assert shell.run("(exit 42)").exit_code == 42


def test_the_root_is_its_own(shells: LocalSandbox) -> None:
    """Writable but for the system's programs, with a user that is called root and has no rights."""
    with shells.shell() as shell, shells.shell() as other:
        assert (
            said(shell, "id -u; whoami; echo $HOME; tail -n1 /etc/passwd | cut -d: -f1") == "0\nroot\n/root\nnobody\n"
        )
        assert (
            said(shell, "for d in / /app /root /tmp /etc /home /var/log /opt; do echo x > $d/new || echo $d; done")
            == ""
        )
        for place in ("/usr/bin", "/usr/lib"):
            assert "Read-only" in said(shell, f"touch {place}/new")
        assert said(shell, "cat /app/new") == "x\n"
        assert said(
            shell, "chown 1:1 /app/new 2> /dev/null || echo refused; chmod 0 /app/new; cat /app/new 2> /dev/null"
        ) == ("refused\n")
        assert said(other, "ls -A /app") == ""


def test_what_commands_are_given_and_write(best_shells: LocalSandbox) -> None:
    with best_shells.shell(limits=Limits(wall=240.0, output=1000)) as shell:
        assert said(shell, "echo 1; echo 2 >&2; echo 3") == "1\n2\n3\n"
        assert said(shell, "cat; read line || echo nothing") == "nothing\n"
        assert said(shell, "cat <<'END'\na $X 'q' \"w\" \\\nEND\n") == "a $X 'q' \"w\" \\\n"
        assert said(shell, "for i in 1 2; do\n  echo $i\ndone") == "1\n2\n"
        failed = shell.run("echo 'never closed")
        assert (failed.exit_code, failed.new_shell) == (2, False)
        assert "matching" in failed.output
        assert said(shell, "break; echo here").endswith("here\n")
        ran = shell.run("printf 'a%.0s' {1..5000}; echo the end")
        assert ran.truncated
        assert ran.output.endswith("the end\n")
        assert len(ran.output) < 1200
        assert shell.run("a\0b").exit_code == 2


def test_a_late_command_is_ended_alone(shells: LocalSandbox) -> None:
    with shells.shell() as shell:
        said(shell, "X=1; cd /tmp; sleep 12345 & echo $! > pid")
        for late in ("sleep 1000", "while :; do sleep 1000; done", "cat <(sleep 1000)", "sleep 1000 | cat"):
            ran = shell.run(late, seconds=0.5)
            assert (ran.ending, ran.exit_code, ran.new_shell) == ("timeout", None, False), late
        # What was there before is still there, and nothing of what was late.
        assert said(shell, "echo $X $PWD; kill -0 $(cat pid) && echo alive") == "1 /tmp\nalive\n"
        assert said(shell, "pgrep -c sleep") == "1\n"


def test_what_ignores_interrupts_is_ended_too(best_shells: LocalSandbox) -> None:
    with best_shells.shell() as shell:
        before = said(shell, "ls /tmp").split()  # with a clone in /tmp, the folders of its Python
        ran = shell.run("cd /tmp; touch kept; bash -c \"trap '' INT; while :; do sleep 1000; done\"", seconds=0.5)
        assert (ran.ending, ran.new_shell) == ("timeout", False)
        assert said(shell, "pwd") == "/tmp\n"
        # A shell that does so itself is replaced, after a while.
        ran = shell.run("trap '' INT; while :; do sleep 1000; done", seconds=0.5)
        assert (ran.ending, ran.new_shell) == ("timeout", True)
        assert ran.seconds > 10
        assert said(shell, "pwd; ls /tmp; pgrep -c sleep").split() == ["/app", *sorted([*before, "kept"]), "0"]


def test_a_shell_that_ends_is_replaced(best_shells: LocalSandbox) -> None:
    with best_shells.shell(variables={"A": "b"}) as shell:
        for command, code in {"exit 3": 3, "exec false": 1, "set -e; false": 1, "kill -9 $$": 137}.items():
            ran = shell.run(f"X=1; touch '/app/{command[:4]}'; {command}")
            assert (ran.ending, ran.exit_code, ran.new_shell) == ("exit", code, True), ran
            assert said(shell, "echo $X$A; pwd") == "b\n/app\n"
        assert said(shell, "ls -1 /app | wc -l") == "4\n"


def test_settling_ends_what_runs(shells: LocalSandbox) -> None:
    with shells.shell() as shell:
        said(shell, "touch /app/kept; nohup sleep 1000 > /dev/null 2>&1 & (trap '' TERM INT HUP; sleep 1000 &) ; :")
        shell.settle()
        assert said(shell, "pgrep -c sleep; ls /app") == "0\nkept\n"


def test_files_go_in_and_out(shells: LocalSandbox) -> None:
    given = {
        "/app/data": Entry(is_folder=True, mode=0o555, modified=10**18),
        "/app/data/a.txt": Entry(b"hello\n", 0o640, 2 * 10**18),
        "/app/data/secret": Entry(bytes(range(256)), 0),
        "/app/link": Entry(target="data/a.txt"),
        "/app/nowhere": Entry(target="/gone"),
        "/etc/new/deep/file": Entry("ä\n".encode(), 0o755),
        "/app/na\udcffme": Entry(b""),
    }
    with shells.shell() as shell:
        shell.put(given)
        assert said(shell, "stat -c '%a %Y' /app/data /app/data/a.txt; cat /app/link; readlink /app/nowhere") == (
            "555 1000000000\n640 2000000000\nhello\n/gone\n"
        )
        assert said(shell, "/bin/cat /etc/new/deep/file; mkfifo /app/pipe; ls -A /app | wc -l") == "ä\n5\n"
        taken = shell.take("/app", "/etc/new", left_out=["/etc/new/other"])
        assert taken["/app"].is_folder
        assert "/app/pipe" not in taken
        for path, entry in given.items():
            found = taken[path]
            assert (found.content, found.target, found.is_folder) == (entry.content, entry.target, entry.is_folder)
            assert entry.target is not None or found.mode == entry.mode
            assert entry.modified in (None, found.modified)
        with shells.shell() as other:
            other.put(taken)
            again = other.take("/app", "/etc/new")
        assert again == taken
        # What is in the way makes room.
        shell.put({"/app/data": Entry(b"now a file"), "/app/link": Entry(is_folder=True)})
        assert said(shell, "cat /app/data; stat -c %F /app/link") == "now a filedirectory\n"
        said(shell, "ln -s loop /app/loop")
        assert shell.take("/not/there", "/app/data/below", "/app/loop/x") == {}


def test_the_system_is_never_taken(shells: LocalSandbox) -> None:
    """A shell that is given the files of another one runs the system's programs, whatever lay in their places."""
    with shells.shell() as shell:
        assert said(
            shell,
            "mv /usr /usr2; mkdir -p /usr/bin /usr/lib; for p in ls cat bash; do echo evil > /usr/bin/$p; done\n"
            "builtin echo /app/evil.so > /etc/ld.so.preload; /usr2/bin/rm /bin\n"
            "/usr2/bin/ln -s /app /bin; builtin echo ok",
        ).endswith("ok\n")
        left = shell.take("/")
        assert "/usr/bin/ls" not in left
        assert not {"/bin", "/etc/ld.so.preload", "/etc/ld.so.cache"} & {*left}
        assert not [path for path in left if path.startswith(("/proc", "/dev"))]
        with shells.shell() as other:
            other.put({path: entry for path, entry in left.items() if not path.startswith("/usr2")})
            assert said(other, "bash -c 'ls -d /app'") == "/app\n"


LOOK = b"""
import os
fd = {f"fd/{number}" for pid in os.listdir("/proc") if pid.isdigit() for number in range(16)}
for pid in sorted(pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()):
    for name in ("mem", "environ", "maps", "auxv", "smaps", "exe", *sorted(fd)):
        for how in (os.O_RDONLY, os.O_WRONLY | os.O_NONBLOCK):
            try:
                os.close(os.open(f"/proc/{pid}/{name}", how))
            except OSError:
                continue
            print(pid, name, "read" if how == os.O_RDONLY else "written to")
"""


def test_nobody_looks_into_the_interpreters_of_a_guarded_shell(shells: LocalSandbox) -> None:
    """Bash above a Python above a shell above the program that looks."""
    starts = (
        "import subprocess; raise SystemExit(subprocess.run(['sh', '-c', 'python3 /tmp/look.py; exit 7']).returncode)"
    )
    path = {"PATH": f"/usr/bin:/bin:{sys.base_prefix}/bin"}
    for guarded in (True, False):
        with shells.shell(guarded=guarded, variables=path) as shell:
            shell.put({"/tmp/look.py": Entry(LOOK), "/tmp/start.py": Entry(starts.encode())})
            ran = shell.run("python3 -I /tmp/start.py")
            assert ran.exit_code == 7, ran
            assert (ran.output == "") == guarded, ran.output
            if guarded:  # all else works, and processes are seen
                assert said(shell, "cat <(echo hi); pgrep -c bash; echo 'print(6 * 7)' | python3 -") == "hi\n1\n42\n"
                assert "denied" in said(shell, "cat /bin/bash | wc -c")
                assert "Read-only" in said(shell, "chmod a+r /bin/bash")
                assert said(shell, "echo $$ > /dev/stdout; sleep 1000 & sleep 0; jobs | wc -l").endswith("1\n")
                shell.settle()
                assert said(shell, "pgrep -c sleep") == "0\n"


def test_the_memory_of_a_guarded_shell_is_limited(best_shells: LocalSandbox) -> None:
    """The server may look where the shell's own processes may not."""
    limits = Limits(wall=240.0, memory=256 << 20)
    path = {"PATH": f"/usr/bin:/bin:{sys.base_prefix}/bin"}
    fills = "import os, time; [os.fork() for _ in range(2)]; x = b'x' * (100 << 20); time.sleep(1000)"
    with best_shells.shell(guarded=True, limits=limits, variables=path) as shell:
        assert said(shell, "python3 -c 'x = bytes(100 << 20); print(len(x))'") == f"{100 << 20}\n"
        assert shell.run(f'python3 -c "{fills}"').ending == "memory"


@pytest.mark.parametrize("command", ["kill -STOP -1; echo x", "kill -STOP 2; echo x", "(sleep 1; kill -STOP 2) & wait"])
def test_a_shell_that_is_stopped_ends(shells: LocalSandbox, command: str) -> None:
    """At once, not after minutes: a stopped process does not keep its time limit."""
    with shells.shell() as shell:
        ran = shell.run(command, seconds=200.0)
        assert (ran.ending, shell.ended is not None) == ("killed", True)
        assert ran.seconds < 100
        with pytest.raises(ShellError, match="has ended"):
            shell.run("echo there")
    with shells.shell() as shell:  # a stopped program does not stop its shell
        assert said(shell, "sleep 1000 & kill -STOP $!; kill -CONT $!; kill $!; echo there").endswith("there\n")


def test_a_bash_that_does_not_read_is_replaced_when_time_is_up(best_shells: LocalSandbox) -> None:
    """A command longer than a pipe holds, for a bash that an earlier command stops."""
    with best_shells.shell() as shell:
        said(shell, "(until [ -e /tmp/go ]; do sleep 0.01; done; kill -STOP $$; touch /tmp/stopped) &")
        shell.put({"/tmp/go": Entry(b"")})
        wait_until(lambda: "/tmp/stopped" in shell.take("/tmp"), "bash is stopped")
        ran = shell.run(f"true {'x' * 200_000}", seconds=1.0)
        assert (ran.ending, ran.new_shell) == ("timeout", True)
        assert ran.seconds < 100
        assert said(shell, f"echo {'y' * 150_000} | wc -c") == "150001\n"


def test_disk(shells: LocalSandbox) -> None:
    with shells.shell(limits=Limits(wall=240.0, disk=4 << 20)) as shell:
        assert shell.run("head -c 8M /dev/zero > /app/large").exit_code != 0
        assert int(said(shell, "stat -c %s /app/large")) <= 4 << 20
        assert "No space left" in said(
            shell, "head -c 3M /dev/zero > /tmp/a; head -c 3M /dev/zero > /root/b; echo full > /etc/c"
        )
        with pytest.raises(ShellError, match="No space"):
            shell.put({"/app/more": Entry(bytes(1 << 20))})
        # Files with holes take no room, and are still not more than the disk when they are taken.
        said(shell, "rm /app/large /tmp/a /root/b; for i in 1 2 3; do truncate -s 3M /app/hole$i; done")
        with pytest.raises(ShellError, match="more than"):
            shell.take("/app")
        assert said(shell, "echo fine") == "fine\n"


def test_processes(best_shells: LocalSandbox) -> None:
    with best_shells.shell(limits=Limits(wall=240.0, processes=12)) as shell:
        shell.put({"/app/forks.py": Entry(FORKS.encode())})
        assert 4 < int(said(shell, "python3 forks.py")) < 12
        shell.settle()
        assert said(shell, "pgrep -c sleep") == "0\n"
        # Those that have lost their parents do not add up.
        assert said(shell, "for i in {1..30}; do (true &); done; echo done") == "done\n"


def test_memory_ends_the_shell(best_shells: LocalSandbox) -> None:
    with best_shells.shell(limits=Limits(wall=240.0, memory=64 << 20)) as shell:
        hog = "python3 -c \"kept = b'x' * (40 << 20); import time; time.sleep(1000)\""
        ran = shell.run(f"{hog} & {hog} & {hog} & {hog} & wait")
        assert ran.ending == "memory"
        assert shell.ended == "it exceeded its memory"
        for act in (lambda: shell.run("ls"), lambda: shell.take("/app"), shell.settle, lambda: shell.put({})):
            with pytest.raises(ShellError, match="exceeded its memory"):
                act()
        shell.close()
        assert said(shell, "echo anew") == "anew\n"


def test_a_shell_whose_process_is_killed_has_ended(best_shells: LocalSandbox) -> None:
    with best_shells.shell() as shell:
        ran = shell.run("kill -9 -1; kill -9 2")
        assert ran.ending == "killed"
        with pytest.raises(ShellError, match="has ended"):
            shell.run("ls")


def test_nothing_is_left(shells: LocalSandbox) -> None:
    marker = f"shell-{os.getpid()}-{time.monotonic_ns()}"
    shell = shells.shell(variables={"MARKER": marker})
    said(shell, "nohup sleep 1000 > /dev/null 2>&1 &")
    assert processes_with(marker)
    shell.close()
    wait_until(lambda: not processes_with(marker))
    forgotten = shells.shell(variables={"MARKER": marker})
    said(forgotten, "sleep 1000 &")
    del forgotten
    wait_until(lambda: not processes_with(marker))


def test_many_at_a_time(shells: LocalSandbox) -> None:
    found: dict[int, str] = {}

    def play(number: int) -> None:
        with shells.shell() as shell:
            shell.put({"/app/number": Entry(b"%d\n" % number)})
            said(shell, "read n < /app/number")
            found[number] = said(shell, "echo $((n * 2)); ls /app")

    threads = [threading.Thread(target=play, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"{2 * number}\nnumber\n" for number in range(16)}


@pytest.mark.parametrize("backend", SAFE)
def test_a_file_of_the_system_that_is_replaced(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ldconfig` replaces /etc/ld.so.cache. A mounted file cannot be mounted again then, and no shell started."""
    file = tmp_path / "file.conf"
    file.write_text("before\n")
    monkeypatch.setattr(view, "_SYSTEM", (*vars(view)["_SYSTEM"], str(file)))
    with LocalSandbox(backend=available(backend), limits=LONG, concurrency=63) as sandbox:
        with sandbox.shell() as shell:
            assert said(shell, f"cat {file}") == "before\n"
        (tmp_path / "new").write_text("after\n")
        os.replace(tmp_path / "new", file)
        with sandbox.shell() as shell:
            assert said(shell, f"cat {file}; rm {file}; ls {file.parent}") == "before\n"


def test_a_lost_server_is_an_error(best_shells: LocalSandbox) -> None:
    with LocalSandbox(limits=LONG, concurrency=62) as sandbox, sandbox.shell() as shell:
        before = children()
        said(shell, "touch /app/x")
        (server,) = children() - before
        os.killpg(server, 9)
        with pytest.raises(SandboxError, match="with it this shell and all its files"):
            shell.run("ls")
        assert said(shell, "ls /app") == ""


def test_no_shell_without_a_root_of_its_own() -> None:
    with (
        LocalSandbox(backend=available("limits"), allow_unsafe=True) as sandbox,
        pytest.raises(SandboxError, match="root"),
    ):
        sandbox.shell().run("ls")
