"""What is read as a number, a table, an expression, and what is not."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from gem_reasoning_gym import _grammar as grammar

pytest.importorskip("sympy")

from gem_reasoning_gym._algebra import is_antiderivative, is_polynomial

pytestmark = pytest.mark.long

CODE = "__import__('os').system('true')"
NOT_ANYTHING = [
    "", " ", "nan", "inf", "1e9999", "1_000", "0x10", "1 2", "x", "len('24')", CODE, f"[{CODE}]", "lambda: 0", "[0]*3",
    "().__class__", "[x for x in y]", "{1, 2}", "a.b", "1;2", "\0", "\ud800", "(" * 100_000, "[" * 100_000,
    "1+" * 100_000,
    "9**9**9**9", "2" + "**2" * 1000, "-" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_ANYTHING, ids=lambda text: repr(text[:20]))
def test_what_is_no_number_and_no_arithmetic_is_refused(text: str) -> None:
    assert grammar.number(text) is None
    assert grammar.arithmetic(text) is None


@pytest.mark.parametrize(
    "text", [*NOT_ANYTHING, "[1 2]", "[1,,2]", "[,]", "[1", "1]", "(1]", "7", "'a' 'b'", "[nan]"], ids=repr
)
def test_what_is_no_table_is_refused(text: str) -> None:
    assert grammar.table(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), (" -1.50 ", Fraction(-3, 2)), ("+.5", Fraction(1, 2)), ("2.", 2), ("1e-3", Fraction(1, 1000)),
        ("3/4", Fraction(3, 4)), ("-3/4", Fraction(-3, 4)), ("007", 7), ("1E2", 100),
    ],
)  # fmt: skip
def test_numbers(text: str, value: Fraction) -> None:
    assert grammar.number(text) == value


@pytest.mark.parametrize("text", ["1/0", "3/00", "1/-2", "1 /2", "٣", "1e1000", "9" * 401])
def test_near_numbers_are_none(text: str) -> None:
    assert grammar.number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[[1, 2], [3, 4]]", [["1", "2"], ["3", "4"]]), ("[['Q', '_'], (\"_\", \"Q\",)]", [["Q", "_"], ["_", "Q"]]),
        ("1, 2", ["1", "2"]), ("(1, 2.50)", ["1", "2.50"]), ("[]", []), ("[-1,]", ["-1"]), ("'abc'", "abc"), ("1,",
        ["1"]),
        ("[\n [0],\n [1]\n]", [["0"], ["1"]]),
    ],
)  # fmt: skip
def test_tables(text: str, value: Any) -> None:
    assert grammar.table(text) == value


def test_arithmetic_is_that_of_python() -> None:
    """Random expressions, with spaces and without, against Python's own, which is exact on fractions."""
    rng = random.Random(0)

    def expression(depth: int) -> tuple[str, str]:
        if not depth or rng.random() < 0.2:
            number = str(rng.randrange(100))
            return number, f"Fraction({number})"
        sign = rng.choice(["-", "+", ""] if rng.random() < 0.2 else [""])
        operator = rng.choice("+-*/")
        (left, python_left), (right, python_right) = expression(depth - 1), expression(depth - 1)
        opened, closed = ("(", ")") if sign or rng.random() < 0.7 else ("", "")
        space = rng.choice(["", " "])
        return tuple(
            f"{sign}{opened}{one}{space}{operator}{space}{other}{closed}"
            for one, other in ((left, right), (python_left, python_right))
        )  # pyright: ignore[reportReturnType]

    for _ in range(2000):
        text, python = expression(rng.randrange(5))
        try:
            wanted = eval(python)
        except ZeroDivisionError:
            wanted = None
        read = grammar.arithmetic(text)
        assert (read and read[0]) == wanted, text


def test_the_numbers_of_an_expression_are_those_that_it_computes_with() -> None:
    assert grammar.arithmetic("(4*6) - -1/1") == (25, [4, 6, 1, 1])
    assert grammar.arithmetic("2**3") is None
    assert grammar.arithmetic("2.0*3") is None
    assert grammar.arithmetic("7//2") is None
    assert grammar.arithmetic("07") is None


@pytest.mark.parametrize(
    "text", ["x**3/3 + C", "C - 1 + x**3*(1/3)", "x**3*0.5*2/3", "(x*x*x)/3", "x ** 3 / 3", "+x**3/+3"]
)
def test_antiderivatives_in_any_form(text: str) -> None:
    assert is_antiderivative(text, "x**2", "x")


@pytest.mark.parametrize(
    "text",
    [
        "Q", "Integral(x**2, x)", "integrate(x**2, x)", "x**3", "x^3/3", "X**3/3", "diff(x)", "nan", "oo", "zoo",
        "1/0", "x/0", "", "C",
        "Symbol('x')", "x.diff()", CODE, "y**3/3", "x**3/3 + y", "S(1)", "Function('f')(x)", "x**3/3 == 0",
        "expand(x**2)",
        "9**9**9", "(((9**64)**64)**64)**64*x", "x**1e9", "(" * 3000, "x" * 3000, "1" * 1000,
    ],
)  # fmt: skip
def test_what_is_no_antiderivative(text: str) -> None:
    assert not is_antiderivative(text, "x**2", "x")


def test_functions_of_calculus() -> None:
    assert is_antiderivative("-cos(2*x)/2 + C", "sin(2*x)", "x")
    assert is_antiderivative("sqrt(x)**3*(2/3)", "sqrt(x)", "x")
    assert is_antiderivative("x*ln(x) - x", "log(x)", "x")
    assert is_antiderivative("arctan(x)", "1/(x**2 + 1)", "x")
    assert is_antiderivative("E**X", "exp(X)", "X")


def test_polynomials_have_to_be_multiplied_out() -> None:
    product = "x**2 + 3*x + 2"
    assert is_polynomial("2 + 3*x + x**2", product, ["x"])
    assert is_polynomial("x*x+x+2*x+2", product, ["x"])
    for text in (
        "(x + 1)*(x + 2)",
        "expand((x + 1)*(x + 2))",
        "x**2 + 3*x",
        "y**2 + 3*y + 2",
        "sin(x)",
        product + "+C",
    ):
        assert not is_polynomial(text, product, ["x"])
