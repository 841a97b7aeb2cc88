"""What a program must not be able to do, tried by a program, and looked for from outside."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gem_sandbox import Limits, LocalSandbox
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

pytestmark = pytest.mark.long

SECRET = "the-secret-of-this-test"
TRY = """
import ctypes, os, sys
def attempt(what, act):
    try:
        print(what, "->", repr(act()))
    except BaseException as error:
        print(what, "failed", type(error).__name__)
"""


def attempts(sandbox: LocalSandbox, code: str, limits: Limits | None = None) -> str:
    """What a program says of its attempts; it must have come to its end."""
    done = sandbox.run(TRY + code + "\nprint('the end')", limits=limits)
    assert done.stdout.endswith("the end\n"), done
    return done.stdout


def answers(sandbox: LocalSandbox) -> None:
    """The next call is answered, truly."""
    done = sandbox.run("print(6 * 7)")
    assert (done.stdout, done.stderr, done.exit_code, done.ending) == ("42\n", "", 0, "exit")


@pytest.fixture
def secrets(tmp_path: Path) -> list[Path]:
    """Files with the secret: everybody's, the owner's, and one in the home folder."""
    open_to_all = tmp_path / "open.txt"
    open_to_all.write_text(SECRET)
    own = tmp_path / "own.txt"
    own.write_text(SECRET)
    own.chmod(0o600)
    return [open_to_all, own]


def test_read_secret_files(sandbox: LocalSandbox, secrets: list[Path]) -> None:
    places = [*secrets, Path(__file__), Path.home() / ".bashrc", Path("/etc/shadow"), Path("/etc/hostname")]
    said = attempts(sandbox, f"for path in {list(map(str, places))!r}: attempt('read', lambda: open(path).read())")
    assert said.count("failed") == len(places), said
    assert SECRET not in said


def test_read_with_a_program_of_the_system(safe: LocalSandbox, secrets: list[Path]) -> None:
    done = safe.run(f"import subprocess\nfor path in {list(map(str, secrets))!r}: subprocess.run(['cat', path])")
    assert SECRET not in done.stdout
    assert done.stderr.count("No such file") == len(secrets)


def test_list_folders_of_the_caller(sandbox: LocalSandbox, tmp_path: Path) -> None:
    (tmp_path / "a-file-of-the-caller").touch()
    places = [str(tmp_path), "/home", "/var/log"]
    said = attempts(sandbox, f"for path in {places!r}: attempt('list', lambda: os.listdir(path))")
    assert said.count("failed") == len(places), said
    # Of these, the way to an installed Python may be seen, and nothing else.
    places = [os.getcwd(), str(Path(__file__).parents[3]), os.path.dirname(tmp_path)]
    said = attempts(sandbox, f"for path in {places!r}: attempt('list', lambda: os.listdir(path))")
    assert not [name for name in ("pyproject.toml", "tests", "docs", tmp_path.name) if repr(name) in said], said


def test_read_the_environment(sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_TEST_SECRET", SECRET)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:  # it has the secret too
        said = attempts(
            sandbox,
            f"""
print(os.environ)
import glob
for pattern in ("/proc/[0-9]*/environ", "/proc/self/environ", "/proc/self/task/*/environ", "/proc/[0-9]*/cmdline"):
    for path in [*glob.glob(pattern), "/proc/{os.getpid()}/environ", "/proc/{other.pid}/environ", "/proc/1/environ"]:
        try: print(path, open(path, "rb").read())
        except OSError: pass
libc = ctypes.CDLL(None)
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
i = 0
while environ[i]: print(environ[i]); i += 1
""",
        )
        assert other.stdin is not None
        other.stdin.write(b"\n")
    assert SECRET not in said


def test_find_other_processes(safe: LocalSandbox) -> None:
    said = attempts(safe, "print(sorted(int(name) for name in os.listdir('/proc') if name.isdecimal()))")
    assert said in {"[2]\nthe end\n", "[]\nthe end\n"}


def test_inherited_files(sandbox: LocalSandbox, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(SECRET)
    with open(tmp_path / "file", "r+") as file:
        os.set_inheritable(file.fileno(), True)
        said = attempts(
            sandbox,
            """
import socket, stat
for number in range(3, 4096):
    try: kind = os.fstat(number)
    except OSError: continue
    print("has", number, stat.S_ISSOCK(kind.st_mode))
    for forged in (b"", b"K", b"B lost", b"F0", b"\\0" * 12):
        try: os.write(number, forged)
        except OSError: pass
""",
        )
    # A program has the socket that has brought it, and can say with it what it says of itself.
    assert "has" not in said.replace("has 3 True", "")
    assert (tmp_path / "file").read_text() == SECRET
    answers(sandbox)


def test_write_and_delete_outside(sandbox: LocalSandbox, secrets: list[Path], tmp_path: Path) -> None:
    code = f"""
attempt("write", lambda: open({str(secrets[0])!r}, "w"))
attempt("create", lambda: open({str(tmp_path / "new")!r}, "w"))
attempt("remove", lambda: os.remove({str(secrets[0])!r}))
attempt("rename", lambda: os.rename({str(secrets[0])!r}, {str(tmp_path / "moved")!r}))
attempt("folder", lambda: os.mkdir({str(tmp_path / "folder")!r}))
attempt("python", lambda: open(os.__file__, "a"))
attempt("python", lambda: os.remove(os.__file__))
attempt("system", lambda: open("/usr/bin/sandbox-was-here", "w"))
attempt("root", lambda: open("/sandbox-was-here", "w"))
attempt("device", lambda: os.mknod("disk", 0o60666, os.makedev(8, 0)))
import json, shutil
for folder in ("/etc", os.path.dirname(json.__file__), {str(tmp_path)!r}):  # all of "/" takes long on a busy machine
    shutil.rmtree(folder, ignore_errors=True)
"""
    said = attempts(sandbox, code)
    assert said.count("failed") == 10, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open.txt", "own.txt"]
    assert all(path.read_text() == SECRET for path in secrets)
    assert not Path("/sandbox-was-here").exists()
    assert not Path("/usr/bin/sandbox-was-here").exists()
    answers(sandbox)


def test_links_out(sandbox: LocalSandbox, secrets: list[Path]) -> None:
    path = str(secrets[0])
    code = f"""
os.symlink({path!r}, "link"); attempt("symlink", lambda: open("link").read())
attempt("hardlink", lambda: (os.link({path!r}, "hard"), open("hard").read()))
for start in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../..", "/proc/1/cwd", "/proc/self/fd/0/.."):
    attempt(start, lambda: open(start + {path!r}).read())
here = os.open(".", os.O_DIRECTORY)
attempt("openat", lambda: os.read(os.open("../" * 20 + {path!r}[1:], os.O_RDONLY, dir_fd=here), 99))
attempt("fchdir", lambda: (os.chdir("/"), os.chdir(".."), open({path!r}[1:]).read()))
attempt("chroot", lambda: os.chroot("."))
"""
    said = attempts(sandbox, code)
    assert said.count("failed") == 10, said
    assert SECRET not in said


def test_network(sandbox: LocalSandbox, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        file, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        with file, abstract:
            file.bind(str(tmp_path / "socket"))
            os.chmod(tmp_path / "socket", 0o777)
            abstract.bind(f"\0gem-{os.getpid()}")
            for listener in (tcp, file, abstract):
                listener.listen()
                listener.setblocking(False)
            udp.setblocking(False)
            code = f"""
import socket
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {tcp.getsockname()[1]})))
attempt("udp", lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"!", ("127.0.0.1", {udp.getsockname()[1]})))
attempt("dns", lambda: socket.getaddrinfo("pypi.org", 443))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect({str(tmp_path / "socket")!r}))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0gem-{os.getpid()}"))
attempt("raw", lambda: socket.socket(type=socket.SOCK_RAW))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK))
attempt("pair", lambda: socket.socketpair(socket.AF_INET))
attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("bind", lambda: socket.socketpair()[0].bind("\\0meeting"))
attempt("connect", lambda: socket.socketpair()[0].connect({str(tmp_path / "socket")!r}))
"""
            said = attempts(sandbox, code)
            for listener in (tcp, file, abstract):
                with pytest.raises(BlockingIOError):
                    listener.accept()
            with pytest.raises(BlockingIOError):
                udp.recv(1)
    assert said.count("failed") == 11, said


def test_a_pair_of_sockets_within_the_program_works(sandbox: LocalSandbox) -> None:
    done = sandbox.run("import socket\na, b = socket.socketpair()\na.send(b'x')\nprint(b.recv(1))")
    assert done.stdout == "b'x'\n", done.stderr


def test_what_is_taken_back_from_a_pipe_holds_nobody_up(sandbox: LocalSandbox) -> None:
    code = """
import os, time
try:
    taker = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
except OSError:
    raise SystemExit
end = time.monotonic() + 3
while time.monotonic() < end:
    os.write(1, b"x")
    try:
        os.read(taker, 65536)
    except BlockingIOError:
        pass
"""
    stop = threading.Event()
    busy = [threading.Thread(target=lambda: [0 for _ in iter(stop.is_set, True)], daemon=True) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(3):
            begin = time.monotonic()
            sandbox.run(code, limits=Limits(wall=0.5))
            assert time.monotonic() - begin < 240, "a caller that is held up never comes back"
    finally:
        stop.set()
    answers(sandbox)


def test_the_template_is_not_to_be_found_in_proc(safe: LocalSandbox) -> None:
    said = attempts(
        safe,
        """
for name in ("oom_score_adj", "clear_refs", "coredump_filter"):
    attempt(name, lambda: open("/proc/1/" + name, "w"))
for name in ("status", "environ", "maps"):
    attempt(name, lambda: open("/proc/1/" + name))
""",
    )
    assert said.count("failed") == 6, said


def test_fork_bomb(sandbox: LocalSandbox) -> None:
    limits = Limits(wall=1.5, processes=20)
    done = sandbox.run(
        "import os\nos.environ['MARK'] = 'x'\nwhile True:\n  try: os.fork()\n  except OSError: pass", limits=limits
    )
    assert done.ending in {"timeout", "killed"}
    answers(sandbox)


def test_thread_bomb(sandbox: LocalSandbox) -> None:
    code = """
import threading, time
started = 0
try:
    for _ in range(5000):
        threading.Thread(target=time.sleep, args=(9,), daemon=True).start(); started += 1
except (RuntimeError, MemoryError):
    pass
print(started)
"""
    done = sandbox.run(code, limits=Limits(wall=20, processes=30, memory=1 << 29))
    assert int(done.stdout) < 200, done
    answers(sandbox)


def test_processes_are_counted(safe: LocalSandbox) -> None:
    code = """
import os, time
started = 1
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        started += 1
except OSError:
    print(started)
"""
    assert safe.run(code, limits=Limits(wall=20, processes=12)).stdout == "12\n"


def test_survive_the_call(sandbox: LocalSandbox, tmp_path: Path) -> None:
    marker = f"survivor-{os.getpid()}-{time.monotonic_ns()}"
    code = f"""
import os, subprocess, sys, time
try:
    if os.fork() == 0:
        os.setpgid(0, 0)
        if os.fork() == 0:
            for number in range(3): os.close(number)
            import ctypes
            ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)", {marker!r}])
        os._exit(0)
    os.wait()
    time.sleep(0.2)
except PermissionError:
    pass  # the backend `limits` lets root's programs start nothing
print("gone")
"""
    done = sandbox.run(code)
    assert (done.stdout, done.ending) == ("gone\n", "exit")
    wait_until(lambda: not processes_with(marker))


def test_allocate_much_memory(sandbox: LocalSandbox) -> None:
    done = sandbox.run("data = bytearray(8 << 30)", limits=Limits(wall=20, memory=256 << 20))
    assert (done.ending, done.exit_code) == ("memory", 1)
    assert "MemoryError" in done.stderr
    answers(sandbox)


def test_memory_that_is_not_counted(sandbox: LocalSandbox) -> None:
    code = """
libc = ctypes.CDLL(None, use_errno=True)
attempt("memfd", lambda: os.memfd_create("x"))
for name, arguments in {"shmget": (0, 1 << 30, 0o1600), "msgget": (0, 0o1600), "semget": (0, 1, 0o1600)}.items():
    attempt(name, lambda: 1 / (getattr(libc, name)(*arguments) + 1))
"""
    assert attempts(sandbox, code).count("failed") == 4


def test_fill_the_disk(safe: LocalSandbox) -> None:
    code = """
written = 0
try:
    for number in range(64):
        folder = (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm")[number % 4]
        with open(f"{folder}/{number}", "wb", buffering=0) as file: written += file.write(bytes(1 << 20))
except OSError as error:
    print(error.errno, written)
"""
    said = attempts(safe, code, Limits(wall=20, disk=8 << 20))
    assert 4 << 20 < int(said.split()[1]) <= 8 << 20
    answers(safe)


def test_a_large_file(sandbox: LocalSandbox) -> None:
    code = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
attempt("write", lambda: [file.write(bytes(1 << 20)) for file in [open("large", "wb", buffering=0)] for _ in range(64)])
print(os.path.getsize("large"))
"""
    said = attempts(sandbox, code, Limits(wall=20, disk=8 << 20))
    assert said.startswith("write failed")
    assert int(said.split()[3]) <= 8 << 20


def test_many_small_files(safe: LocalSandbox) -> None:
    code = """
made = 0
try:
    while made < 100_000: os.close(os.open(f"file{made}", os.O_CREAT)); made += 1
except OSError:
    print(made)
"""
    assert int(attempts(safe, code, Limits(wall=20, disk=4 << 20)).split()[0]) < 1024


def test_signals_to_others(sandbox: LocalSandbox) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        code = f"""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in ({os.getpid()}, {bystander.pid}, 1, os.getppid() or 1, -1, -{os.getpid()}):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        try: os.kill(pid, number)
        except OSError: pass
print("alive")
"""
        done = sandbox.run(code)
        assert bystander.poll() is None
        assert bystander.stdin is not None
        bystander.stdin.write(b"\n")
        bystander.stdin.close()
        assert bystander.wait(120) == 0
    assert (done.stdout, done.ending) == ("alive\n", "exit")
    answers(sandbox)


def test_signals_between_calls(sandbox: LocalSandbox) -> None:
    with sandbox.session() as victim:
        assert victim.run("x = 1").exit_code == 0
        killer = """
import os
for pid in range(2, 70_000):
    try:
        if pid != os.getpid(): os.kill(pid, 9)
    except OSError:
        pass
print("done")
"""
        assert sandbox.run(killer).stdout == "done\n"
        after = victim.run("print(x)")
    assert (after.stdout, after.restarted) == ("1\n", False)


def test_files_between_calls(sandbox: LocalSandbox) -> None:
    folders = "import os\nfolders = ['.', '/tmp', '/dev/shm', os.environ['TMPDIR'], os.environ['HOME']]\n"
    write = (
        folders
        + """
for folder in folders:
    try: open(folder + "/left", "w")
    except OSError: pass
print(os.path.exists("left"))
"""
    )
    look = folders + "print([folder for folder in folders if os.path.exists(folder + '/left')])"
    assert sandbox.run(write).stdout == "True\n"
    assert sandbox.run(look).stdout == "[]\n"


def test_patching_what_the_next_call_runs_on(sandbox: LocalSandbox) -> None:
    code = """
import builtins, gc, io, os, sys, socket, threading, types
builtins.print = lambda *_: None
builtins.compile = builtins.exec = None
for module in list(sys.modules.values()):
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and module.__name__.startswith(("gem", "socket", "selectors", "json")):
            value.__code__ = (lambda *_, **__: 0).__code__
for one in gc.get_objects():
    if isinstance(one, socket.socket):
        try: one.send(b"forged")
        except Exception: pass
os._exit = lambda code: None
os.write(1, b"patched")
sys.modules.clear()
"""
    assert sandbox.run(code).stdout == "patched"
    answers(sandbox)


def test_the_frames_below(sandbox: LocalSandbox) -> None:
    code = """
import sys
frame = sys._getframe()
while frame: frame.f_locals.clear() if frame.f_back else None; frame = frame.f_back
"""
    sandbox.run(code)
    answers(sandbox)


def test_claims_about_its_end(sandbox: LocalSandbox) -> None:
    code = """
import os, signal, socket, sys
channel = socket.socket(fileno=3)
for forged in (b"Blost", b"F0", b"R", b"\\0" * 12):
    try: channel.send(forged)
    except OSError: pass
os.kill(os.getpid(), signal.{signal})
"""
    for name in ("SIGKILL", "SIGXCPU", "SIGSEGV"):
        done = sandbox.run(code.replace("{signal}", name))
        assert (done.ending, done.exit_code) == ("killed", -getattr(signal, name))


def test_system_calls(sandbox: LocalSandbox) -> None:
    calls = {
        "unshare": (0x10000000,), "setns": (0, 0), "mount": (b"tmpfs", b".", b"tmpfs", 0, b""), "ptrace": (0, 0, 0, 0),
        "umount2": (b"/proc", 2), "chroot": (b".",), "personality": (0,), "sethostname": (b"x", 1),
    }  # fmt: skip
    raw = {
        "keyctl": (250, 219), "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
        "perf_event_open": (298, 241), "kexec_load": (246, 104), "pidfd_getfd": (438, 438), "clone3": (435, 435),
    }  # fmt: skip
    code = f"""
libc = ctypes.CDLL(None, use_errno=True)
column = ("x86_64", "aarch64").index(os.uname().machine)
for name, arguments in {calls!r}.items():
    print(name, getattr(libc, name)(*arguments), ctypes.get_errno())
for name, numbers in {raw!r}.items():
    print(name, libc.syscall(numbers[column], 0, 0, 0, 0, 0), ctypes.get_errno())
print("clone", libc.syscall((56, 220)[column], 0x10000000, 0, 0, 0, 0), ctypes.get_errno())
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
print("capabilities", libc.capget(header, sets), *sets)
"""
    said = attempts(sandbox, code).splitlines()[:-1]
    *results, capabilities = said
    assert len(results) == len(calls) + len(raw) + 1
    for line in results:
        name, result, error = line.split()
        assert (result, error) == ("-1", "38" if name == "clone3" else "1"), line
    assert capabilities == "capabilities 0 0 0 0 0 0 0"


def test_limits_cannot_be_raised(sandbox: LocalSandbox) -> None:
    code = """
import resource
for name in ("AS", "FSIZE", "NPROC", "NOFILE", "CORE", "CPU"):
    which = getattr(resource, "RLIMIT_" + name)
    attempt(name, lambda: resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
"""
    assert attempts(sandbox, code).count("failed") == 6


def test_never_ending_output(sandbox: LocalSandbox) -> None:
    done = sandbox.run("while True: print('x' * 1000)", limits=Limits(wall=1.0, output=10_000))
    assert done.ending == "timeout"
    assert done.stdout_truncated
    assert len(done.stdout) < 11_000
    answers(sandbox)


def test_closing_stdout(sandbox: LocalSandbox) -> None:
    done = sandbox.run("import os, sys\nprint('before', flush=True)\nos.close(1); os.close(2)\nsys.exit(3)")
    assert (done.stdout, done.exit_code) == ("before\n", 3)
    answers(sandbox)


def test_hostile_calls_among_others(safe: LocalSandbox) -> None:
    """64 callers at once: all are answered, each with its own."""
    hostile = [
        "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
        "while True: print('y' * 10_000)",
        "x = bytearray(1 << 40)",
        "import os; os.kill(-1, 9); os.kill(os.getpid(), 9)",
    ]
    answered: dict[int, str] = {}

    def call(number: int) -> None:
        for turn in range(3):
            if number % 20 == 0:
                safe.run(hostile[number // 20], limits=Limits(wall=0.5, output=1000, processes=10))
            answered[number] = safe.run(f"print({number} + {turn})").stdout

    threads = [threading.Thread(target=call, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert answered == {number: f"{number + 2}\n" for number in range(64)}
