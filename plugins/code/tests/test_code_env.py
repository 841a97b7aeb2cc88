"""Programming problems: programs are run on tests, and what they do stays where they ran."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from solutions import SOLUTIONS

import gem_code
import gem_core
from gem_code._comparison import Comparison, same_output
from gem_core.env import Env, StepResult
from gem_core.errors import EnvError
from gem_sandbox import Execution, Limits, LocalSandbox
from gem_testing import EnvConformance, check_env

SAMPLE = [json.loads(line) for line in Path(gem_code.__file__).with_name("sample.jsonl").read_text().splitlines()]
DOUBLE = {"inputs": ["1\n", "21\n", "-4\n"], "outputs": ["2\n", "42\n", "-8\n"]}
RIGHT = "print(2 * int(input()))"


def asked(tmp_path: Path, tests: Any = DOUBLE, **kwargs: Any) -> Env:
    """An environment with these tests."""
    (tmp_path / "q.jsonl").write_text(json.dumps({"problem": "Double it.", "tests": tests}))
    env = gem_core.make("code:Dataset", dataset=str(tmp_path / "q.jsonl"), **kwargs)
    env.reset(seed=0)
    return env


def answered(env: Env, action: str) -> StepResult:
    """The same question again, and this answer to it."""
    env.reset(seed=0)
    return env.step(action)


def block(program: str) -> str:
    return f"Here it is:\n```python\n{program}\n```\nDone."


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_every_problem_of_the_sample_can_be_solved() -> None:
    env = gem_core.make("code:Sample")
    for index, row in enumerate(SAMPLE):
        assert env.reset(row=index)[0] == row["problem"]
        assert env.step(block(SOLUTIONS[row["name"]]))[1:] == (1.0, True, True, {"success": True, "correct": True})


def test_no_problem_of_the_sample_takes_a_constant() -> None:
    for row in SAMPLE:
        assert len(set(row["tests"]["outputs"])) > 1, row["name"]


def test_a_wrong_program_is_paid_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path).step(block("print(3)"))[1:] == (
        0.0,
        True,
        True,
        {"success": False, "correct": False, "program_error": "wrong output"},
    )


def test_without_a_program_the_format_is_paid_for(tmp_path: Path) -> None:
    env = asked(tmp_path)
    for action in (RIGHT, "", "```\n2\n```", "```text\nprint(1)\n```", "```python\n>>> print(1)\n```"):
        _, reward, *ends, info = answered(env, action)
        assert (reward, ends) == (-0.1, [True, True])
        assert info == {"success": False, "correct": False, "invalid_action": True}
    assert asked(tmp_path, format_reward=0.0).step("")[1] == 0.0


def test_the_last_program_counts(tmp_path: Path) -> None:
    env = asked(tmp_path)
    assert answered(env, block("print(1)") + block(RIGHT))[1] == 1.0
    assert answered(env, block(RIGHT) + block("print(1)"))[1] == 0.0
    assert answered(env, block(RIGHT) + "\nFor 2 it prints\n```\n4\n```")[1] == 1.0
    assert answered(env, f"1. So:\n   ```python3\n   {RIGHT}\n   print()")[1] == 1.0


def test_published_verdicts_take_any_last_block_and_compare_whole_texts(tmp_path: Path) -> None:
    env = asked(tmp_path, published=True)
    assert answered(env, f"```text\n{RIGHT}\n```")[1] == 1.0
    assert answered(env, block(RIGHT) + "\nFor 2 it prints\n```\n4\n```")[1] == 0.0
    assert answered(env, f"```python \n{RIGHT}\n```")[1] == -0.1
    spaced = {"inputs": [""], "outputs": ["1\n2"]}
    assert asked(tmp_path, spaced).step(block("print('1 \\n2')"))[1] == 1.0
    assert asked(tmp_path, spaced, published=True).step(block("print('1 \\n2')"))[1] == 0.0


@pytest.mark.parametrize(
    "program",
    [
        RIGHT,
        "import sys\nprint(2 * int(sys.stdin.read()))",
        "import sys\nprint(2 * int(sys.stdin.buffer.readline()))",
        "import sys\nfor line in sys.stdin:\n    sys.stdout.write(str(2 * int(line)))",
        "import sys\nsys.stdout.buffer.write(str(2 * int(input())).encode())",
        "print(2 * int(open(0).read()))",
        "import numpy as np\nprint(np.array([int(input())]).sum() * 2)",
        "import sys\nprint(2 * int(input()))\nsys.exit(0)",
        "def main():\n    print(2 * int(input()))\nif __name__ == '__main__':\n    main()",
        "print(2 * int(input()), end='\\n\\n')",
        "import sys\nprint(2 * int(input()))\nprint('noise', file=sys.stderr)",
        "xs: List[int] = [int(input())]\nprint(sum(chain(xs, xs)))",  # upstream gives the usual imports, too
        "class A:\n    def f(self): return 2 * int(input())\nprint(A().f())",
        "import os\nos.write(1, str(2 * int(os.read(0, 10))).encode())\nos._exit(0)",
        "import threading\nx = int(input())\nt = threading.Thread(target=lambda: print(2 * x))\nt.start()\nt.join()",
        "import asyncio\nasync def main(): print(2 * int(input()))\nasyncio.run(main())",
        "import sys\nsys.setrecursionlimit(10**5)\ndef f(n): return n and f(n - 1)\nprint(2 * int(input()) + f(9000))",
        "import os\nif os.fork() == 0: print(2 * int(input()), flush=True); os._exit(0)\nos.wait()",
    ],
)
def test_ways_to_read_and_print(tmp_path: Path, program: str) -> None:
    _, reward, _, _, info = asked(tmp_path).step(block(program))
    assert reward == 1.0, info


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import sys\nprint(2 * int(input()))\nsys.exit(3)", "exit code 3"),
        ("raise ValueError('no')", "ValueError: no"),
        ("print(2 * int(input())", "SyntaxError"),
        ("input()\ninput()", "EOFError"),
        ("print(nothing)", "NameError"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("import os\nos._exit(1)", "exit code 1"),
    ],
)
def test_what_a_program_raised_is_said(tmp_path: Path, program: str, error: str) -> None:
    _, reward, _, _, info = asked(tmp_path).step(block(program))
    assert reward == 0.0
    assert error in info["program_error"]
    assert "grading_error" not in info


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("x = 'a' * (1 << 31)", "memory"),
        ("while True: pass", "timeout"),
        ("import os\nos.abort()", "killed"),
        ("print('a' * (1 << 21))", "output limit"),
    ],
)
@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_which_limit_a_program_hit_is_said(tmp_path: Path, program: str, error: str) -> None:
    _, reward, _, _, info = asked(tmp_path, timeout=1.0).step(block(program))
    assert reward == 0.0
    assert error in info["grading_error"]
    assert "program_error" not in info


def test_a_program_cannot_be_run_for_ever_by_what_it_says(tmp_path: Path) -> None:
    says = "import sys, time\ntime.sleep(0.3)\nsys.stderr.write(\"NameError: name 'np' is not defined\")\nsys.exit(1)"
    start = time.monotonic()
    assert asked(tmp_path, timeout=1.0).step(block(says))[1] == 0.0
    assert time.monotonic() - start < 60.0


class CountingSandbox(LocalSandbox):
    """Counts the programs that it runs."""

    count = 0

    def runs(self, code: str, inputs: Iterable[str], *, limits: Limits | None = None) -> Generator[Execution]:
        for done in super().runs(code, inputs, limits=limits):
            self.count += 1
            yield done


def test_a_program_cannot_have_its_tests_repeated_by_what_it_says(tmp_path: Path) -> None:
    """In its last test it asks for one import after the other."""
    program = """
n = int(input())
if n == 9:
    for name in ("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "json"):
        if name not in globals():
            raise NameError(f"name '{name}' is not defined")
print(2 * n)
"""
    tests = {"inputs": [str(n) for n in range(10)], "outputs": [str(2 * n) for n in range(10)]}
    with CountingSandbox(limits=Limits(wall=60.0)) as sandbox:
        assert asked(tmp_path, tests, timeout=60.0, sandbox=sandbox).step(block(program))[1] == 1.0
        assert sandbox.count == 10 + 9


def test_a_machine_without_room_is_no_verdict(tmp_path: Path) -> None:
    env = asked(tmp_path)
    assert answered(env, block(RIGHT))[1] == 1.0
    env.reset(seed=0)
    with no_file_descriptors(), pytest.raises(EnvError, match=r"the machine refuses .*Too many open files"):
        env.step(block(RIGHT))
    assert answered(env, block(RIGHT))[1] == 1.0


@contextlib.contextmanager
def no_file_descriptors() -> Iterator[None]:
    """This process can open no more files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno(), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_each_test_starts_anew(tmp_path: Path) -> None:
    program = "import math\nseen = getattr(math, 'seen', 0)\nmath.seen = seen + 1\nprint(2 * int(input()) + seen)"
    assert asked(tmp_path).step(block(program))[1] == 1.0


def test_what_is_wanted_is_nowhere_near_the_program(tmp_path: Path) -> None:
    program = (
        "import gc, sys\nframe, seen = sys._getframe(), []\nwhile frame:\n    seen.append(str(frame.f_locals))\n"
        "    frame = frame.f_back\nprint('123454321' in str(seen))"
    )
    assert asked(tmp_path, {"inputs": ["x"], "outputs": ["123454321"]}).step(block(program))[1] == 0.0


SEARCH = """
import os, re
found = set()
for pid in [name for name in os.listdir("/proc") if name.isdigit()] + [str(os.getppid()), "1", "self"]:
    for name in ("environ", "cmdline", *(f"fd/{number}" for number in range(64))):
        try:
            with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
                os.set_blocking(file.fileno(), False)
                found |= {*re.findall(b"wanted[0-9]{9}", file.read(1 << 20) or b"")}
        except OSError:
            pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                first, last = (int(one, 16) for one in line.split()[0].split("-"))
                if line.split()[1].startswith("rw"):
                    memory.seek(first)
                    found |= {*re.findall(b"wanted[0-9]{9}", memory.read(last - first))}
    except (OSError, OverflowError, ValueError):
        pass
WORD = [*found, b""][0].decode()
"""
"""Looks through all processes that it sees, itself too, for what is wanted."""


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        (f"{SEARCH}\nprint(WORD)", {"inputs": ["x"], "outputs": ["wanted123454321"]}),
        (f"{SEARCH}\ndef f(x):\n    return WORD", {"inputs": [[1]], "outputs": ["wanted123454321"], "fn_name": "f"}),
        (f"{SEARCH}\ndef f(x):\n    return WORD", ["assert f(1) == 'wanted123454321'"]),
    ],
    ids=["printed", "called", "asserted"],
)
def test_no_process_that_a_program_sees_has_what_is_wanted(tmp_path: Path, program: str, tests: Any) -> None:
    step = asked(tmp_path, tests, timeout=60.0).step(block(program))
    assert (step[1], step[4].get("program_error")) == (0.0, "wrong output")


@pytest.mark.parametrize(
    ("printed", "wanted", "tolerance", "same"),
    [
        ("1.0000001", "1", 1e-6, True),
        ("1.0000001", "1", None, False),
        ("1.1", "1", 1e-6, False),
        ("1000001", "1000000", 1e-5, False),  # a whole number is exact
        ("1000001", "1000000.0", 1e-5, True),
        ("1000000001", "1000000000", 1e-6, False),
        ("1e9", "1000000000", 1e-6, True),
        ("a 1\nb  2", "a 1.0 b 2.0", 1e-9, True),
        ("a 1 b", "a 1", 1e-9, False),
        ("b", "a", 1.0, False),
        ("nan", "1", 1.0, False),
        ("inf", "1" * 400, 1e-6, False),  # as floats, all numbers of 400 digits are the same
        ("2" * 400, "1" * 400, 1e-6, False),
        ("1" * 399 + "2", "1" * 400, 1e-6, False),
        ("1" * 399 + "2", "1" * 400 + ".0", 1e-6, True),
        ("1e999999999999999999999", "1", 1e-6, False),
        ("infinity", "inf", 1.0, False),
        ("", "", 1e-9, True),
        ("1_0", "10", 1e-6, False),  # an underscore is Python's
        ("\u0661", "1", 1e-6, False),
    ],
)
def test_numbers_may_be_apart_by_the_tolerance(printed: str, wanted: str, tolerance: float | None, same: bool) -> None:
    assert same_output(f"{printed}\n", wanted, Comparison(tolerance)) is same


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        ("1 2\n3 4\n", "1 2\n3 4", True),
        ("1 2 \n3 4\t\n\n", "1 2\n3 4", True),
        ("1 2\n3 4", "1 2 \n3 4  \n", True),
        ("1\n2", "1\r\n2\r\n", True),
        ("1\r2\r\n", "1\n2", True),
        (" 1\n 2", "1\n2", True),
        ("1\n \n2", "1\n\n2", True),
        ("1\n\n2", "1\n2", False),
        ("1 2", "1\n2", False),
        ("1\n2", "1 2", False),
        ("1  2", "1 2", False),
        ("1\t2", "1 2", False),
        ("12", "1 2", False),
        ("1\n2\n3", "1\n2", False),
        ("1", "1\n2", False),
        ("No", "NO", False),
        ("", "1", False),
        # White space in front of a line can be seen. Data sets often lost that of the first line.
        ("  *\n ***", "  *\n ***", True),
        ("  * \n *** ", "*\n ***", True),
        ("*\n***", "  *\n ***", False),
        # Decimal numbers have several forms, others have one.
        ("0.5 x 3", "0.50 x 3.0", True),
        ("-.5", "-0.5", True),
        ("100.0", "1e2", True),
        ("0.51", "0.50", False),
        ("0.333", "0.3333", False),
        ("0101", "101", False),
        ("3.0", "3", False),
        ("1_0.0", "10.0", False),
        ("nan", "NaN", False),
        ("0.5  x", "0.50 x", False),
    ],
)
def test_lines_are_compared_without_what_cannot_be_seen(printed: str, wanted: str, same: bool) -> None:
    assert same_output(printed, wanted, Comparison()) is same
    assert same_output(printed, wanted, Comparison(published=True)) is (printed.strip() == wanted.strip())


# -- tests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tests",
    [
        DOUBLE,
        json.dumps(DOUBLE),
        {"inputs": [["1"], ["21", ""]], "outputs": [["2"], ["42"]]},
        [{"input": "1", "output": "2"}, {"input": "21", "output": "42"}],
        json.dumps([{"input": "1", "output": 2}]),
        {"fn_name": None, "inputs": [1], "outputs": [2]},
    ],
)
def test_tests_come_in_several_forms(tmp_path: Path, tests: Any) -> None:
    env = asked(tmp_path, tests)
    assert answered(env, block(RIGHT))[1] == 1.0
    assert answered(env, block("print(2)"))[1] == (1.0 if len(env.tests) == 1 else 0.0)


@pytest.mark.parametrize(
    "tests",
    [
        "",
        "no JSON",
        [],
        {},
        None,
        {"inputs": []},
        {"inputs": ["1"], "outputs": []},
        [{"input": 1}],
        7,
        [7],
        [["1", "2"]],
    ],
)
def test_what_is_no_test_is_refused(tmp_path: Path, tests: Any) -> None:
    with pytest.raises(EnvError, match="inputs"):
        asked(tmp_path, tests)


def test_of_many_tests_those_with_the_longest_inputs_are_run(tmp_path: Path) -> None:
    numbers = [10**length for length in range(20)]
    tests = {"inputs": [str(n) for n in numbers], "outputs": [str(2 * n) for n in numbers]}
    only_long = "n = int(input())\nprint(2 * n if n >= 10**8 else 'short')"
    assert asked(tmp_path, tests).step(block(only_long))[1] == 1.0
    assert asked(tmp_path, tests, max_tests=13).step(block(only_long))[1] == 0.0


def test_the_first_test_that_fails_is_the_last_that_is_run(tmp_path: Path) -> None:
    tests = {"inputs": ["0", *["1"] * 11], "outputs": ["0"] * 12}
    start = time.monotonic()
    asked(tmp_path, tests, timeout=2.0).step(block("n = int(input())\nwhile n: pass\nprint(1)"))
    assert time.monotonic() - start < 20.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tests": 0},
        {"max_tests": 1.5},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"memory": (1 << 20) - 1},
        {"memory": 1e9},
        {"output": -1},
        {"tolerance": -1.0},
        {"reward": "half"},
    ],
)
def test_limits_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match=next(iter(wrong))):
        asked(tmp_path, **wrong)


def test_what_is_wanted_is_never_too_much_to_print(tmp_path: Path) -> None:
    tests = {"inputs": ["100000"], "outputs": ["7\n" * 100_000]}
    for program, reward in (("print('7\\n' * n)", 1.0), ("print('7  \\n' * n)", 1.0), ("print('7' * 9 * n)", 0.0)):
        env = asked(tmp_path, tests, output=1000)
        _, earned, *_, info = env.step(block(f"n = int(input())\n{program}"))
        assert earned == reward, info
    assert "output limit" in info["grading_error"]


def test_a_part_of_the_tests_pays_a_part(tmp_path: Path) -> None:
    env = asked(tmp_path, reward="fraction")
    assert answered(env, block(RIGHT))[1:] == (1.0, True, True, {"success": True, "correct": True, "score": 1.0})
    wrong, mends = "print(abs(2 * int(input())))", "print(np.int64(2 * abs(int(input()))))"
    for program in (wrong, mends):
        _, reward, *_, info = answered(env, block(program))
        assert reward == info["score"] == pytest.approx(2 / 3)
        assert info["program_error"] == "wrong output"
    assert answered(env, block("n = int(input())\nprint(2 * n if n > 1 else undefined)"))[1] == pytest.approx(1 / 3)
    assert answered(env, "no program")[1] == -0.1


# -- hostile programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "open('{file}', 'w')",
        "import os\nos.system('touch {file}')",
        "import subprocess\nsubprocess.run(['touch', '{file}'])",
        "import os\nos.open('{file}', os.O_CREAT)",
        "import os\nif os.fork() == 0: open('{file}', 'w')",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "import os, signal\nos.kill(0, signal.SIGSTOP)",
        "import os, signal\nos.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
        "with open('a', 'wb') as file:\n    while True: file.write(bytes(1 << 20))",
        "import os, time\nos.fork()\ntime.sleep(1000)",
        "import gem_core.registry as r\nr.make = None\nprint(1)",
        "while True: pass",
        "9**9**9**9",
        "x = []\nwhile True: x.append('a' * 10**6)",
        "while True: print('a' * 10**6)",
        "print(" + "(" * 5000 + "1" + ")" * 5000 + ")",
        "print('\0')",
        "print('\ud800')",
        "import os\nos._exit(0)",
        "import sys\nsys.stdout.close()",
        "import sys\nsys.stdout = None",
        "del __builtins__",
    ],
)
@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_hostile_program_costs_itself_and_nothing_else(tmp_path: Path, program: str) -> None:
    canary = tmp_path / "canary"
    env = asked(tmp_path, timeout=1.5)
    start = time.monotonic()
    assert env.step(block(program.replace("{file}", str(canary))))[1] == 0.0
    assert time.monotonic() - start < 60.0
    assert not canary.exists()
    env.reset(seed=0)
    assert env.step(block(RIGHT))[1] == 1.0


# -- ids ---------------------------------------------------------------------------------------------------------------


class TestSample(EnvConformance):
    env_id = "code:Sample"


def of_numbers(folder: Path) -> dict[str, Any]:
    """A file with the columns of the hub's data sets."""
    rows = [{"problem": f"Print {n}.", "tests": json.dumps({"inputs": [""], "outputs": [str(n)]})} for n in range(50)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"dataset": str(folder / "q.jsonl"), "split": None}


def test_a_hub_id_keeps_the_contract_on_a_file_of_its_columns(tmp_path: Path) -> None:
    check_env("code:CodeContest", **of_numbers(tmp_path))


@pytest.mark.parametrize(
    "env_id",
    ["code:CodeContest", "code:Taco8k-v0", "code:PrimeIntellect15k", "eval:CodeContest", "eval:CodeContest-v1"],
)
def test_hub_ids_play_a_file_of_their_columns(env_id: str, tmp_path: Path) -> None:
    env = gem_core.make(env_id, **of_numbers(tmp_path))
    observation, _ = env.reset(seed=3)
    number = observation.partition("Print ")[2].partition(".")[0]
    assert env.step(block(f"print({number})"))[1] == 1.0
