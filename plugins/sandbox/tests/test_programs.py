"""A program runs as `python program.py` would, and is told of as it was."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_processes import LIMITS

from gem_sandbox import Execution, Limits, LocalSandbox, SandboxError

PROGRAMS = {
    "output": "print(6 * 7)",
    "both streams": "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    "exception": "def f():\n    return 1 / 0\nf()",
    "chained": "try:\n    {}['x']\nexcept KeyError as error:\n    raise ValueError('no') from error",
    "syntax": "print(1\n",
    "indentation": "if True:\nprint(1)",
    "exit 0": "import sys\nsys.exit(0)",
    "exit 3": "raise SystemExit(3)",
    "exit 259": "raise SystemExit(259)",
    "exit text": "import sys\nsys.exit('why')",
    "os._exit": "import os\nprint('lost')\nos._exit(4)",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('hello')",
    "destructor": "class A:\n    def __del__(self): print('gone')\na = A()",
    "name": "print(__name__, __file__.rpartition('/')[2], __builtins__.__name__, __doc__)",
    "argv": "import sys\nprint(len(sys.argv), sys.argv[0].rpartition('/')[2])",
    "input": "print(input('? '))\nprint(input())",
    "stdin to its end": "import sys\nprint(sys.stdin.read(), [*sys.stdin])",
    "stdin line by line": "import sys\nfor line in sys.stdin: print(repr(line))",
    "stdin bytes": "import sys\nprint(sys.stdin.buffer.read())",
    "stdin by number": "print(open(0).read())",
    "os.read": "import os\nprint(os.read(0, 3))\nos.write(1, b'raw')",
    "input at the end": "while True: input()",
    "threads": "import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start()",
    "asyncio": "import asyncio\nasync def main():\n    print(await asyncio.sleep(0.01))\nasyncio.run(main())",
    "recursion": "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(900))\nf(10**6)",
    "deep recursion": "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 28)\n"
    "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nthreading.Thread(target=lambda: print(f(20_000))).start()",
    "imports itself": "import program\nprint(program.__name__)",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\nprint(A())",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)",
    "source": "import inspect\ndef f(): pass\nprint(inspect.getsource(f))",
    "future": "x: undefined = 1",
    "unicode": "print('héllo ✓')",
    "surrogates": "print('\\udc80')\nprint('\\ud800')",
    "bytes": "import os\nos.write(1, bytes(range(256)))",
    "files": "open('a.txt', 'w').write('x')\nprint(open('a.txt').read())",
    "closed stdout": "import sys\nsys.stdout.close()",
    "empty": "",
}  # fmt: skip
STDIN = "first\nsecond\nthird\n"


def as_python(code: str, folder: Path) -> Execution:
    """What Python itself makes of it."""
    (folder / "program.py").write_text(code)
    environment = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, input=STDIN.encode(), capture_output=True, cwd=folder, env=environment)
    stdout, stderr = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return Execution(stdout, stderr, done.returncode, "exit", 0.0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python_does(best: LocalSandbox, name: str, tmp_path: Path) -> None:
    expected = as_python(PROGRAMS[name], tmp_path)
    done = best.run(PROGRAMS[name], stdin=STDIN)
    assert (done.stdout, done.exit_code, done.ending) == (expected.stdout, expected.exit_code, "exit"), done.stderr
    ours, theirs = (text.strip().splitlines() for text in (done.stderr, expected.stderr))
    # Where files are differs, and a program starts a few calls deeper here.
    varies = ("File", "[Previous line repeated")
    assert [line for line in ours if not line.strip().startswith(varies)] == [
        line for line in theirs if not line.strip().startswith(varies)
    ]
    assert done.stderr.count("program.py") == expected.stderr.count("program.py")


def test_subprocess(safe: LocalSandbox) -> None:
    code = """
import subprocess, sys
command = [sys.executable, "-c", "import numpy; print(input())"]
print(subprocess.run(command, capture_output=True, text=True, input="x"))
"""
    assert "returncode=0, stdout='x\\n'" in safe.run(code).stdout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(safe: LocalSandbox, method: str) -> None:
    code = f"""
import multiprocessing
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(square, range(4)))
"""
    assert safe.run(code).stdout == "[0, 1, 4, 9]\n"


def test_devices_and_folders(safe: LocalSandbox) -> None:
    code = """
import os, tempfile, getpass
print(len(open("/dev/urandom", "rb").read(4)), open("/dev/null").read(), open("/dev/stdin").read(), flush=True)
open("/dev/stdout", "w").write("by name\\n")
with tempfile.TemporaryFile() as file: print(file.write(b"abc"))
print(os.listdir("."), os.path.expanduser("~") == os.environ["HOME"], getpass.getuser())
"""
    assert safe.run(code, stdin="x").stdout == "4  x\nby name\n3\n['program.py'] True sandbox\n"


@pytest.mark.parametrize("code", ["print('\0')", "\ud800", "x = '\udcff'", "\0", "# \xff\nprint('ÿ')"])
def test_any_text_is_code(sandbox: LocalSandbox, code: str) -> None:
    done = sandbox.run(code, stdin=code)
    assert done.ending == "exit"
    assert done.stdout == ("ÿ\n" if "print('ÿ')" in code else "")


def test_installed_packages(sandbox: LocalSandbox) -> None:
    done = sandbox.run("import numpy, gem_sandbox")
    assert "No module named 'gem_sandbox'" in done.stderr  # numpy is installed, this is a checkout


def test_preload(best: LocalSandbox) -> None:
    with LocalSandbox(preload=["fractions", "numpy"], limits=LIMITS) as loaded:
        code = "import sys\nprint('fractions' in sys.modules, 'numpy' in sys.modules)"
        assert loaded.run(code).stdout == "True True\n"
        assert best.run(code).stdout == "False False\n"


def test_preload_what_is_not_there() -> None:
    with LocalSandbox(preload=["no_such_module"]) as sandbox, pytest.raises(SandboxError, match="no_such_module"):
        sandbox.run("")


def test_runs(sandbox: LocalSandbox) -> None:
    code = "import os\nn = int(input())\nprint(n * n, os.path.exists('left'))\nopen('left', 'w')"
    done = list(sandbox.runs(code, map(str, range(3))))
    assert [one.stdout for one in done] == ["0 False\n", "1 False\n", "4 False\n"]


def test_runs_stop_early(sandbox: LocalSandbox) -> None:
    asked: list[int] = []

    def inputs():
        for number in range(10):
            asked.append(number)
            yield str(number)

    runs = sandbox.runs("print(input())", inputs())
    assert next(runs).stdout == "0\n"
    runs.close()
    assert asked == [0]


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_timeout(sandbox: LocalSandbox) -> None:
    begin = time.monotonic()
    done = sandbox.run("print('begun', flush=True)\nimport time\ntime.sleep(60)", limits=Limits(wall=3.0))
    assert (done.stdout, done.exit_code, done.ending) == ("begun\n", None, "timeout")
    assert time.monotonic() - begin < 20


def test_timeout_of_one_that_does_not_want_to(sandbox: LocalSandbox) -> None:
    code = """
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except Exception: pass
while True:
    try: time.sleep(60)
    except BaseException: pass
"""
    assert sandbox.run(code, limits=Limits(wall=0.5)).ending == "timeout"


def test_cpu_time(sandbox: LocalSandbox) -> None:
    done = sandbox.run("while True: pass", limits=Limits(wall=60, cpu=1))
    assert (done.exit_code, done.ending) == (None, "timeout")
    assert done.seconds < 40


def test_memory(sandbox: LocalSandbox) -> None:
    limits = Limits(wall=20, memory=64 << 20)
    assert sandbox.run("print(len(bytearray(32 << 20)))", limits=limits).exit_code == 0
    assert sandbox.run("bytearray(128 << 20)", limits=limits).ending == "memory"
    caught = sandbox.run("try: bytearray(128 << 20)\nexcept MemoryError: print('caught')", limits=limits)
    assert (caught.stdout, caught.ending) == ("caught\n", "exit")


def test_crash(sandbox: LocalSandbox) -> None:
    done = sandbox.run("import ctypes\nctypes.string_at(0)")
    assert (done.exit_code, done.ending) == (-11, "killed")


def test_output_is_cut(sandbox: LocalSandbox) -> None:
    code = "import sys\nsys.stdout.write('a' * 100 + 'b' * 100_000 + 'c' * 100)\nsys.stderr.write('e')"
    done = sandbox.run(code, limits=replace(LIMITS, output=200))
    assert done.stdout == "a" * 100 + "\n[... 100000 bytes left out ...]\n" + "c" * 100
    assert (done.stdout_truncated, done.stderr, done.stderr_truncated) == (True, "e", False)


@pytest.mark.parametrize("size", [0, 1, 199, 200])
def test_output_is_not_cut(best: LocalSandbox, size: int) -> None:
    done = best.run(f"print('x' * {size}, end='')", limits=replace(LIMITS, output=200))
    assert (done.stdout, done.stdout_truncated) == ("x" * size, False)


def test_much_output_costs_the_caller_little(best: LocalSandbox) -> None:
    code = """
from gem_sandbox import LocalSandbox, Limits
import resource
with LocalSandbox() as sandbox:
    sandbox.run("")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = sandbox.run("for _ in range(200): print('x' * (1 << 20))", limits=Limits(wall=60))
    assert done.stdout_truncated and done.exit_code == 0, done.ending
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert int(done.stdout) < 20_000, done.stderr  # KiB


@pytest.mark.parametrize(
    "limits",
    [{"wall": 0}, {"wall": float("nan")}, {"wall": "1"}, {"cpu": -1}, {"memory": 0}, {"memory": 1.5}, {"processes": 0},
     {"processes": True}, {"disk": 1}, {"output": -1}],
)  # fmt: skip
def test_limits_that_are_none(limits: dict[str, object]) -> None:
    with pytest.raises(SandboxError, match=next(iter(limits))):
        Limits(**limits)  # type: ignore[arg-type]
