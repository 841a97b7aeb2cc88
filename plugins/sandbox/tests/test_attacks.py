"""What programs did to their neighbours, to the machine and to the sandbox itself, each as it was done."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NoReturn

import pytest
from sandbox_processes import children, descendants, is_alive

import gem_core
import gem_sandbox
from gem_sandbox import Limits, LocalSandbox, SandboxError, SandboxSession, serving
from gem_sandbox import _backends as backends
from gem_sandbox import _priority as priority
from gem_sandbox._memory import Memory, id_in_proc
from gem_sandbox.serving import Group, Job, Process
from gem_support.waiting import wait_until

pytestmark = pytest.mark.long

ATTEMPT = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
column = ("x86_64", "aarch64").index(os.uname().machine)
def attempt(what, act):
    try:
        print(what, "->", repr(act()))
    except BaseException as error:
        print(what, "failed", type(error).__name__)
def call(what, numbers, *arguments):
    result = libc.syscall(numbers[column], *arguments)
    print(what, "->" if result != -1 else "failed", ctypes.get_errno())
"""
MIB = 1 << 20


def said(sandbox: LocalSandbox, code: str, limits: Limits | None = None) -> list[str]:
    """What a program says of its attempts; it must have come to its end."""
    done = sandbox.run(f"{ATTEMPT}\n{code}\nprint('the end')", limits=limits)
    assert done.stdout.endswith("the end\n"), done
    return done.stdout.splitlines()[:-1]


def failed(sandbox: LocalSandbox, code: str, limits: Limits | None = None) -> None:
    """All attempts of a program are refused."""
    lines = said(sandbox, code, limits)
    assert lines
    assert [line for line in lines if " failed " not in line] == []


# -- the template and the neighbours -------------------------------------------------------------------------------


def test_signals_to_the_first_process(sandbox: LocalSandbox) -> None:
    """It inherited the template's handlers, and shares its memory."""
    hostile = """
import os
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
"""
    sandbox.close()
    before = children()
    wrong: list[object] = []

    def neighbour(number: int) -> None:
        for turn in range(10):
            if number == 0:
                sandbox.run(hostile)
            done = sandbox.run(f"print({number} * {turn})")
            if done.stdout != f"{number * turn}\n":
                wrong.append(done)

    with sandbox.session() as session:
        session.run("x = 1")
        template = children() - before
        threads = [threading.Thread(target=neighbour, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        done = session.run("print(x)")
        assert (done.stdout, done.restarted) == ("1\n", False)
        assert children() - before == template


def test_children_of_the_template(sandbox: LocalSandbox) -> None:
    """With CLONE_PARENT a program made processes that nobody waited for, and its own namespace never ended."""
    sandbox.close()
    before = children()
    sandbox.run("")
    (template,) = children() - before
    code = "if libc.syscall((56, 220)[column], 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0)"
    for _ in range(10):
        said(sandbox, code)
    # Two for a call, two each for two calls to come, and the template with what started it.
    assert wait_until(lambda: len(descendants(template)) < 10)


def test_stdin_is_read_anew_after_a_lost_template(sandbox: LocalSandbox) -> None:
    """The second attempt found its input read already, and an honest program failed."""
    sandbox.close()
    before = children()
    code = "import ctypes, sys\ntext = sys.stdin.read()\nctypes.CDLL(None).prctl(15, b'has-read', 0, 0, 0)\n"
    code += "import time\ntime.sleep(1)\nprint(text)"
    done: list[object] = []
    caller = threading.Thread(target=lambda: done.append(sandbox.run(code, stdin="input").stdout))
    caller.start()
    wait_until(lambda: any(_name(pid) == "has-read" for pid, _ in descendants(os.getpid())))
    (template,) = children() - before
    os.killpg(template, 9)
    caller.join()
    assert done == ["input\n"]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


# -- trouble of the machine is no verdict --------------------------------------------------------------------------


@pytest.fixture
def killer() -> Iterator[Callable[[], None]]:
    """Called, it kills every template of this process from then on, as soon as a program runs in it."""
    stop = threading.Event()
    before = children()

    def kill() -> None:
        while not stop.wait(0.001):
            for template in children() - before:
                if any(_name(pid) == "at-work" for pid, _ in descendants(template)):
                    with suppress(ProcessLookupError):
                        os.killpg(template, 9)

    thread = threading.Thread(target=kill)
    yield thread.start
    stop.set()
    if thread.ident is not None:
        thread.join()


AT_WORK = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'at-work', 0, 0, 0)\ntime.sleep(600)"


def test_a_template_that_is_always_lost_is_an_error(sandbox: LocalSandbox, killer: Callable[[], None]) -> None:
    sandbox.close()
    killer()
    with pytest.raises(SandboxError, match="killed again and again"):
        sandbox.run(AT_WORK, limits=Limits(wall=120))


def test_a_lost_state_is_an_error(sandbox: LocalSandbox) -> None:
    sandbox.close()
    before = children()
    with sandbox.session() as session, sandbox.session() as other:
        session.run("x = 1")
        (template,) = children() - before
        below = descendants(template)
        os.killpg(template, 9)
        assert wait_until(lambda: not any(is_alive(*one) for one in below))
        with pytest.raises(SandboxError, match="all that was defined"):
            session.run("print(x)")
        done = session.run("print('x' in globals())")
        assert (done.stdout, done.restarted) == ("False\n", True)
        assert other.run("print(1)").stdout == "1\n"
        assert session.run("print(1)").restarted is False


def test_a_template_that_runs_out_of_file_descriptors(sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It died, and all sessions with it."""
    command = backends.command
    sandbox.close()
    with monkeypatch.context() as patch, ExitStack() as after:
        after.callback(sandbox.close)
        patch.setattr(backends, "command", lambda *arguments: ["prlimit", "--nofile=200", *command(*arguments)])
        with ExitStack() as opened:
            sessions = [opened.enter_context(sandbox.session()) for _ in range(100)]
            served, problem = _begun(sessions)
            assert "file descriptors for no more" in problem
            assert served > 30
            for number, session in enumerate(sessions[:served]):
                done = session.run("print(x)")
                assert (done.stdout, done.restarted) == (f"{number}\n", False)
        assert sandbox.run("print(1)").stdout == "1\n"


def _begun(sessions: list[SandboxSession]) -> tuple[int, str]:
    """How many sessions ran a program, each its own number, and why the next one did not."""
    for number, session in enumerate(sessions):
        try:
            session.run(f"x = {number}")
        except SandboxError as error:
            return number, str(error)
    return len(sessions), ""


@pytest.mark.parametrize("limit", ["nofile=200", "nproc=4000", "as=8000000000", "fsize=1000000", "sigpending=100"])
def test_a_caller_with_low_limits(backend: str, limit: str) -> None:
    """A limit of the caller's that is lower than the program's is no reason not to run it."""
    code = f"from gem_sandbox import LocalSandbox\nwith LocalSandbox(backend={backend!r}, allow_unsafe=True) as one: "
    code += "print(one.run('print(6 * 7)').stdout)"
    done = subprocess.run(
        ["prlimit", f"--{limit}", sys.executable, "-c", code], capture_output=True, text=True, env=_environment()
    )
    assert done.stdout == "42\n\n", done.stderr


def test_too_few_file_descriptors_are_said_to_be_that(backend: str) -> None:
    code = f"from gem_sandbox import LocalSandbox\nLocalSandbox(backend={backend!r}, allow_unsafe=True).run('')"
    done = subprocess.run(
        ["prlimit", "--nofile=64", sys.executable, "-c", code], capture_output=True, text=True, env=_environment()
    )
    assert "needs 128 file descriptors, and this process may have 64: raise its limit (ulimit -Hn)" in done.stderr


def _environment() -> dict[str, str]:
    packages = [Path(package.__file__ or "").parents[1] for package in (gem_sandbox, gem_core)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}


# -- memory --------------------------------------------------------------------------------------------------------

FORKS = """
import os, time
for _ in range(60):
    try:
        if os.fork() == 0: break
    except OSError: break
"""


def test_buffers_of_sockets(sandbox: LocalSandbox) -> None:
    """Half a mebibyte for each pair, which no limit counted."""
    code = """
import socket
kept = []
try:
    while True:
        pair = socket.socketpair()
        kept.append(pair)
        for one in pair:
            one.setblocking(False)
            try:
                while True: one.send(bytes(1 << 16))
            except BlockingIOError: pass
except OSError: pass
time.sleep(600)
"""
    done = sandbox.run(FORKS + code, limits=Limits(wall=30, memory=32 * MIB))
    assert (done.ending, done.exit_code) == ("memory", None)
    answers(sandbox)


def test_memory_of_many_processes(safe: LocalSandbox) -> None:
    done = safe.run(FORKS + f"kept = b'x' * {28 * MIB}\ntime.sleep(600)", limits=Limits(wall=30, memory=32 * MIB))
    assert (done.ending, done.exit_code) == ("memory", None)
    answers(safe)


def test_memory_of_processes_that_have_lost_their_parents(safe: LocalSandbox) -> None:
    code = f"""
import os, time
for _ in range(8):
    if os.fork() == 0:
        os.setpgid(0, 0)
        if os.fork() == 0:
            kept = b'x' * {28 * MIB}
            time.sleep(600)
        os._exit(0)
    os.wait()
time.sleep(600)
"""
    done = safe.run(code, limits=Limits(wall=30, memory=64 * MIB))
    assert (done.ending, done.exit_code) == ("memory", None)


def test_memory_that_processes_share_is_counted_once(safe: LocalSandbox) -> None:
    code = f"""
import os, time
kept = b'x' * {40 * MIB}
for _ in range(5):
    if os.fork() == 0: time.sleep(1); os._exit(0)
for _ in range(5): os.wait()
print(len(kept))
"""
    done = safe.run(code, limits=Limits(wall=30, memory=96 * MIB))
    assert done.stdout == f"{40 * MIB}\n", done


def test_a_session_that_grows_between_its_runs(safe: LocalSandbox) -> None:
    code = f"""
import os, time
for _ in range(8):
    if os.fork() == 0:
        time.sleep(0.5)
        kept = b'x' * {28 * MIB}
        time.sleep(600)
"""
    with safe.session(limits=Limits(wall=30, memory=64 * MIB)) as session:
        assert session.run(code).ending == "exit"
        assert wait_until(lambda: session.run("").restarted)


def test_who_is_taken_when_memory_runs_out(sandbox: LocalSandbox) -> None:
    code = """
for name in ("self/oom_score_adj", "thread-self/oom_score_adj", "self/oom_adj", "self/autogroup"):
    attempt("write", lambda: open("/proc/" + name, "w").write("0"))
"""
    failed(sandbox, code)


def test_memory_that_outlives_its_owner(sandbox: LocalSandbox) -> None:
    code = """
import fcntl, mmap, os, socket
one, other = socket.socketpair()
read, write = os.pipe()
with open("file", "w+b") as file:
    file.write(bytes(1 << 16)); file.flush()
    attempt("file descriptors under way", lambda: socket.send_fds(one, [b"x"], [0]))
    attempt("a large buffer", lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30))
    attempt("a large pipe", lambda: fcntl.fcntl(write, 1031, 1 << 20))
    attempt("pages in a pipe", lambda: os.sendfile(write, file.fileno(), 0, 4096))
    call("pages in a pipe", (275, 76), file.fileno(), 0, write, 0, 4096, 0)
    call("pages in a pipe", (278, 75), write, ctypes.create_string_buffer(16), 1, 0)
    call("pages in a pipe", (276, 77), read, write, 4096, 0)
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000
attempt("huge pages", lambda: mmap.mmap(-1, 2 << 20, flags=flags))
call("rules", (444, 444), b"\\1" + bytes(7), ctypes.c_size_t(8), 0)
call("filters", (317, 277), 1, 0, 0)
attempt("watches", lambda: 1 / (libc.inotify_init1(0) + 1))
"""
    failed(sandbox, code)


def test_memory_that_is_in_use_by_nobody(sandbox: LocalSandbox) -> None:
    """Shared memory that a process has let go of but for a page, any number of times; a table of the kernel's."""
    code = """
import mmap
attempt("shared memory", lambda: mmap.mmap(-1, 4096))
attempt("shared memory", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDONLY), 4096, prot=mmap.PROT_READ))
call("a table of futexes", (167, 167), 78, 1, 1 << 10, 0, 0)
call("delegations", (72, 25), 0, 1040, 0)
"""
    failed(sandbox, code)


def test_files_that_the_server_does_not_see(sandbox: LocalSandbox) -> None:
    """A thread's own file descriptors, and those of a process that lets nobody look: full sockets were not counted."""
    code = """
attempt("own files", lambda: 1 / (libc.close_range(200, 201, 2) + 1))
call("own files", (56, 220), 0x10000 | 0x800 | 0x100, 0, 0, 0, 0)
attempt("nobody may look", lambda: 1 / (libc.prctl(4, 0, 0, 0, 0) + 1))
"""
    failed(sandbox, code)


def test_ordinary_shared_memory_and_zeros(safe: LocalSandbox) -> None:
    code = """
import mmap
from multiprocessing import Process, Value
count = Value("i", 0)
process = Process(target=lambda: setattr(count, "value", 42))
process.start(); process.join()
print(count.value, open("/dev/zero", "rb").read(2), len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)))
"""
    assert said(safe, code) == ["42 b'\\x00\\x00' 4096"]


def test_memory_of_a_process_whose_first_thread_has_ended(safe: LocalSandbox) -> None:
    code = f"""
import ctypes, os, threading, time
def fill():
    kept = b'x' * {28 * MIB}
    time.sleep(600)
for _ in range(8):
    if os.fork() == 0: break
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall((60, 93)[("x86_64", "aarch64").index(os.uname().machine)], 0)
"""
    done = safe.run(code, limits=Limits(wall=60, memory=128 * MIB))
    assert (done.ending, done.exit_code) == ("memory", None)


def test_a_look_at_memory_takes_a_moment() -> None:
    """The server looked at all processes and files of all calls at once, and a neighbour's time passed meanwhile."""
    process = Process(b"", Job(Group(), _never, lambda _: itertools.repeat(False)))
    process.file = os.pidfd_open(os.getpid())
    try:
        process.next_look = 0.0
        process.look(calls=1)
        assert process.next_look == 0.0, "the look is to go on at once"
        assert {*Memory(0, 0).exceeded([os.getpid()], 1 << 40)} == {False}
        assert [*Memory(0, 0).exceeded([os.getpid()], 1)][-1] is True
    finally:
        os.close(process.file)
        process.cell.reap()


def _never(_: int) -> NoReturn:
    raise AssertionError


def _sleep(_: int) -> NoReturn:
    while True:
        time.sleep(600)


def test_a_session_that_takes_no_program(sandbox: LocalSandbox) -> None:
    """It said that it had run them. They piled up, with their files, until the caller waited for ever."""
    liar = """
import os, socket, threading, time
channel = socket.socket(fileno=os.dup(3))
def lie():
    while True: channel.send(b"F0"); time.sleep(0.001)
threading.Thread(target=lie).start()
time.sleep(600)
"""
    with sandbox.session() as session:
        session.run(liar)
        assert any(session.run("").restarted for _ in range(3))


# -- the machine and its users -------------------------------------------------------------------------------------


def test_limits_and_priority_of_others(sandbox: LocalSandbox) -> None:
    """With `limits`, the trainer was one of them."""
    code = f"""
for pid in ({os.getpid()}, 1):
    attempt("limits", lambda: resource.prlimit(pid, resource.RLIMIT_CORE))
    attempt("limits", lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)))
    attempt("cores", lambda: os.sched_setaffinity(pid, {{0}}))
    attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    call("scheduler", (314, 274), pid, bytes(48), 0)
    call("disks", (251, 30), 1, pid, 0)
    attempt("timers", lambda: 1 / (libc.prctl(62, 1, pid, 0, 0) + 1))
for who in (os.PRIO_PGRP, os.PRIO_USER):
    attempt("priority", lambda: os.setpriority(who, 0, 19))
import fcntl
attempt("signals", lambda: fcntl.fcntl(0, fcntl.F_SETOWN, {os.getpid()}))
attempt("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
"""
    limits = {kind: __import__("resource").getrlimit(kind) for kind in range(16)}
    cores, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    failed(sandbox, code)
    assert {kind: __import__("resource").getrlimit(kind) for kind in range(16)} == limits
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == (cores, priority)


def test_shared_memory_and_messages_of_others(sandbox: LocalSandbox) -> None:
    code = """
for what, numbers in {"attach": (30, 196), "remove": (31, 195), "messages": (70, 188), "semaphores": (66, 191)}.items():
    call(what, numbers, 0, 0, 0, 0, 0)
assert ctypes.get_errno() == 1  # not permitted, whether there is one or not
"""
    failed(sandbox, code)


@pytest.mark.parametrize("code", ["for _ in range(1500): os.mkdir('d'); os.chdir('d')",
                                  "os.mkdir('d'); open('d/file', 'w').close(); os.chmod('d', 0)"])  # fmt: skip
def test_a_folder_that_is_hard_to_take_away(sandbox: LocalSandbox, tmp_path: Path, code: str) -> None:
    """With `limits` the server died of it, and the caller too, or the folder stayed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        tmp_path.chmod(0o755)
        sandbox.close()
        with sandbox.session() as neighbour:
            neighbour.run("x = 1")
            said(sandbox, code)
            assert neighbour.run("print(x)").stdout == "1\n"
        sandbox.close()
    assert [*tmp_path.iterdir()] == []


def test_processes_that_start_others_and_end(sandbox: LocalSandbox) -> None:
    """With `limits` the server killed them one after the other, for as long as they lasted, and served nobody else."""
    code = """
import time
def chain():
    os.setpgid(0, 0)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            if os.fork(): os._exit(0)
            os.fork()
        except OSError: pass
with suppress(OSError):
    for _ in range(3):
        if os.fork() == 0: chain()
"""
    said(sandbox, f"from contextlib import suppress\n{code}")
    answers(sandbox)


PATIENT = Limits(wall=200)
"""For programs that weigh little, and so take long on a machine that is busy."""
BUSY_THREADS = """
import hashlib, threading, time
def busy():
    while True: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 100_000)
threads = [threading.Thread(target=busy, daemon=True) for _ in range(8)]
for one in threads: one.start()
ids = [one.native_id for one in threads]
"""
BUSY_PROCESSES = """
import time
ids = []
for _ in range(8):
    ids.append(os.fork())
    while not ids[-1]: pass
"""
LOWERED = """
def priorities(): return {os.getpriority(os.PRIO_PROCESS, one) for one in ids}
while min(priorities()) < least or len(priorities()) > 1: time.sleep(0.01)
"""
RAISING = """
before = os.getpriority(os.PRIO_PROCESS, 0)
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, before - 1))
attempt("priority", lambda: os.nice(-1))
attempt("priority", lambda: resource.setrlimit(resource.RLIMIT_NICE, (40, 40)))
import struct
call("priority", (314, 274), 0, struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0), 0)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
# The server may lower it further meanwhile.
attempt("priority", lambda: 1 / (os.getpriority(os.PRIO_PROCESS, 0) < before))
"""


def test_many_busy_threads_weigh_as_one(sandbox: LocalSandbox) -> None:
    """Those of one call left its neighbours too little of a core to end in time."""
    least = f"least = {os.getpriority(os.PRIO_PROCESS, 0) + priority.steps(4)}"
    failed(sandbox, f"{least}\n{BUSY_THREADS}\n{LOWERED}\n{RAISING}", PATIENT)


def test_many_busy_processes_weigh_as_one(safe: LocalSandbox) -> None:
    least = f"least = {os.getpriority(os.PRIO_PROCESS, 0) + priority.steps(4)}"
    failed(safe, f"{least}\n{BUSY_PROCESSES}\n{LOWERED}\n{RAISING}", PATIENT)


def test_processes_that_have_lost_their_parents_weigh_as_one(safe: LocalSandbox) -> None:
    orphans = BUSY_PROCESSES.replace("os.fork()", "orphan()")
    code = f"""
def orphan():
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork(): os._exit(0)
        os.write(write, b"%d" % os.getpid())
        return 0
    os.wait()
    return int(os.read(read, 9))
least = {os.getpriority(os.PRIO_PROCESS, 0) + priority.steps(4)}
{orphans}
{LOWERED}
"""
    assert said(safe, code, PATIENT) == []


def test_one_busy_thread_keeps_its_priority(sandbox: LocalSandbox) -> None:
    code = """
import time
while time.process_time() < 0.3: pass
print(os.getpriority(os.PRIO_PROCESS, 0))
"""
    assert said(sandbox, code) == [str(os.getpriority(os.PRIO_PROCESS, 0))]


def test_sessions_of_their_own(safe: LocalSandbox) -> None:
    """Each would weigh as much as all other programs, on kernels that give each its share."""
    code = """
import subprocess
attempt("session", lambda: subprocess.run(["true"], start_new_session=True))
if os.fork() == 0:
    attempt("session", os.setsid)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""
    failed(safe, code)


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel does not tell who waits for a core")
@pytest.mark.uncertain("programs must have what they need, but for a core, within seconds")
def test_a_program_that_has_no_core(backend: str) -> None:
    """It was late, though it had little time: all together need eight seconds of one core."""
    code = f"""
import os, time
os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})
while time.process_time() < 1: pass
"""
    with (
        LocalSandbox(backend=backend, concurrency=8, allow_unsafe=True, limits=Limits(wall=6)) as one,
        ThreadPoolExecutor(8) as threads,
    ):
        done = [*threads.map(one.run, [code] * 8)]
    assert {execution.ending for execution in done} == {"exit"}


def test_only_those_of_normal_priority_are_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(b"", Job(Group(), _sleep))
    process.fork()
    try:
        monkeypatch.setattr(serving, "_waited", lambda _: 1000.0)
        assert process.age().seconds < 0
        os.setpriority(os.PRIO_PROCESS, id_in_proc(process.file), min(19, os.getpriority(os.PRIO_PROCESS, 0) + 1))
        assert process.age().seconds >= 0
    finally:
        process.discard()


def test_own_limits_and_priority(sandbox: LocalSandbox) -> None:
    code = """
attempt("limits", lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1)))
attempt("cores", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("priority", lambda: os.nice(1))
attempt("scheduler", lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)))
"""
    assert [line for line in said(sandbox, code) if "->" not in line] == []


def test_what_all_of_the_machine_shares(sandbox: LocalSandbox) -> None:
    code = """
import fcntl
context = ctypes.c_ulong(0)
call("requests", (206, 0), 1, ctypes.byref(context))
call("sync", (162, 81))
call("syncfs", (306, 267), 0)
call("caches", (221, 223), 0, 0, 0, 4)
call("caches", (187, 213), 0, 0, 4096)
host = os.open(os.__file__, os.O_RDONLY)
attempt("lock", lambda: fcntl.flock(host, fcntl.LOCK_EX))
attempt("lease", lambda: fcntl.fcntl(host, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("write lock", lambda: fcntl.lockf(host, fcntl.LOCK_EX))
"""
    # `sync` cannot fail, and the C library's wrapper does not tell.
    failed(sandbox, code)


def test_timers_are_few(sandbox: LocalSandbox) -> None:
    code = """
made, timer = 0, ctypes.c_void_p()
while made < 2000 and libc.syscall((222, 107)[column], 0, 0, ctypes.byref(timer)) == 0: made += 1
print(made)
"""
    assert int(said(sandbox, code)[0]) <= 256


def test_names_of_the_machine(safe: LocalSandbox) -> None:
    lines = said(
        safe, "print(os.uname().nodename)\nprint({line.rpartition(':')[2] for line in open('/proc/self/cgroup')})"
    )
    assert lines[0] == "sandbox"
    assert lines[1] in {repr({"/\n"}), "set()"}


# -- as somebody else ----------------------------------------------------------------------------------------------


def test_as_another_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All of the above, with a Python that this user can read."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not os.path.exists(python):
        pytest.skip("needs root, to become somebody else, and a Python of the system")
    folder = Path("/tmp") / f"gem-attacks-{os.getpid()}"
    import _pytest
    import iniconfig
    import packaging
    import pluggy
    import pygments

    import gem_support

    try:
        for package in (_pytest, pytest, pluggy, iniconfig, packaging, pygments, gem_sandbox, gem_core, gem_support):
            home = Path(package.__file__ or "").parent
            shutil.copytree(home, folder / "packages" / home.name, ignore=shutil.ignore_patterns("__pycache__"))
        here = Path(__file__)
        tests = [here, here.with_name("conftest.py"), here.with_name("sandbox_processes.py")]
        for test in tests:
            shutil.copy(test, folder)
        shutil.copy(Path(_pytest.__file__).parents[1] / "py.py", folder / "packages")
        # Otherwise each of the many processes compiles these modules, as the other user cannot write here.
        subprocess.run([python, "-m", "compileall", "-q", folder], check=True)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        command = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", python, "-m", "pytest", "-q", "-x"]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{folder}/packages:{folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", here.name, "-k", "not has_no_core"],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert " passed" in done.stdout
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def answers(sandbox: LocalSandbox) -> None:
    """The next call is answered, truly."""
    done = sandbox.run("print(6 * 7)")
    assert (done.stdout, done.stderr, done.exit_code, done.ending) == ("42\n", "", 0, "exit")
