"""What texts and plain numbers tell without asking math-verify: equal, unequal, or nothing."""

from __future__ import annotations

import time

import pytest

from gem_math import _exact as exact

EQUAL = [
    ("5", "5"),
    ("+5", " 5. "),
    ("-5", "\u22125"),
    ("007", "7"),
    ("5.00", "5"),
    (".5", "0.5"),
    ("1,000", "1000"),
    ("1{,}000", "1,000"),
    ("1 000 000", "1\\,000\\,000"),
    ("1.5e3", "1500"),
    ("$5$", "\\(5\\)"),
    ("\\$5", "5"),
    ("1/2", "0.5"),
    ("\\dfrac{1}{2}", "\\frac12"),
    ("\\frac{2}{4}", "1/2"),
    ("-\\frac{1}{2}", "\\frac{-1}{2}"),
    ("\\frac{1.5}{3}", "0.5"),
    ("3\\frac{1}{2}", "7/2"),
    ("3 1/2", "3.5"),
    ("-2 1/4", "-2.25"),
    ("5 \\text{ cm}", "5"),
    ("28 \\text{ cm}^2", "28\\mathrm{cm}^{2}"),
    ("100 km/h", "100 \\text{ km/h}"),
    ("65^\\circ", "65"),
    ("25\\%", "25"),
    ("x = 5", "5"),
    ("x = 5", "x=5.0"),
    ("y=5", "x=5"),  # upstream does not look at the name
    ("\\text{Wednesday}", "wednesday"),
    ("\\left[ 1, 2 \\right)", "[1,2)"),
    ("25 \\pi", "25pi"),
    ("x^2 - 2x - 15", "x^2-2x-15"),
]
UNEQUAL = [
    ("5", "6"),
    ("-5", "5"),
    ("12345", "12346"),
    ("1000000", "1,000,001"),
    ("1/2", "1/3"),
    ("0.5", "0.6"),
    ("31/2", "3 1/2"),
    ("5 \\text{ cm}", "6"),
    ("25\\%", "20\\%"),
    ("9" * 90, "8" * 90),
]
UNCLEAR = [
    ("", "5"),
    ("", ""),
    ("1/0", "5"),
    ("0.333333", "1/3"),  # how far it is rounded is for math-verify to judge
    ("50\\%", "0.5"),
    ("5\\text{ million}", "5"),
    ("5x", "5"),
    ("5 pi", "5"),
    ("x^2", "x^3"),
    ("(1,2)", "(2,1)"),
    ("\\leftarrow", "\\rightarrow"),
    ("9" * 101, "8" * 101),
    ("9**9**9**9", "5"),
    ("1e999999999", "5"),
    ("nan", "5"),
    ("\0", "5"),
    ("\ud800", "5"),
]


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_equal_in_both_directions(answer: str, gold: str) -> None:
    assert exact.equal(answer, gold) is True
    assert exact.equal(gold, answer) is True


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_plain_numbers_that_differ_are_unequal(answer: str, gold: str) -> None:
    assert exact.equal(answer, gold) is False
    assert exact.equal(gold, answer) is False


@pytest.mark.parametrize(("answer", "gold"), UNCLEAR)
def test_what_is_no_plain_number_is_left_open(answer: str, gold: str) -> None:
    assert exact.equal(answer, gold) is None
    assert exact.equal(gold, answer) is None


def test_long_texts_are_compared_as_they_stand() -> None:
    assert exact.equal("x" * 5000 + " ", "x" * 5000) is True
    assert exact.equal("x" * 5000, "5") is None


@pytest.mark.parametrize(
    "piece", ["9", "1,", "1 ", "\\frac", "\\text{", "\\text{a}", "{", "\\frac{", "0.", "5 \\text{"]
)
def test_no_answer_takes_long(piece: str) -> None:
    answer = piece * (exact.MAX_CHARACTERS // len(piece))
    start = time.process_time()
    for _ in range(10):
        exact.equal(answer, "5")
    assert time.process_time() - start < 0.1


def test_plain_answers_take_well_below_a_millisecond() -> None:
    start = time.process_time()
    for _ in range(100):
        for answer, gold in [*EQUAL, *UNEQUAL]:
            exact.equal(answer, gold)
    assert (time.process_time() - start) / (100 * len([*EQUAL, *UNEQUAL])) < 1e-3
