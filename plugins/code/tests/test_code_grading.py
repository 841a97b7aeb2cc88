"""Grading a program without an environment."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import gem_core
from gem_code import grading, verify
from gem_core.errors import EnvError

SUMS = {"inputs": ["1 2", "5 5"], "outputs": ["3", "10"]}
ADD = "print(sum(map(int, input().split())))"


def test_the_examples_are_true() -> None:
    found = doctest.testmod(grading)
    assert found.attempted
    assert not found.failed


def test_a_program_is_run_bare_or_from_its_block() -> None:
    assert verify(ADD, SUMS)
    assert verify(f"<think>```python\nprint(3)\n```</think>So:\n```python\n{ADD}\n```\nDone.", SUMS)
    assert not verify("print(3)", SUMS)
    assert verify("print(3)", SUMS, reward="fraction").info["score"] == 0.5


def test_the_row_may_name_the_function() -> None:
    tests = [{"input": "3\n4", "output": "7", "testtype": "functional"}]
    program = "def plus(a, b): return a + b"
    assert verify(program, tests, row={"fn_name": "plus"})
    with pytest.raises(ValueError, match="no tests that can be run"):
        verify(program, tests)


def test_what_is_wrong_is_said() -> None:
    assert "ZeroDivisionError" in verify("print(1 / 0)", SUMS).info["program_error"]
    assert not verify("Run it:\n```bash\npython add.py\n```", SUMS).found
    assert verify("while True: pass", SUMS, timeout=0.5).info["grading_error"].startswith("timeout")


@pytest.mark.parametrize("reference", ["", [], {"inputs": [1]}, None, "nonsense"])
def test_what_holds_no_tests_raises(reference: Any) -> None:
    with pytest.raises(ValueError, match="no tests that can be run"):
        verify(ADD, reference)


def test_other_values_that_cannot_be_raise() -> None:
    with pytest.raises(TypeError, match="must be a text, and is None"):
        verify(None, SUMS)  # pyright: ignore[reportArgumentType]
    for wrong in ({"reward": "part"}, {"tolerance": -1.0}, {"timeout": 0.0}, {"max_tests": 0}):
        with pytest.raises(EnvError, match=next(iter(wrong))):
            verify(ADD, SUMS, **wrong)  # pyright: ignore[reportArgumentType]


def test_it_grades_a_data_set_of_any_kind() -> None:
    rows = [{"question": "Add.", "answer": SUMS}]
    env = gem_core.make("qa:Dataset", dataset=rows, grader="gem_code:verify")
    env.reset(seed=0)
    assert env.step(f"<answer>{ADD}</answer>")[1] == 1.0
