"""An interpreter that keeps its state from run to run."""

import os

import pytest
from sandbox_processes import LIMITS

from gem_sandbox import Limits, LocalSandbox


def test_state_is_kept(sandbox: LocalSandbox) -> None:
    with sandbox.session() as session:
        assert session.run("import math\nx = 2").stdout == ""
        assert session.run("def f(): return x * 3").exit_code == 0
        done = session.run("print(f(), input())", stdin="in")
        assert (done.stdout, done.ending, done.exit_code, done.restarted) == ("6 in\n", "exit", 0, False)


def test_exceptions_leave_the_state(sandbox: LocalSandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 1\ndef f():\n    return 1 / 0")
        failed = session.run("x = 2\nf()")
        assert failed.exit_code == 1
        assert "return 1 / 0" in failed.stderr
        assert session.run("import sys\nsys.exit(5)").exit_code == 5
        assert session.run("bytearray(1 << 40)").ending == "memory"
        assert session.run("print(x)").stdout == "2\n"


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_run_that_is_ended_ends_the_state(sandbox: LocalSandbox) -> None:
    with sandbox.session(limits=Limits(wall=1.0)) as session:
        assert session.run("x = 1").restarted is False
        assert session.run("while True: pass").ending == "timeout"
        after = session.run("print('x' in globals())")
        assert (after.stdout, after.restarted) == ("False\n", True)
        assert session.run("x = 1").restarted is False
        assert session.run("import os\nos._exit(7)").exit_code == 7
        assert session.run("1").restarted is True
        assert session.run("import os\nos.kill(os.getpid(), 9)").ending == "killed"


def test_limits_are_each_runs_own(best: LocalSandbox) -> None:
    busy = "import time\nend = time.process_time() + 0.7\nwhile time.process_time() < end: pass"
    with best.session(limits=Limits(wall=20, cpu=1)) as session:
        assert [session.run(busy).ending for _ in range(3)] == ["exit"] * 3
        assert session.run("while True: pass").ending == "timeout"


def test_sessions_share_nothing(sandbox: LocalSandbox) -> None:
    with sandbox.session() as one, sandbox.session() as two:
        one.run("x = 1\nopen('file', 'w')")
        assert two.run("import os\nprint('x' in globals(), os.path.exists('file'))").stdout == "False False\n"


def test_more_sessions_than_cores() -> None:
    with LocalSandbox(limits=LIMITS) as sandbox:
        sessions = [sandbox.session() for _ in range(3 * (os.cpu_count() or 1))]
        for number, session in enumerate(sessions):
            session.run(f"x = {number}")
        assert [session.run("print(x)").stdout for session in sessions] == [f"{n}\n" for n in range(len(sessions))]
        for session in sessions:
            session.close()


def test_close_begins_anew(sandbox: LocalSandbox) -> None:
    session = sandbox.session()
    session.run("x = 1")
    session.close()
    after = session.run("print('x' in globals())")
    session.close()
    assert (after.stdout, after.restarted) == ("False\n", False)


def test_a_lie_of_a_session_is_its_own(sandbox: LocalSandbox) -> None:
    with sandbox.session() as liar, sandbox.session() as honest:
        honest.run("x = 1")
        for lie in (b"F0", b"Fmany", b"", b"\xff" * 100):
            liar.run(f"import socket\nsocket.socket(fileno=3).send({lie!r})")
        done = honest.run("print(x)")
    assert (done.stdout, done.exit_code, done.restarted) == ("1\n", 0, False)


def test_what_a_run_forks_is_no_second_interpreter(safe: LocalSandbox) -> None:
    with safe.session() as session:
        session.run("import os\npid = os.fork()\nprint('parent' if pid else 'child', flush=True)\nif pid: os.wait()")
        for number in range(3):
            assert session.run(f"print({number}, bool(pid))").stdout == f"{number} True\n"
