"""Values of expressions: they agree with math-verify wherever they tell at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_math import _exact as exact
from gem_math import _values as values


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("\\sqrt{20}", "2\\sqrt{5}"),
        ("sqrt(2)", "\\sqrt{2}"),
        ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"),
        ("1.5 \\times 10^3", "1500"),
        ("\\frac{1}{1024}", "2^{-10}"),
        ("\\frac{5\\pi}{10}", "\\pi/2"),
        ("(x-5)(x+3)", "x^2 - 2x - 15"),
        ("n(n+1)/2", "\\frac{n^2+n}{2}"),
        ("(\\frac{1}{2}, \\sqrt{8})", "(0.5, 2\\sqrt2)"),
        ("(-\\infty, 2^3]", "(-\\infty,8]"),
        ("2i+1", "1 + 2i"),
        ("e-1", "-1 + e"),
        ("1011_2", "1011_{2}"),
        ("x \\le 3", "x \\leq 3"),
        ("\\{2, 1\\}", "\\{1,2\\}"),
        ("2,1", "1, 2"),
        ("6!", "720"),
        ("50\\%", "0.5"),
        ("\\frac{1}{20}", "5\\%"),
    ],
)
def test_equal_values(answer: str, gold: str) -> None:
    assert values.equal(answer, gold) is True
    assert values.equal(gold, answer) is True


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("\\sqrt{5}", "2\\sqrt{5}"),
        ("x^2+2x-15", "x^2-2x-15"),
        ("(2,1)", "(1,2)"),
        ("\\pi", "3\\pi"),
        ("2^{10}", "2^{11}"),
    ],
)
def test_different_values(answer: str, gold: str) -> None:
    assert values.equal(answer, gold) is False
    assert values.equal(gold, answer) is False


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("3.14159", "\\pi"),  # how far it is rounded is for math-verify to say
        ("3\\frac{1}{\\sqrt{4}}", "3.5"),  # a mixed number, or a product
        ("1/2x", "x/2"),
        ("(2)(3)", "6"),  # math-verify takes it for no product
        ("0", "10^{-50}"),
        ("x-x", "\\sqrt{2}-\\sqrt{2}"),
        ("\\sqrt{-4}", "2i"),
        ("e", "2"),
        ("e", "e-1"),
        ("50\\%", "0.4"),
        ("3!!", "720"),
        ("100!", "1"),
        ("1-2i", "1+2i"),
        ("i^2", "-i^4"),
        ("1,234", "234,1"),
        ("11_2", "11_3"),
        ("\\{1,2,3\\}", "\\{1,2\\}"),
        ("x<3", "x>3"),
        ("5 y", "5"),
        ("xy", "yx"),
        ("f(2)", "2f"),
        ("x^12", "x^{12}"),
        ("2^{3^{2}}", "512"),
        ("9^{99999}", "1"),
        ("\\frac{1}{1-1}", "1"),
        ("(((((((((((((\\pi)))))))))))))", "\\pi+1"),
        ("+".join(["\\pi"] * 100), "100\\pi"),
        ("5 apples", "5"),
        ("(1,2,3)", "(1,2)"),
        ("[1,\\pi]", "[1,\\pi)"),
        ("(1,(2,3)", "(1,(2,4)"),
        ("(1,2)\\cup(3,4)", "(3,4)\\cup(1,2)"),
        ("", "\\pi"),
        ("^", "\\pi"),
        ("\\frac", "\\pi"),
        ("2 3", "6"),
        ("9" * 150 + "\\pi", "9" * 20_000),
        (f"{'9' * 80}^{{99}} {'9' * 80}^{{99}}", "\\pi"),
        ("(99^{99})^{99}", "(99^{98})^{99}"),
    ],
)
def test_what_is_left_to_math_verify(answer: str, gold: str) -> None:
    assert values.equal(answer, gold) is None
    assert values.equal(gold, answer) is None


NUMBERS = st.integers(1, 12).map(str)
ATOMS = st.one_of(NUMBERS, st.just("\\pi"), NUMBERS.map("\\sqrt{{{}}}".format), st.sampled_from(["x", "n", "(x+1)"]))


def _larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(smaller, smaller)
    return st.one_of(
        pair.map(lambda two: f"{two[0]} + {two[1]}"),
        pair.map(lambda two: f"{two[0]} - {two[1]}"),
        pair.map(lambda two: f"({two[0]})({two[1]})"),
        pair.map(lambda two: f"\\frac{{{two[0]}}}{{{two[1]}}}"),
        st.tuples(NUMBERS, ATOMS).map(lambda two: f"{two[0]} \\cdot {two[1]}"),
        st.tuples(smaller, st.integers(2, 3)).map(lambda two: f"({two[0]})^{two[1]}"),
    )


@settings(derandomize=True, max_examples=150)
@given(st.recursive(ATOMS, _larger, max_leaves=4), st.recursive(ATOMS, _larger, max_leaves=4), st.booleans())
def test_values_agree_with_math_verify(one: str, other: str, same: bool) -> None:
    verification = pytest.importorskip("gem_math.verification")
    other = f"{other} + {one} - ({other})" if same else other
    outcome = values.equal(one, other)
    if outcome is not None and exact.equal(one, other) is None:
        assert verification.equal(one, other) is outcome


@given(st.text("0123456789.+-*/^(){}xyn \\", max_size=30), st.text("0123456789.+-*/^(){}xyn", max_size=30))
def test_any_text_is_read_or_left(one: str, other: str) -> None:
    assert values.equal(one, other) in (True, False, None)
