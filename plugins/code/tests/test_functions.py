"""Tests that call a function: in which forms they come, what is right, and that no program decides it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_code._comparison import Comparison
from gem_code._driver import decoded, encoded
from gem_code._tests import Called, UnreadableTests, function_named_in, read_tests
from gem_core.env import Env
from gem_core.errors import EnvError

SHARES = {"fn_name": "share", "inputs": [[[6, 4], 2], [[9], 3]], "outputs": [[3, 2], [3]]}
RIGHT = "def share(numbers, people):\n    return [n // people for n in numbers]"
METHOD = f"class Solution:\n    {RIGHT.replace('(', '(self, ').replace(chr(10), chr(10) + '    ')}"
LINES = [{"input": "[6, 4]\n2", "output": "[3, 2]", "testtype": "functional"}]


def asked(folder: Path, tests: Any, more: dict[str, Any] | None = None, **kwargs: Any) -> Env:
    (folder / "q.jsonl").write_text(json.dumps({"problem": "Share.", "tests": tests, **(more or {})}))
    env = gem_core.make("code:Dataset", dataset=str(folder / "q.jsonl"), **kwargs)
    env.reset(seed=0)
    return env


def reward(folder: Path, tests: Any, program: str, **kwargs: Any) -> float:
    return asked(folder, tests, **kwargs).step(f"```python\n{program}\n```")[1]


@pytest.mark.parametrize(
    ("tests", "more"),
    [
        (SHARES, {}),
        (json.dumps(SHARES), {}),
        ({**SHARES, "inputs": ["[6, 4]\n2", "[9]\n3"], "outputs": ["[3, 2]", "[3]"]}, {}),
        ({**SHARES, "outputs": [[[3, 2]], [[3]]]}, {}),
        ({key: value for key, value in SHARES.items() if key != "fn_name"}, {}),
        (LINES, {"func_name": "share"}),
        (LINES, {"metadata": json.dumps({"func_name": "share"})}),
        (LINES, {"starter_code": "class Solution:\n    def share(self, numbers, people):\n"}),
        ([{**LINES[0], "fn_name": "share"}], {}),
        (["assert share([6, 4], 2) == [3, 2]", "assert share(people=3, numbers=[9]) == [3], 'no'"], {}),
        ("assert share([6, 4], 2) == [3, 2]\nassert [3] == Solution().share([9], 3)", {}),
        ({"assert_case": ["assert share([9], 3) == [3]"]}, {}),
    ],
)
def test_forms(tests: Any, more: dict[str, Any], tmp_path: Path) -> None:
    if isinstance(tests, dict) and "inputs" in tests and "fn_name" not in tests:
        tests = {**tests, "testtype": "functional"}
        more = {"entry_point": "share"}
    env = asked(tmp_path, tests, more)
    assert all(isinstance(test, Called) for test in env.unwrapped.tests)
    for program, wanted in ((RIGHT, 1.0), (METHOD, 1.0), (RIGHT.replace("//", "-"), 0.0), ("share = 3", 0.0)):
        env.reset(seed=0)
        assert env.step(f"```python\n{program}\n```")[1] == wanted


@pytest.mark.parametrize(
    ("outputs", "returned", "right"),
    [
        ([[5], [6]], 5, True),  # all outputs are lists of one: it may be the output in a list
        ([[5], [6]], [5], True),
        ([[5], [6]], 6, False),
        ([[5], [6, 7]], 5, False),
        (["[5]", "[6]"], 5, False),  # a text says what it means
        ([[[5]]], [5], False),  # one alone shows no habit
    ],
)
def test_outputs_in_lists(outputs: Any, returned: Any, right: bool) -> None:
    inputs = ["1" if isinstance(each, str) else [1] for each in outputs]
    tests = read_tests({"fn_name": "f", "inputs": inputs, "outputs": outputs}, None)
    assert tests[0].passes(json.dumps(encoded(returned)), Comparison()) is right


def test_the_question_says_what_to_define(tmp_path: Path) -> None:
    assert "defines share" in asked(tmp_path, SHARES).reset(seed=0)[1]["suffix"]
    assert "standard input" in asked(tmp_path, {"inputs": ["1"], "outputs": ["1"]}).reset(seed=0)[1]["suffix"]


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        (LINES, "nothing names it"),
        (["assert isclose(share(3), 1.5)", "assert 1"], "assert 1"),
        (["assert share(3) > 2"], r"share\(3\) > 2"),
        (["assert share(x) == 2"], r"share\(x\)"),
        (["assert share(3) == third(9)"], r"third\(9\)"),
        (["assert share(*[3]) == 1"], "share"),
        (["assert share(b'3') == 1"], "b'3'"),
        (["x = 3"], "x = 3"),
        (["print("], "no Python"),
        ([""], "empty"),
        ({"inputs": "1", "outputs": "2"}, "lists, with an entry for each test"),
        ([LINES[0], {"input": "1", "output": "2"}], "some of them call a function"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(tests: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=why):
        asked(tmp_path, tests)


@pytest.mark.parametrize(
    "program",
    [
        "print('noise')\n" + RIGHT,
        "from __future__ import annotations\nfrom typing import List\n" + RIGHT,
        "def share(numbers: List[int], people): return [math.floor(n / people) for n in numbers]",
        RIGHT + "\nif __name__ == '__main__':\n    print(share(input(), 2))",
        "import numpy as np\ndef share(numbers, people): return np.array(numbers) // people",
        "def share(numbers, people): return tuple(n // people for n in numbers)",
    ],
)
def test_ways_to_write_a_function(program: str, tmp_path: Path) -> None:
    assert reward(tmp_path, SHARES, program) == 1.0


@pytest.mark.parametrize(
    "program",
    [
        "class Any(list):\n    __eq__ = lambda *_: True\ndef share(*_): return Any()",
        "class Any:\n    __eq__ = lambda *_: True\ndef share(*_): return Any()",
        "import sys\nsys.exit(0)",
        "import os\ndef share(*_): os._exit(0)",
        "print('[3, 2]')\ndef share(*_): print('[3, 2]')",
        "def share(*_):\n    deep = []\n    for _ in range(10**5): deep = [deep]\n    return deep",
        "def share(*_): return 10**5000",
        "print(input())\n" + RIGHT,
    ],
)
def test_no_program_decides_its_grade(program: str, tmp_path: Path) -> None:
    for tests in (SHARES, ["assert share([6, 4], 2) == [3, 2]"]):
        assert reward(tmp_path, tests, program) == 0.0


def test_a_function_that_the_program_forgot_is_not_imported(tmp_path: Path) -> None:
    assert reward(tmp_path, {"fn_name": "gcd", "inputs": [[6, 4]], "outputs": [2]}, "x = 2") == 0.0


def test_a_part_of_the_calls_pays_a_part(tmp_path: Path) -> None:
    assert reward(tmp_path, SHARES, "def share(*_): return [3]", reward="fraction") == 0.5


@pytest.mark.parametrize(
    ("assertion", "returned", "right"),
    [
        ("assert f() == (1, 2)", (1, 2), True),
        ("assert f() == (1, 2)", [1, 2], False),
        ("assert f() == {1: 'a'}", {1: "a"}, True),
        ("assert f() == {1: 'a'}", {"1": "a"}, False),
        ("assert set(f()) == {1, 2}", [2, 1, 1], True),
        ("assert set(f()) == set([1, 2])", [2, 1, 3], False),
        ("assert sorted(f()) == [1, 2]", [2, 1], True),
        ("assert sorted(f()) == [1, 2]", [2, "a"], False),
        ("assert f() is None", None, True),
        ("assert f() is None", 0, False),
        ("assert f()", [0], True),
        ("assert f() == 1", True, True),
        ("assert f()", [], False),
        ("assert not f()", 0, True),
        ("assert not f()", 1, False),
        ("assert f() == -1.5", -1.5, True),
        ("assert f() == 'a'", "a", True),
    ],
)
def test_assertions_compare_as_python_does(assertion: str, returned: Any, right: bool) -> None:
    [test] = read_tests([assertion], None)
    assert test.passes(json.dumps(encoded(returned)), Comparison()) is right


@pytest.mark.parametrize(
    ("wanted", "returned", "tolerance", "right"),
    [
        ([1, [2, 3]], (1, (2, 3)), None, True),
        ({"1": "a"}, {1: "a"}, None, True),
        ([0.3, {"a": [0.3]}], [0.1 + 0.2, {"a": (0.1 + 0.2,)}], 1e-9, True),
        ([0.3], [0.1 + 0.2], None, False),
        ([0.3, 0.3], [0.1 + 0.2], 1e-9, False),
        ({"a": 1}, {"b": 1}, 1e-9, False),
        (1, 1.0, None, True),
        (1, "1", 1e-9, False),
        (0, None, None, False),
        ([5], 5, None, False),
        ([5], [5], None, True),
        (1, True, None, False),
        (True, 1, None, False),
        ([[1, 0]], [[True, False]], None, False),
        ({"a": True}, {"a": True}, None, True),
        (10**9, 10**9 + 1, 1e-6, False),
        (10**9, 10.0**9, 1e-6, True),
        (1e9, 10**9 + 1, 1e-6, True),
        ([5, 6], 5, None, False),
        (float("inf"), float("inf"), 1e-9, True),
        ([1], {1}, None, False),
    ],
)
def test_values_compare_as_json_does(wanted: Any, returned: Any, tolerance: float | None, right: bool) -> None:
    [test] = read_tests({"fn_name": "f", "inputs": [[]], "outputs": [wanted]}, None)
    assert test.passes(json.dumps(encoded(returned)), Comparison(tolerance)) is right


@pytest.mark.parametrize(
    "printed",
    ["", "no JSON", "[", "[" * 10**5, '{"a": 1}', '{"set": [[]]}', '{"dict": [[[], 1]]}', '{"dict": 1}', '{"tuple": 1}',
     '{"float": []}', "{}", "1" * 5000, '{"other": "f"}', "5 5", '"5"'],
)  # fmt: skip
def test_no_output_of_a_program_breaks_the_comparison(printed: str) -> None:
    for tests in ({"fn_name": "f", "inputs": [[]], "outputs": [5]}, ["assert f() == 5", "assert set(f()) == {5}"]):
        for test in read_tests(tests, None):
            assert not test.passes(printed, Comparison())


def test_keys_of_one_hash_take_no_time() -> None:
    [test] = read_tests({"fn_name": "f", "inputs": [[]], "outputs": [5]}, None)
    began = time.process_time()
    assert not test.passes(json.dumps({"set": [number * (2**61 - 1) for number in range(40_000)]}), Comparison())
    assert time.process_time() - began < 5.0


def test_values_travel() -> None:
    value = [None, True, 10**30, -0.5, float("inf"), "ab\ud800", (1, [2]), {3, 4}, {(1, 2): {"k": ()}}]
    assert decoded(json.loads(json.dumps(encoded(value)))) == value


def test_numbers_that_were_keys_are_keys_again() -> None:
    [test] = read_tests({"fn_name": "f", "inputs": [[{"1": {"a": 2}}]], "outputs": [5]}, None)
    assert decoded(json.loads(test.given)["arguments"]) == [{1: {"a": 2}}]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({}, None),
        ({"fn_name": ""}, None),
        ({"fn_name": 3, "func_name": "f"}, "f"),
        ({"metadata": {"func_name": "f"}}, "f"),
        ({"metadata": "no JSON"}, None),
        ({"metadata": "[1]", "starter_code": "def f (a):"}, "f"),
        ({"starter_code": "x = 3"}, None),
    ],
)
def test_where_a_row_names_the_function(row: dict[str, Any], name: str | None) -> None:
    assert function_named_in(row) == name


def test_both_kinds_at_once_are_refused() -> None:
    with pytest.raises(UnreadableTests, match="some of them"):
        read_tests([*LINES, {"input": "1", "output": "2"}], "share")
