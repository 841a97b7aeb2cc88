"""Grading without an environment, and what a data set may have as its answer."""

from __future__ import annotations

import doctest
import warnings
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_math import grading, references, verify
from gem_math.references import answer_of, is_prose

pytest.importorskip("mpmath")

WORKED = "A pack has 12 pens.\nTwo packs have 12*2=<<12*2=24>>24 pens, and 6 are lost.\nThat leaves 24-6=18.\n#### 18"
SENTENCE = "The two lines never meet, because both of them rise by two."


@pytest.mark.parametrize("module", [grading, references])
def test_the_examples_are_true(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (WORKED, "18"),
        ("#### 1,250", "1,250"),
        ("It is ten.\n  #### -3.5  \n\n", "-3.5"),
        ("#### 4\n#### 5", "5"),
        ("First \\boxed{3}. Then \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{3} and \\boxed{-5}", "3, -5"),
        ("either \\boxed{3} or \\boxed{-5}", "3 \\text{ or } -5"),
        ("\\boxed{7}\n#### 8", "7"),
        ("12", "12"),
        ("#### The answer\nis 12", "#### The answer\nis 12"),  # a heading, and no last line
        ("##### 5", "##### 5"),
        ("a #### 5", "5"),
        ("a ##### 5", "a ##### 5"),
        ("####", "####"),
    ],
)
def test_the_answer_in_a_reference(reference: str, answer: str) -> None:
    assert answer_of(reference) == answer


@pytest.mark.parametrize("published", [False, True])
def test_a_worked_solution_pays_for_its_answer_and_nothing_else(published: bool) -> None:
    if published:
        pytest.importorskip("math_verify")
    env = gem_core.make("math:Dataset", dataset=[{"problem": "How many?", "answer": WORKED}], published=published)
    for answer, reward in [("18", 1.0), ("18.0", 1.0), ("24", 0.0), ("1", 0.0), ("####", 0.0)]:
        env.reset(seed=0)
        _, paid, _, _, info = env.step(f"\\boxed{{{answer}}}")
        assert (answer, paid) == (answer, reward)
        assert "grading_error" not in info


@pytest.mark.parametrize(
    ("reference", "prose"),
    [
        (SENTENCE, True),
        ("It takes 5 days to finish all of the work", True),
        (WORKED.partition("####")[0], True),
        (WORKED, False),
        ("\\text{no real solutions}", False),
        ("none of the above", False),
        ("5 square meters", False),
        ("x = 3 \\text{ or } x = 4", False),
        ("Monday", False),
        ("red, blue, green, white, black, brown, pink, gray, gold", False),
        ("3-2f(x)", False),
        (f"{SENTENCE} \\boxed{{2}}", False),
    ],
)
def test_prose(reference: str, prose: bool) -> None:
    assert is_prose(reference) is prose


def dataset(*answers: Any) -> list[dict[str, Any]]:
    return [{"problem": f"Question {number}?", "answer": answer} for number, answer in enumerate(answers)]


def test_data_of_which_every_reference_is_prose_is_refused() -> None:
    env = gem_core.make("math:Dataset", dataset=dataset(SENTENCE, f"So {SENTENCE}"))
    for _ in range(2):
        with pytest.raises(EnvError, match=r"row 0 .*'answer' holds 'The two lines.*is prose.*####.*2 of 2 rows"):
            env.reset()
    table = pytest.importorskip("datasets").Dataset.from_list(dataset(*[f"{SENTENCE} {n}" for n in range(500)]))
    env = gem_core.make("math:Dataset", dataset=table)
    with pytest.raises(EnvError, match="is prose"):
        env.reset()


def test_a_few_references_of_prose_are_named_and_their_wrong_answers_say_why() -> None:
    rows = dataset("7", SENTENCE)
    env = gem_core.make("math:Dataset", dataset=rows)
    with pytest.warns(UserWarning, match=r"row 1 .*is prose.*1 of 2 rows"):
        env.reset(row=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        gem_core.make("math:Dataset", dataset=rows).reset(row=0)
        env.reset(row=1)
    _, reward, _, _, info = env.step("\\boxed{parallel}")
    assert (reward, "cannot be read" in info["grading_error"]) == (0.0, True)
    env.reset(row=1)
    assert env.step(f"\\boxed{{{SENTENCE}}}")[1] == 1.0
    env.reset(row=0)
    assert "grading_error" not in env.step("\\boxed{8}")[4]


def test_a_grader_of_ones_own_may_have_any_reference() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gem_core.make("math:Dataset", dataset=dataset(SENTENCE, SENTENCE), grader=lambda answer: float(answer))
        env.reset(seed=0)
        assert env.step("\\boxed{0.25}")[1] == 0.25


# -- verify ------------------------------------------------------------------------------------------------------------


def test_it_is_true_for_the_right_answer_in_a_box_or_bare() -> None:
    assert verify("3/4", "0.75")
    assert verify("It is $\\boxed{3/4}$.", "0.75")
    assert verify("It was \\boxed{1}, now \\boxed{3/4}.", "0.75")
    assert not verify("3/5", "0.75")
    assert verify("18", WORKED).reward == 1.0


def test_the_reference_may_be_a_number_or_several() -> None:
    assert verify("4", 4)
    assert verify("4", ["5", 4])
    assert not verify("4", ("5", 6.0))


def test_the_question_tells_what_may_be_left_out() -> None:
    assert not verify("3, 1", "1, 3", "List the roots in increasing order.")
    assert verify("3, 1", "1, 3", "What are the roots?")


def test_it_says_what_it_could_not_read() -> None:
    assert verify("4", SENTENCE).unread == "reference"
    assert SENTENCE in verify("4", SENTENCE).info["grading_error"]
    assert verify("5 + )", "4").unread == "answer"
    assert verify("5", "4").unread == ""
    alike = verify(SENTENCE, SENTENCE)
    assert (alike.correct, alike.unread) == (True, "")
    assert not verify("\\boxed{4", "4").found


def test_what_cannot_be_graded_raises() -> None:
    with pytest.raises(TypeError, match="must be a text, and is 4"):
        verify(4, "4")  # pyright: ignore[reportArgumentType]
    for nothing in ("", [], "  ", "\\boxed{}", None):
        with pytest.raises(ValueError, match="there is no reference"):
            verify("4", nothing)  # pyright: ignore[reportArgumentType]


def test_the_published_verdict_is_laxer() -> None:
    pytest.importorskip("math_verify")
    assert verify("17-29", "-12", published=True)
    assert not verify("17-29", "-12")


def test_it_grades_a_data_set_of_any_kind() -> None:
    rows = [{"question": "How long?", "answer": "\\frac{1}{2}"}]
    env = gem_core.make("qa:Dataset", dataset=rows, grader="gem_math:verify")
    env.reset(seed=0)
    assert env.step("<answer>0.5</answer>")[1] == 1.0
