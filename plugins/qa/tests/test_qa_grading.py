"""Grading without an environment."""

from __future__ import annotations

import doctest

import pytest

import gem_core
from gem_qa import grading, verify


def test_the_examples_are_true() -> None:
    found = doctest.testmod(grading)
    assert found.attempted
    assert not found.failed


def test_it_is_true_for_the_right_words_bare_in_tags_or_in_a_box() -> None:
    assert verify("The Rhone!", "Rhone")
    assert verify("No: <answer>Seine</answer> Yes: <answer> the Rhone </answer>", "Rhone")
    assert verify("So \\boxed{Rhone}.", "Rhone")
    assert verify("\\boxed{Seine} <answer>Rhone</answer>", "Rhone")
    assert not verify("Rhine", "Rhone")
    assert not verify("", "Rhone")


def test_the_reference_may_be_a_number_or_several() -> None:
    assert verify("1969", 1969.0)
    assert verify("C++", ["C", "C++"])
    assert not verify("C", ("C++", 3))


def test_what_is_not_closed_is_no_answer() -> None:
    assert not verify("<answer>Rhone", "Rhone").found
    assert not verify("\\boxed{Rhone", "Rhone").found
    assert verify("Rhine", "Rhone").found


def test_what_cannot_be_graded_raises() -> None:
    with pytest.raises(TypeError, match="must be a text, and is None"):
        verify(None, "Rhone")  # pyright: ignore[reportArgumentType]
    for nothing in ("", [], [" "], None):
        with pytest.raises(ValueError, match="there is no reference"):
            verify("Rhone", nothing)  # pyright: ignore[reportArgumentType]


def test_it_grades_a_data_set_of_any_kind() -> None:
    rows = [{"problem": "Is it true?", "answer": "True"}]
    env = gem_core.make("math:Dataset", dataset=rows, grader="gem_qa:verify")
    env.reset(seed=0)
    assert env.step("\\boxed{\\text{true}}")[1] == 1.0
