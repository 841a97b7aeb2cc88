"""What an answer that runs as code must not be able to do, tried by one, and looked for from outside.

With the machine's namespaces and without; by root also as another user.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from grading_processes import below, template

from gem_grading import Evaluated, Grade, close_server, grade, system_calls
from gem_grading import _grading as grading
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

SECRET = "the-secret-of-this-test"
PATIENT = 60.0


@pytest.fixture(autouse=True, scope="module", params=["namespaces", "no namespaces"])
def confinement(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of each kind, started with a secret in the environment."""
    close_server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grading, "_NAMESPACES", request.param == "namespaces")
        patch.setenv("GEM_TEST_SECRET", SECRET)
        yield request.param
        close_server()


def ask(name: str, *arguments: Any, **limits: Any) -> Grade:
    return grade(f"grading_functions:{name}", *arguments, **{"timeout": PATIENT, **limits})


def works() -> bool:
    return [ask("same", answer, "7").value for answer in "78"] == [1.0, 0.0]


# -- the attacks of the review -----------------------------------------------------------------------------------------

UNWATCHED = """
import ctypes, gc, os, signal, socket, subprocess, sys, time
frame = sys._getframe()
while frame:  # an audit hook that these frames hold is made to see nothing
    for held in [*frame.f_locals.values()]:
        watch = getattr(held, "watch", None)
        if watch is not None:
            object.__setattr__(watch, "__code__", (lambda *event: None).__code__)
    frame = frame.f_back
"""


class Outside(NamedTuple):
    """What an answer could reach out for."""

    folder: Path
    kept: Path
    """A file of the user's."""
    process: subprocess.Popen[bytes]
    """A process of the user's, which says what it is told."""
    listening: list[socket.socket]
    """At a port, and at an address in the file system."""
    server: int
    """Of grading processes."""

    def is_untouched(self) -> bool:
        """Nothing was written, deleted, killed or sent, and nothing of an answer's is left running."""
        about = self.kept.stat()
        return (
            sorted(path.name for path in self.folder.iterdir()) == ["kept", "socket"]
            and self.kept.read_text() == "kept"
            and (about.st_mode & 0o777, about.st_mtime, about.st_uid, about.st_nlink) == (0o600, 1.0, os.getuid(), 1)
            and self._answers()
            and os.getpriority(os.PRIO_PROCESS, self.process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
            and resource.prlimit(self.process.pid, resource.RLIMIT_CPU) == resource.getrlimit(resource.RLIMIT_CPU)
            and not any(map(_heard, self.listening))
            and template() == self.server
            and not processes_with(str(self.folder))
        )

    def _answers(self) -> bool:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"?\n")
        return self.process.stdout.readline() == b"?\n"


def _heard(listening: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        listening.accept()
        return True
    return False


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    kept.chmod(0o600)
    os.utime(kept, (1, 1))
    assert works()
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(["cat"], bufsize=0, stdin=pipe, stdout=pipe, start_new_session=True) as process,
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as local,
    ):
        local.bind(str(tmp_path / "socket"))
        local.listen()
        for one in (listening, local):
            one.setblocking(False)
        yield Outside(tmp_path, kept, process, [listening, local], template())
        process.kill()


REACHING = {
    "kill the trainer": "os.kill({trainer}, 0); os.kill({bystander}, 9)",
    "kill its parent": "os.kill(os.getppid(), 9)",
    "kill a group": "os.killpg(os.getpgid({bystander}), 9)",
    "kill by a pidfd": "signal.pidfd_send_signal(ctypes.CDLL(None).syscall(434, {bystander}, 0), 9)",
    "kill by a queue": """
import struct
number = {{'x86_64': 129, 'aarch64': 138}}[os.uname().machine]
ctypes.CDLL(None).syscall(number, {bystander}, 9, struct.pack('iii', 9, 0, -1) + bytes(116))""",
    "kill by a file's owner": """
import fcntl
own, other = os.pipe()
fcntl.fcntl(own, fcntl.F_SETOWN, {bystander}); fcntl.fcntl(own, fcntl.F_SETSIG, 9)
fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC); os.write(other, b'x'); time.sleep(0.2)""",
    "limit another": "__import__('resource').prlimit({bystander}, 0, (600, 600))",
    "trace": "ctypes.CDLL(None).ptrace(16, {bystander}, 0, 0); ctypes.CDLL(None).ptrace(8, {bystander}, 0, 0)",
    "delete": "os.remove('{kept}')",
    "delete by a library": "ctypes.CDLL(None).unlink(b'{kept}')",
    "rename": "os.rename('{kept}', '{file}')",
    "truncate": "os.truncate('{kept}', 0)",
    "empty": "os.open('{kept}', os.O_TRUNC)",
    "write": "open('{kept}', 'w')",
    "append": "open('{kept}', 'a').write('x')",
    "create": "os.open('{file}', os.O_CREAT)",
    "create by a library": "ctypes.CDLL(None).creat(b'{file}', 511)",
    "database": "__import__('sqlite3').connect('{file}').execute('create table a(b)')",
    "copy": "__import__('shutil').copy(os.__file__, '{file}')",
    "folder": "os.mkdir('{file}')",
    "fifo": "ctypes.CDLL(None).mkfifo(b'{file}', 511)",
    "device": "ctypes.CDLL(None).mknod(b'{file}', 0o100777, 0)",
    "symbolic link": "os.symlink('/', '{file}')",
    "link": "os.link('{kept}', '{file}')",
    "mode": "os.chmod('{kept}', 0o777)",
    "owner": "os.chown('{kept}', 1, 1)",
    "time": "os.utime('{kept}', (2, 2))",
    "shell": "os.system('touch {file}')",
    "popen": "os.popen('touch {file}').read()",
    "subprocess": "subprocess.run(['touch', '{file}'])",
    "fork_exec": "__import__('multiprocessing').util.spawnv_passfds(b'/usr/bin/touch', ['touch', '{file}'], ())",
    "spawn": "os.waitpid(os.posix_spawn('/usr/bin/touch', ['touch', '{file}'], {{}}), 0)",
    "exec": "os.execv('/usr/bin/touch', ['touch', '{file}'])",
    "exec by a library": "ctypes.CDLL(None).system(b'touch {file}')",
    "pty": "__import__('pty').spawn(['touch', '{file}'])",
    "mount": "ctypes.CDLL(None).mount(b'tmpfs', b'{folder}', b'tmpfs', 0, None)",
    "send": "socket.create_connection(('127.0.0.1', {port})).send(b'token')",
    "send to a file": "socket.socket(socket.AF_UNIX).connect('{folder}/socket')",
    "send by a library": """
libc = ctypes.CDLL(None)
libc.connect(libc.socket(2, 1, 0), ({port}).to_bytes(2, 'big').join([b'\\2\\0', b'\\x7f\\0\\0\\1' + bytes(8)]), 16)""",
    "child": """
if os.fork():
    while not os.path.exists('{file}'): time.sleep(0.01)
else:
    os.setsid(), open('{file}', 'w'), time.sleep(20)""",
    "child of a child": """
if os.fork():
    while not os.path.exists('{file}'): time.sleep(0.01)
elif os.fork():
    os._exit(0)
else:
    os.setsid(), os.execv('/bin/sh', ['sh', '-c', ': > {file}; sleep 20; : {folder}'])""",
    "thread": "__import__('threading').Thread(target=open, args=('{file}', 'w')).start(); time.sleep(1)",
    "process": "__import__('multiprocessing').get_context('fork').Process(target=open, args=('{file}', 'w')).start()",
    "priority": "ctypes.CDLL(None).setpriority(0, {bystander}, 19)",
}


@pytest.mark.parametrize("what", REACHING)
def test_an_answer_that_runs_reaches_nothing(what: str, outside: Outside) -> None:
    names = {
        "folder": outside.folder, "kept": outside.kept, "file": outside.folder / "touched",
        "port": outside.listening[0].getsockname()[1], "trainer": os.getpid(), "bystander": outside.process.pid,
    }  # fmt: skip
    assert outside.is_untouched()
    ask("execute", UNWATCHED + REACHING[what].format(**names), timeout=10)
    assert outside.is_untouched()
    assert works()


READING = {
    "environment": "result = dict(os.environ)",
    "environment in /proc": "result = open('/proc/self/environ').read()",
    "environment of the server": "result = open(f'/proc/{{os.getppid()}}/environ').read()",
    "environment of the trainer": "result = open('/proc/{trainer}/environ').read()",
    "environment of a library": """
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
result = str(getenv(b'GEM_TEST_SECRET') or '')""",
    "environment in memory": """
import itertools
libc = ctypes.CDLL(None)
place = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')
found = itertools.takewhile(bool, (place[i] for i in itertools.count()))
result = [str(each) for each in found if b'_NUM_THREADS=1' not in each]""",
    "file": "result = open('{secret}').read()",
    "file of bytes": "result = open(b'{secret}').read()",
    "file around": "result = open(os.path.dirname(os.__file__) + '/../../../../../../../../../../{secret}').read()",
    "file by a link": "result = open('/proc/self/root/{secret}').read()",
    "file by a library": """
libc = ctypes.CDLL(None)
text = ctypes.create_string_buffer(100)
libc.read(libc.open(b'{secret}', 0), text, 100)
result = bool(text.value)""",
    "file by a path": "file = os.open('{secret}', os.O_PATH); result = open(f'/proc/self/fd/{{file}}').read()",
    "file that is mapped": """
import mmap
result = str(mmap.mmap(os.open('{secret}', 0), 0, prot=1)[:])""",
    "file by a program": "result = subprocess.run(['cat', '{secret}'], capture_output=True, text=True).stdout",
    "folder": "result = os.listdir('{folder}')",
    "folder by scan": "result = [each.name for each in os.scandir('{folder}')]",
    "folder by glob": "import glob; result = glob.glob('{folder}/*')",
    "working directory": "result = os.listdir('.')",
    "users": "result = open('/etc/passwd').read()",
    "users by a module": "import pwd; result = [str(each) for each in pwd.getpwall()]",
    "processes": "result = os.listdir('/proc')",
    "memory of the trainer": "result = str(open('/proc/{trainer}/mem', 'rb'))",
    "memory by a call": """
result = ctypes.CDLL(None).process_vm_readv({trainer}, None, 0, None, 0, 0) >= 0""",
    "keys": "result = ctypes.CDLL(None).syscall({{'x86_64': 250}}.get(os.uname().machine, 219), 0, -3, 1) > 0",
}


@pytest.mark.parametrize("what", READING)
def test_an_answer_that_runs_reads_nothing(what: str, tmp_path: Path) -> None:
    secret = tmp_path / f"a-file-of-{SECRET}"
    secret.write_text(SECRET)
    graded = ask(
        "execute", UNWATCHED + READING[what].format(secret=secret, folder=tmp_path, trainer=os.getpid()), timeout=30
    )
    assert not graded.value
    assert works()


def test_a_grading_process_has_two_files_and_both_are_its_callers() -> None:
    code = "import os, stat\nresult = []\nfor each in range(3, 4096):\n"
    code += "    try: result.append(stat.S_ISFIFO(os.fstat(each).st_mode))\n    except OSError: pass"
    assert ask("execute", code) == Grade([True, True], None), "the pipes of its arguments and of its result"


def test_no_process_of_grading_has_an_environment() -> None:
    assert works()
    found: list[bytes] = []
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):  # it has ended
            found.append(Path(f"/proc/{pid}/environ").read_bytes())
    assert found
    assert not any(found)


# -- by construction ---------------------------------------------------------------------------------------------------


def test_every_call_that_is_not_listed_is_refused() -> None:
    """All that there are, and some that there will be."""
    column = 0 if os.uname().machine == "x86_64" else 1
    rows = {**system_calls.COMPUTING, **system_calls.OPENING, **system_calls.ASKING}
    listed = {row[column] for row in rows.values()}
    # The kernel asks no filter about uretprobe and uprobe of x86_64; they kill who calls them.
    numbers = [number for number in range(600) if number not in {*listed, *((335, 336) if column == 0 else ())}]
    assert ask("unrefused", [*numbers, 1 << 30 | 56, 1 << 31]) == Grade([], None)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("opening", [False, True])
def test_the_filter_allows_what_is_listed_and_nothing_else(machine: str, opening: bool) -> None:
    """The instructions, followed as the kernel does, for each call and for what it is given."""
    architecture, column = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}[machine]
    calls = system_calls.program(machine, opening=opening)
    numbers = _numbers(system_calls.COMPUTING, column)
    opened = _numbers(system_calls.OPENING, column)
    asked = _numbers(system_calls.ASKING, column)
    none = (0, 0, 0, 0, 0, 0)
    allowed = {number for number in range(700) if _verdict(calls, architecture, number, none) == ALLOWED}
    assert allowed == {*numbers.values(), asked["prlimit64"], *(opened.values() if opening else ())}
    assert _verdict(calls, architecture + 1, 0, none) == KILLED
    assert _verdict(calls, architecture, 1 << 30, none) == REFUSED
    at = {"open": 1, "openat": 2}
    for name, number in opened.items():
        for flag in (0, os.O_CLOEXEC, os.O_DIRECTORY):
            given = tuple(flag if place == at[name] else 0 for place in range(6))
            assert _verdict(calls, architecture, number, given) == (ALLOWED if opening else REFUSED)
        for flag in (
            os.O_WRONLY,
            os.O_RDWR,
            3,
            os.O_CREAT,
            os.O_TRUNC,
            os.O_APPEND,
            os.O_PATH,
            os.O_TMPFILE,
            os.O_EXCL,
        ):
            given = tuple(flag if place == at[name] else 0 for place in range(6))
            assert _verdict(calls, architecture, number, given) == REFUSED
    for new, verdict in ((0, ALLOWED), (1, REFUSED), (1 << 32, REFUSED)):
        assert _verdict(calls, architecture, asked["prlimit64"], (0, 0, new, 0, 0, 0)) == verdict
    for command in range(2000):
        wanted = ALLOWED if command in (1, 3) else REFUSED
        assert _verdict(calls, architecture, asked["fcntl"], (0, command, 0, 0, 0, 0)) == wanted


ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000


def _numbers(rows: dict[str, tuple[int | None, int | None]], column: int) -> dict[str, int]:
    return {name: number for name, row in rows.items() if (number := row[column]) is not None}


def _verdict(calls: bytes, architecture: int, number: int, arguments: tuple[int, ...]) -> int:
    """Classic BPF, as <linux/filter.h> has it."""
    data = struct.pack("<iIQ6Q", 0, 0, 0, *arguments)
    data = struct.pack("<II", number, architecture) + data[8:]
    lines = [struct.unpack_from("HBBI", calls, place) for place in range(0, len(calls), 8)]
    held, at = 0, 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            held &= value
        else:
            at += yes if (held == value if code == 0x15 else held >= value) else no


@pytest.mark.parametrize("rounds", [1, 3])
def test_what_is_installed_can_be_imported_and_read(rounds: int) -> None:
    for _ in range(rounds):
        assert ask("evaluate", "__import__('fractions').Fraction(1, 3) * 3 == 1") == Grade(True, None)
        assert ask("evaluate", "__import__('statistics').mean([1, 2, 3])").value == 2
        assert ask("evaluate", "__import__('sqlite3').sqlite_version > ''") == Grade(True, None), "with a library"
        assert ask("evaluate", f"len(open({os.__file__!r}).read()) > 1000") == Grade(True, None)


def test_a_function_reads_its_own_package_and_no_other_of_that_folder(tmp_path: Path) -> None:
    for name in ("own", "other"):
        (tmp_path / f"gem_test_{name}").mkdir()
        for part in ("__init__", "late"):
            (tmp_path / f"gem_test_{name}/{part}.py").write_text("what = 'read'")
    (tmp_path / "gem_test_own/scoring.py").write_text("def score(answer):\n    return __import__(answer).late.what")
    (tmp_path / "gem_test_own/data.txt").write_text("read")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        assert grade("gem_test_own.scoring:score", "gem_test_own.late", timeout=PATIENT) == Grade("read", None)
        assert str(grade("gem_test_own.scoring:score", "gem_test_other.late", timeout=PATIENT).error).startswith(
            ("ModuleNotFoundError", "PermissionError", "ImportError")
        )


def test_without_landlock_nothing_is_opened_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a kernel that has none: told to the server by a module that it imports."""
    (tmp_path / "sitecustomize_of_this_test.py").write_text(
        "from gem_sandbox import landlock\nlandlock.version = lambda: 0\nfrom grading_functions import evaluate, same\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    close_server()
    try:
        function = "sitecustomize_of_this_test:evaluate"
        assert grade(function, "6 * 7", timeout=PATIENT) == Grade(42, None)
        for path in (os.__file__, __file__, "/etc/passwd", "/"):
            error = str(grade(function, f"__import__('os').open({path!r}, 0)", timeout=PATIENT).error)
            assert error.startswith("PermissionError"), error
    finally:
        close_server()


def test_a_process_that_cannot_be_confined_grades_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_of_this_test.py").write_text(
        "from gem_sandbox import seccomp\n"
        "def refuse(): raise OSError(38, 'no filters today')\n"
        "seccomp.filtering = lambda calls: refuse\n"
        "from grading_functions import same\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    close_server()
    try:
        with pytest.raises(grading.GradingError, match="no filters today"):
            grade("broken_of_this_test:same", "7", "7", timeout=PATIENT)
    finally:
        close_server()


# -- the reply ---------------------------------------------------------------------------------------------------------

FORGED = (
    UNWATCHED
    + """
import json, struct
text = json.dumps({{"value": {value}}}).encode()
for file in range(3, 64):
    try:
        os.write(file, struct.pack("<Q", len(text)) + text)
    except OSError:
        pass
"""
)
PATCHED = """
import sys, json, builtins
builtins.float = lambda _: 1.0
for module in [*sys.modules.values()]:
    for name in ("same", "close", "_outcome", "send"):
        if hasattr(module, name):
            setattr(module, name, lambda *_: b'{"value": 1.0}')
frame = sys._getframe()
while frame:
    for held in [*frame.f_locals.values()]:
        if hasattr(held, "__code__") and held.__code__.co_name in ("same", "close"):
            held.__code__ = (lambda *_: 1.0).__code__
    frame = frame.f_back
result = 1.0
"""
TRUTH = 271828


@pytest.mark.parametrize(
    "answer",
    [
        FORGED.format(value=1.0),
        FORGED.format(value='{"value": 1.0}'),
        FORGED.format(value='[1.0, true]'),
        FORGED.format(value='"271828"'),
        PATCHED,
        UNWATCHED + "result = [each for each in gc.get_objects() if isinstance(each, dict) and 'truth' in each]",
        UNWATCHED + "result = [each for i in range(4) for each in [*sys._getframe(i).f_locals.values()]]",
        "result = True",
        "class E(float):\n    __abs__ = __eq__ = lambda *_: True\n    __sub__ = lambda *_: 0.0\nresult = E(1)",
        "result = float('nan')",
        "result = [271828]",
        "result = {'value': 1.0}",
        "raise SystemExit(1.0)",
    ],
    ids=["frame", "frame in a frame", "frame of a list", "frame of a text", "patches", "objects", "frames", "true",
         "number", "nan", "list", "dict", "exit"],
)  # fmt: skip
def test_no_answer_that_is_evaluated_before_has_a_say_in_its_grade(answer: str) -> None:
    evaluated = Evaluated("grading_functions:execute", (answer,))
    graded = ask("close", evaluated, TRUTH)
    assert graded.value in (None, 0.0)
    assert ask("close", Evaluated("grading_functions:execute", ("result = 271_828",)), TRUTH) == Grade(1.0, None)
    assert works()


def test_what_is_evaluated_before_has_a_time_limit_and_a_memory_limit() -> None:
    endless = Evaluated("grading_functions:evaluate", ("9**9**9**9",))
    assert "time limit" in str(ask("close", endless, TRUTH, timeout=1.0).error)
    large = Evaluated("grading_functions:evaluate", ("bytearray(1 << 30)",))
    assert "memory limit" in str(ask("close", large, TRUTH, memory=100 << 20).error)
    with pytest.raises(grading.GradingError, match="cannot be imported"):
        ask("close", Evaluated("grading_functions:no_such", ()), TRUTH)


def test_an_answer_cannot_outlive_its_call() -> None:
    """Whatever it does to its signals and timers: it is killed, and its neighbours are not."""
    stubborn = """
import ctypes, signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    try: time.sleep(600)
    except BaseException: pass
"""
    assert "time limit" in str(ask("execute", stubborn, timeout=0.2).error)
    assert wait_until(lambda: not [pid for pid in below(os.getpid()) if _sleeps_long(pid)])
    assert works()


def _sleeps_long(pid: int) -> bool:
    with contextlib.suppress(OSError):
        ignored = Path(f"/proc/{pid}/status").read_text().partition("SigIgn:")[2].split()[0]
        return bin(int(ignored, 16)).count("1") > 30
    return False
