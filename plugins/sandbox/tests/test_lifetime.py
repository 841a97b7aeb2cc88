"""When the template starts and ends, who shares it, and who may call."""

import contextlib
import multiprocessing
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sandbox_processes import LIMITS, children, descendants, is_alive

import gem_sandbox
from gem_sandbox import Limits, LocalSandbox, SandboxError
from gem_sandbox._backends import SAFE
from gem_sandbox._call import RunningProcess
from gem_sandbox._choice import chosen, problems
from gem_support.waiting import wait_until


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path):
    before = children()
    files = len(os.listdir("/proc/self/fd"))
    yield
    assert children() <= before
    assert len(os.listdir("/proc/self/fd")) <= files


def test_importing_it_is_light() -> None:
    code = (
        "import gem_sandbox, sys\nprint([name for name in sys.modules if name.startswith('gem_') or name == 'ctypes'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "['gem_sandbox']\n"


def test_a_constructor_starts_nothing() -> None:
    before = children()
    sandbox = LocalSandbox()
    assert children() == before
    sandbox.close()


def test_used_again_after_close(sandbox: LocalSandbox) -> None:
    assert sandbox.run("print(1)").stdout == "1\n"
    sandbox.close()
    assert sandbox.run("print(2)").stdout == "2\n"
    sandbox.close()


def test_equal_settings_share_a_template() -> None:
    chosen("auto", allow_unsafe=False)  # so that the backends have been tried
    before = children()
    sandboxes = [LocalSandbox() for _ in range(8)]
    threads = [threading.Thread(target=one.run, args=("",)) for one in sandboxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(children() - before) == 1
    for one in sandboxes[:-1]:
        one.close()
    assert len(children() - before) == 1
    sandboxes[-1].close()
    assert children() == before


def test_nobody_closes_it() -> None:
    before = children()
    sandbox = LocalSandbox()
    session = sandbox.session()
    session.run("x = 1")
    del session, sandbox
    assert children() == before


def test_no_more_at_a_time_than_asked_for() -> None:
    with LocalSandbox(concurrency=1, limits=Limits(wall=5.0)) as sandbox:
        done = []
        sleep = "import time\ntime.sleep(0.4)\nprint('awake')"
        threads = [threading.Thread(target=lambda: done.append(sandbox.run(sleep))) for _ in range(5)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [one.stdout for one in done] == ["awake\n"] * 5
    assert time.monotonic() - begin >= 2.0


def test_a_template_that_dies_is_replaced(sandbox: LocalSandbox) -> None:
    before = children()
    sandbox.run("")
    (template,) = children() - before
    threading.Timer(0.3, os.killpg, (template, signal.SIGKILL)).start()
    assert sandbox.run("import time\ntime.sleep(1)\nprint('here')").stdout == "here\n"
    sandbox.close()


def test_closed_while_a_program_runs(sandbox: LocalSandbox) -> None:
    """It was said to have been killed, as if it had done so itself."""
    sandbox.close()
    before = children()
    done: list[str] = []
    code = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'under-way', 0, 0, 0)\ntime.sleep(1)\nprint('here')"
    caller = threading.Thread(target=lambda: done.append(sandbox.run(code).stdout))
    caller.start()
    wait_until(lambda: any(_name(pid) == "under-way" for pid, _ in descendants(os.getpid())))
    sandbox.close()
    caller.join()
    assert done == ["here\n"]
    sandbox.close()
    assert children() == before


def test_a_session_that_is_closed_while_it_runs(sandbox: LocalSandbox) -> None:
    """It lost its file descriptors, which may be another call's by now."""
    problems: list[str] = []
    session = sandbox.session()
    session.run("")

    def call() -> None:
        try:
            session.run("import ctypes, time\nctypes.CDLL(None).prctl(15, b'in-session', 0, 0, 0)\ntime.sleep(600)")
        except SandboxError as error:
            problems.append(str(error))

    caller = threading.Thread(target=call)
    caller.start()
    wait_until(lambda: any(_name(pid) == "in-session" for pid, _ in descendants(os.getpid())))
    session.close()
    caller.join()
    assert problems == ["the session was closed while it ran a program"]
    assert session.run("print(1)").stdout == "1\n"
    session.close()
    sandbox.close()


def test_a_session_that_is_closed_as_a_program_begins(best: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ran once more, in a process that nobody had asked for."""
    session = best.session()
    session.run("")
    give = RunningProcess.give

    def closed_meanwhile(call: RunningProcess, code: int, stdin: int) -> bool:
        session.close()
        wait_until(lambda: select.select([call._call], [], [], 0)[0])
        return give(call, code, stdin)

    with monkeypatch.context() as patch:
        patch.setattr(RunningProcess, "give", closed_meanwhile)
        with pytest.raises(SandboxError, match="the session was closed while it ran a program"):
            session.run("print(1)")
    assert session.run("print(2)").stdout == "2\n"
    session.close()
    best.close()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_pickled() -> None:
    sandbox = LocalSandbox(limits=Limits(wall=7.0, output=3))
    sandbox.run("")
    with pickle.loads(pickle.dumps(sandbox)) as copy:
        sandbox.close()
        assert copy.run("print('abcdef')").stdout_truncated


def test_forked(sandbox: LocalSandbox) -> None:
    session = sandbox.session()
    session.run("x = 1")
    process = multiprocessing.get_context("fork").Process(target=_in_the_fork, args=(sandbox, session))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert session.run("print(x)").stdout == "1\n"
    session.close()
    sandbox.close()
    process.close()


def _in_the_fork(sandbox: LocalSandbox, session: gem_sandbox.SandboxSession) -> None:
    assert sandbox.run("print(2)").stdout == "2\n"
    assert session.run("print('x' in globals())").restarted
    session.close()
    sandbox.close()


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "limits"])
def test_the_owner_is_killed(backend: str) -> None:
    if problem := problems(backend):
        pytest.skip(problem)
    code = f"""
from gem_sandbox import LocalSandbox
import threading
sandbox = LocalSandbox(backend={backend!r}, allow_unsafe=True)
session = sandbox.session()
session.run("x = 1")
threading.Timer(0.5, print, args=("running",), kwargs=dict(flush=True)).start()
sandbox.run("import os\\ntry: os.fork()\\nexcept OSError: pass\\nwhile True: pass")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"running\n"
        below = descendants(owner.pid)
        owner.kill()
    assert len(below) >= 3
    assert wait_until(lambda: not any(is_alive(*one) for one in below))


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "limits"])
def test_an_ordinary_user(backend: str, tmp_path: Path) -> None:
    """With a Python that this user can read; everything else is as for root."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not os.path.exists(python):
        pytest.skip("needs root, to become somebody else, and a Python of the system")
    if problem := problems(backend):
        pytest.skip(problem)
    folder = Path("/tmp") / f"gem-user-{os.getpid()}"
    home = Path(gem_sandbox.__file__).parent
    core = Path(__import__("gem_core").__file__).parent
    shutil.copytree(home, folder / "gem_sandbox")
    (folder / "gem_core").mkdir()
    (folder / "gem_core" / "__init__.py").touch()
    for module in ("errors.py", "waiting.py"):  # what the sandbox uses of it
        shutil.copy(core / module, folder / "gem_core")
    code = f"""
import os, sys
sys.path.insert(0, {str(folder)!r})
from gem_sandbox import LocalSandbox, Limits
with LocalSandbox(backend={backend!r}, allow_unsafe=True) as sandbox:
    bomb = "import os\\nwhile True:\\n  try: os.fork()\\n  except OSError: pass"
    assert sandbox.run(bomb, limits=Limits(wall=1.0, processes=10)).ending == "timeout"
    done = sandbox.run("import os, subprocess, sys\\nprint(subprocess.call([sys.executable, '-c', 'pass']))\\n"
                       "for path in ({str(folder)!r}, '/etc/passwd', '/root', '/home'):\\n"
                       "  try: os.stat(path) and open(path).close() or print('read', path)\\n  except OSError: pass\\n"
                       "try: os.kill({os.getpid()}, 0); print('signalled')\\nexcept OSError: pass")
    assert done.stdout == "0\\n", done
"""
    try:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        command = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", python, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env={"PATH": os.environ["PATH"]})
        assert done.returncode == 0, done.stderr
    finally:
        shutil.rmtree(folder)


def test_the_unsafe_one_is_refused() -> None:
    with pytest.raises(SandboxError, match="allow_unsafe"):
        LocalSandbox(backend="limits")


def test_no_such_backend() -> None:
    with pytest.raises(SandboxError, match="bubblewrap"):
        LocalSandbox(backend="docker")


def test_auto_takes_a_safe_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from gem_sandbox import _choice as choice

    monkeypatch.setattr(choice, "_found", dict.fromkeys(SAFE, "not on this machine"))
    with pytest.raises(SandboxError, match=r"bubblewrap: not on this machine; namespaces: not.*allow_unsafe"):
        LocalSandbox().run("")
    assert choice.chosen("auto", allow_unsafe=True) == "limits"


def test_a_thousand_mixed_calls() -> None:
    hostile = ["import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "while True: print('y' * 10_000)",
               "x = bytearray(1 << 40)", "import os; os.kill(-1, 9); os.kill(os.getpid(), 9)"]  # fmt: skip
    limits = Limits(wall=0.3, output=1000, processes=10)
    wrong: list[object] = []

    def environment(number: int) -> None:
        for turn in range(5):
            if (number + turn) % 20 == 0:
                sandbox.run(hostile[number % 4], limits=limits)
            done = sandbox.run(f"print({number} * {turn})", limits=LIMITS)
            if done.stdout != f"{number * turn}\n":
                wrong.append(done)

    before = children()
    with LocalSandbox(limits=LIMITS) as sandbox:
        threads = [threading.Thread(target=environment, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert children() == before


def test_a_process_serves_one_call(safe: LocalSandbox) -> None:
    """Also one that was there before its call."""
    code = "import os, sys\nprint(os.listdir('.'), hasattr(sys, 'seen'))\nsys.seen = open('seen', 'w')"
    for _ in range(8):
        assert safe.run(code).stdout == "['program.py'] False\n"
        time.sleep(0.05)
    safe.close()


def test_processes_that_wait_cost_no_call(safe: LocalSandbox) -> None:
    """Those that wait for calls with other limits, and those that were killed; and none outlives the sandbox."""
    safe.close()
    before = children()
    for limits in (LIMITS, Limits(wall=19.0), LIMITS, Limits(wall=19.0, disk=1 << 20)):
        for _ in range(5):
            assert safe.run("print(1)", limits=limits).stdout == "1\n"
        (template,) = children() - before
        assert wait_until(lambda template=template: bool(_waiting(template)))
        assert wait_until(lambda template=template: _all_killed(template))
        assert safe.run("print(1)", limits=limits).stdout == "1\n"
    below = descendants(template)
    safe.close()
    # Bubblewrap's own first process ends a moment after the one that is waited for.
    assert wait_until(lambda: not any(is_alive(*one) for one in below))


def _waiting(template: int) -> set[int]:
    """Ids of the processes for calls to come, where no call is under way: each the second of a process namespace."""
    lowest = {pid for pid, start in descendants(template) if is_alive(pid, start) and not descendants(pid)}
    return {pid for pid in lowest if _ids(pid)[-1] == "2"}


def _all_killed(template: int) -> bool:
    """Kill those that wait; whether there were none."""
    waiting = _waiting(template)
    for pid in waiting:
        with contextlib.suppress(ProcessLookupError):  # one for other limits, which has just been given up
            os.kill(pid, signal.SIGKILL)
    return not waiting


def _ids(pid: int) -> list[str]:
    """A process's ids, from the outermost namespace to its own; one that is none where it has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return [""]
    return status.partition("\nNSpid:")[2].partition("\n")[0].split()
