"""Grading in processes that can be killed: limits, hostile answers, threads, forks, and what is left behind."""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grading_functions
import pytest
from grading_processes import alive, children, template

from gem_core.errors import EnvError
from gem_grading import Grade, GradingError, close_server, grade
from gem_support.waiting import wait_until

HERE = Path(__file__).parent
PATIENT = 20.0
"""Seconds for calls that are not about the limit; the machine may be busy."""


@pytest.fixture(autouse=True, scope="module")
def no_server_is_left() -> Iterator[None]:
    yield
    close_server()


def ask(name: str, *arguments: Any, **limits: Any) -> Grade:
    return grade(f"grading_functions:{name}", *arguments, **{"timeout": PATIENT, **limits})


def value(name: str, *arguments: Any) -> Any:
    result = ask(name, *arguments)
    assert result.error is None, result.error
    return result.value


def works() -> bool:
    return value("same", "7", "7") == 1.0 and value("same", "8", "7") == 0.0


# -- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [None, True, 3, -(10**40), 0.1, "é\0\ud800", [], [1, [2.5, None]], {"a": {"b": [False]}}, "x" * 300_000],
    ids=lambda given: repr(given)[:20].replace("\0", "0"),
)
def test_plain_data_goes_there_and_back(given: Any) -> None:
    assert ask("echo", given) == Grade(given, None)


def test_floats_that_are_no_numbers_come_back_too() -> None:
    assert value("evaluate", "float('-inf')") == -math.inf
    assert math.isnan(value("evaluate", "float('nan')"))


def test_large_arguments_arrive_whole() -> None:
    assert value("length", "é" * 5_000_000) == 5_000_000


@pytest.mark.parametrize(
    "expression", ["{1, 2}", "object()", "lambda: 1", "b'x'", "1j", "(lambda a: a.append(a) or a)([])"]
)
def test_a_result_that_is_not_plain_data_is_that_answers_error(expression: str) -> None:
    graded = ask("evaluate", expression)
    assert graded.value is None
    assert graded.error is not None
    assert "plain data" in graded.error


def test_a_huge_result_is_that_answers_error() -> None:
    graded = ask("text_of", 3_000_000)
    assert graded.error is not None
    assert "larger" in graded.error
    assert works()


def test_an_exception_is_the_error() -> None:
    assert ask("evaluate", "1/0") == Grade(None, "ZeroDivisionError: division by zero")
    assert str(ask("evaluate", "[1][5]").error).startswith("IndexError")


def test_a_result_is_never_unpickled() -> None:
    """A child that writes its own reply says what it likes about its own answer, and runs nothing here."""
    bomb = pickle.dumps((eval, ("1",)))
    forged = (
        "import os, struct\n"
        f"text = {bomb!r}\n"
        "for file in range(3, 64):\n"
        "    try: os.write(file, struct.pack('<Q', len(text)) + text)\n"
        "    except OSError: pass\n"
    )
    graded = ask("execute", forged)
    assert graded.value is None
    assert graded.error is not None
    assert works()


# -- mistakes of whoever calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["no_such_module_x:f", "grading_functions:no_such", "grading_functions", "", ":f"])
def test_an_unknown_function_is_the_callers_mistake(function: str) -> None:
    with pytest.raises(GradingError, match="cannot be imported"):
        grade(function, "7")
    assert works()


def test_arguments_that_cannot_be_pickled_are_the_callers_mistake() -> None:
    with pytest.raises(GradingError, match="cannot be sent"):
        ask("echo", threading.Lock())
    assert issubclass(GradingError, EnvError)


@pytest.mark.parametrize("limits", [{"timeout": 0.0}, {"timeout": -1.0}, {"memory": 0}], ids=str)
def test_calls_without_time_or_memory_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(GradingError):
        ask("echo", 1, **limits)


# -- answers that take too much ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    ["9**9**9**9", "pow(3, 10**9) % 7", "(lambda f: f(f))(lambda f: 0) or sum(iter(int, 1))"],
    ids=["power", "long power", "endless"],
)
def test_an_answer_that_hangs_costs_its_time_and_nothing_else(answer: str) -> None:
    graded = ask("evaluate", answer, timeout=0.5)
    assert graded.value is None
    assert graded.error is not None
    assert "limit" in graded.error
    assert works()


def test_a_process_that_stands_still_for_a_moment_is_not_late() -> None:
    assert ask("sleep", 1.2, timeout=1.0) == Grade("slept", None)


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_the_clock_starts_when_the_call_does() -> None:
    """More calls than cores: those that wait are not late."""
    calls = 3 * len(os.sched_getaffinity(0))
    ask("echo", 1)
    with ThreadPoolExecutor(calls) as threads:
        results = [*threads.map(lambda _: ask("sleep", 0.3, timeout=0.3 + 2.0), range(calls + 8))]
    assert results == [Grade("slept", None)] * (calls + 8)


@pytest.mark.uncertain("it adds load to a machine that may be busy")
def test_a_busy_machine_does_not_make_answers_late() -> None:
    """Others that compute take four fifths of the cores; what a call waits for one does not count."""
    work = "sum(range(6_000_000))"
    began = time.monotonic()
    value("evaluate", work)
    alone = time.monotonic() - began
    cores = len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * cores)]
    try:
        results = [ask("evaluate", work, timeout=3 * alone + 0.2) for _ in range(3)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [graded.error for graded in results] == [None] * 3


def test_a_memory_bomb_costs_that_answer_only() -> None:
    assert value("fill", 50 << 20) == 50 << 20
    graded = ask("fill", 300 << 20, memory=200 << 20)
    assert graded.error is not None
    assert "memory limit" in graded.error
    graded = ask("evaluate", "[bytearray(1 << 20) for _ in range(10**6)]", memory=100 << 20)
    assert "memory limit" in str(graded.error)
    assert works()


# -- answers that end their process ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("leave", (3,), "SystemExit: 3"),
        ("vanish", (0,), "died: ended with code 0"),
        ("vanish", (7,), "died: ended with code 7"),
        ("crash", (), "died: killed by SIGSEGV"),
        ("recurse", (), "RecursionError"),
        ("execute", ("raise KeyboardInterrupt",), "KeyboardInterrupt"),
        ("execute", ("class E(Exception):\n    def __str__(self): raise self\nraise E",), "died"),
        ("execute", ("import os; os.abort()",), "died: killed by SIG"),
    ],
)
def test_an_answer_that_ends_its_process_costs_that_answer(name: str, arguments: tuple[Any, ...], said: str) -> None:
    graded = ask(name, *arguments)
    assert graded.value is None
    assert str(graded.error).startswith(said)
    assert works()


def test_deep_parentheses_are_graded_like_any_answer() -> None:
    assert ask("evaluate", "(" * 5000 + ")" * 5000).error is not None
    assert works()


# -- processes ---------------------------------------------------------------------------------------------------------


def test_an_answer_that_patches_the_grader_does_not_change_the_next_grade() -> None:
    assert value("patchable", "7") == 0.0
    assert value("patchable", "import grading_functions; grading_functions.reward = 1.0") == 1.0, "its own, it may"
    assert value("patchable", "7") == 0.0
    poison = "import builtins, json; builtins.float = lambda _: 1.0; json.loads = json.dumps = builtins.eval = None"
    ask("execute", poison)
    assert works()
    assert grading_functions.reward == 0.0


def test_the_module_is_imported_once_and_never_here_and_now() -> None:
    """The template imports it; each call is a process of its own."""
    assert value("process") != value("process")
    assert value("loaded_at") == value("loaded_at") != grading_functions.LOADED_AT


# -- threads, forks, and several processes -----------------------------------------------------------------------------


def test_threads_get_their_own_grades() -> None:
    def work(number: int) -> list[Any]:
        return [value("echo", f"{number}.{turn}") for turn in range(10)]

    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(work, range(8))] == [[f"{n}.{turn}" for turn in range(10)] for n in range(8)]


def test_hanging_answers_among_threads_cost_only_themselves() -> None:
    def work(number: int) -> Grade:
        hangs = number % 3 == 0
        return ask("evaluate", "9**9**9**9", timeout=0.5) if hangs else ask("same", "7", "7")

    with ThreadPoolExecutor(6) as threads:
        results = [*threads.map(work, range(12))]
    assert [graded.value for graded in results] == [None if number % 3 == 0 else 1.0 for number in range(12)]


def test_a_fork_has_a_template_of_its_own() -> None:
    assert works()
    mine = template()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if works() and template() != mine else 2
            close_server()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert template() == mine, "the fork left this one's alone"


def test_one_template_serves_all_calls_and_is_no_kin_of_the_terminal() -> None:
    assert works()
    server = template()
    assert works()
    assert template() == server
    assert os.getsid(server) != os.getsid(0), "Ctrl-C must not reach it"


# -- what dies, and what is left ---------------------------------------------------------------------------------------


def test_a_killed_template_is_replaced_at_the_next_call() -> None:
    assert works()
    before = template()
    os.kill(before, signal.SIGKILL)
    assert works()
    assert template() != before


def test_a_template_killed_in_the_middle_of_calls_loses_none_of_them() -> None:
    assert works()
    before = template()
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(ask, "sleep", 0.5) for _ in range(4)]
        time.sleep(0.2)
        os.kill(before, signal.SIGKILL)
        assert [call.result() for call in calls] == [Grade("slept", None)] * 4
    assert wait_until(lambda: not children(before))


def test_nothing_is_left_of_the_dead_but_the_template() -> None:
    assert works()
    server = template()
    assert all(works() for _ in range(5))
    ask("evaluate", "9**9**9**9", timeout=0.2)
    assert wait_until(lambda: children(server) == []), "no zombies either"
    assert template() == server


def test_closing_ends_the_template_and_the_next_call_starts_another() -> None:
    assert works()
    before = template()
    close_server()
    close_server()
    assert not Path(f"/proc/{before}").exists()
    assert works()


SCRIPT = """
    import sys, threading, time
    sys.path[:0] = {path!r}
    from gem_grading import grade
    print(grade("grading_functions:same", "7", "7").value, flush=True)
    for _ in range({hanging}):
        threading.Thread(target=grade, args=("grading_functions:evaluate", "9**9**9**9"), kwargs={{"timeout": 600},
            daemon=True).start()
    {rest}
"""


def script(rest: str, hanging: int = 0) -> tuple[subprocess.Popen[str], int]:
    """A process that grades, and its template."""
    source = textwrap.dedent(SCRIPT).replace('{{"timeout": 600},', '{{"timeout": 600}},')
    source = source.format(path=[str(HERE), str(HERE.parents[1])], rest=rest, hanging=hanging)
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1.0\n"
    return process, template(process.pid)


def test_a_process_that_ends_leaves_no_template() -> None:
    process, server = script("input()")  # it must still be there when its template is looked for
    _, errors = process.communicate("\n", timeout=240)
    assert (process.returncode, errors) == (0, "")
    assert wait_until(lambda: not alive(server))


@pytest.mark.parametrize("hanging", [0, 1, 5])
def test_a_killed_process_leaves_nothing_not_even_answers_that_hang(hanging: int) -> None:
    process, server = script("time.sleep(600)", hanging)
    wanted = min(hanging, len(os.sched_getaffinity(0)))
    assert wait_until(lambda: len(children(server)) == wanted)
    graders = children(server)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not any(map(alive, [server, *graders])))


def test_ctrl_c_interrupts_a_call_and_ends_its_process() -> None:
    rest = """
    try:
        print("begun", flush=True)
        grade("grading_functions:evaluate", "9**9**9**9", timeout=600)
    except KeyboardInterrupt:
        print(grade("grading_functions:same", "7", "7", timeout=60), flush=True)
    """
    process, server = script(textwrap.dedent(rest).strip())
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    assert wait_until(lambda: bool(children(server)))
    grader = children(server)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=240)
    assert (output.strip(), errors) == ("Grade(value=1.0, error=None)", "")
    assert wait_until(lambda: not any(map(alive, [server, *grader])))
