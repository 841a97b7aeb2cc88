"""Our grader of mathematics and upstream's agree on ordinary answers; the differences have reasons."""

from __future__ import annotations

import logging

import pytest

from gem_math import _exact as exact

grader = pytest.importorskip("gem.utils.math_grader", reason="this needs gem-llm and pylatexenc, as in `nox -s parity`")

PAIRS = (
    # answer, accepted
    ("5", "5"),
    ("5", "6"),
    ("-5", "5"),
    ("+5", "5"),
    ("05", "5"),
    ("5.0", "5"),
    ("5.", "5"),
    ("$5$", "5"),
    ("\\$5", "5"),
    ("5", "5.00"),
    ("1000", "1,000"),
    ("1,000", "1000"),
    ("1{,}000", "1000"),
    ("12,345,678", "12345678"),
    ("1000", "1,001"),
    ("12345", "12346"),
    ("1000000", "1000001"),
    ("0.5", "\\frac{1}{2}"),
    ("\\frac{1}{2}", "0.5"),
    ("1/2", "\\frac{1}{2}"),
    ("\\dfrac{1}{2}", "\\frac12"),
    ("\\tfrac12", "\\frac{1}{2}"),
    ("\\frac{2}{4}", "\\frac{1}{2}"),
    ("-\\frac{1}{2}", "\\frac{-1}{2}"),
    ("\\frac{3}{4}", "\\frac{4}{3}"),
    ("0.75", "3/4"),
    ("1/3", "0.333"),
    ("0.3333", "\\frac{1}{3}"),
    ("0.333333", "\\frac{1}{3}"),
    ("2/6", "1/3"),
    ("3\\frac{1}{2}", "\\frac{7}{2}"),
    ("3 1/2", "\\frac{7}{2}"),
    ("3.5", "3\\frac12"),
    ("5 \\text{ cm}", "5"),
    ("5\\text{ cm}", "5\\text{ cm}"),
    ("5 cm", "5"),
    ("5", "5 \\text{ apples}"),
    ("28 \\text{ cm}^2", "28"),
    ("28", "28\\text{ cm}^2"),
    ("5 apples", "5"),
    ("6 apples", "5"),
    ("6\\text{ cm}", "5"),
    ("65^\\circ", "65"),
    ("65", "65^{\\circ}"),
    ("65 degrees", "65^\\circ"),
    ("100 \\text{ km/h}", "100"),
    ("100 km/h", "100 \\text{ km/h}"),
    ("5 \\mathrm{m}", "5"),
    ("50\\%", "50"),
    ("50%", "50"),
    ("50", "50\\%"),
    ("0.5", "50\\%"),
    ("25\\%", "20\\%"),
    ("x=5", "5"),
    ("5", "x=5"),
    ("x = 5", "5"),
    ("y=5", "x=5"),
    ("x=6", "5"),
    ("2\\sqrt{5}", "\\sqrt{20}"),
    ("\\sqrt{20}", "2\\sqrt{5}"),
    ("2\\sqrt5", "2\\sqrt{5}"),
    ("\\sqrt{5}", "2\\sqrt{5}"),
    ("sqrt(2)", "\\sqrt{2}"),
    ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"),
    ("25\\pi", "25\\pi"),
    ("25 \\pi", "25\\pi"),
    ("25pi", "25\\pi"),
    ("78.54", "25\\pi"),
    ("3.14159265", "\\pi"),
    ("x^2-2x-15", "x^2 - 2x - 15"),
    ("(x+3)(x-5)", "x^2 - 2x - 15"),
    ("x^{2}-2x-15", "x^2-2x-15"),
    ("x^2+2x-15", "x^2-2x-15"),
    ("-15 - 2x + x^2", "x^2-2x-15"),
    ("(x-5)(x+3)", "(x+3)(x-5)"),
    ("(1,2)", "(1,2)"),
    ("(1, 2)", "(1,2)"),
    ("(2,1)", "(1,2)"),
    ("[1,2)", "[1, 2)"),
    ("[1,2]", "[1,2)"),
    ("\\left[1,2\\right)", "[1,2)"),
    ("(-\\infty, 5)", "(-\\infty,5)"),
    ("(-\\infty, 4) \\cup (5, \\infty)", "(-\\infty,4)\\cup(5,\\infty)"),
    ("(5,\\infty)\\cup(-\\infty,4)", "(-\\infty,4)\\cup(5,\\infty)"),
    ("(\\frac{1}{2}, 3)", "(0.5, 3)"),
    ("\\{1,2\\}", "\\{1,2\\}"),
    ("\\{2,1\\}", "\\{1, 2\\}"),
    ("1,2", "1,2"),
    ("2,1", "1,2"),
    ("1, 2, 3", "1,2,3"),
    ("1 and 2", "1,2"),
    ("\\{1,2,3\\}", "\\{1,2\\}"),
    ("\\text{Wednesday}", "Wednesday"),
    ("wednesday", "Wednesday"),
    ("Wednesday", "\\text{Wednesday}"),
    ("Tuesday", "Wednesday"),
    ("\\text{yes}", "yes"),
    ("no", "yes"),
    ("\\text{(A)}", "A"),
    ("(A)", "A"),
    ("A", "(A)"),
    ("B", "A"),
    ("\\textbf{(C)}", "C"),
    ("C", "\\text{C}"),
    ("1+2i", "1 + 2i"),
    ("2i+1", "1+2i"),
    ("1-2i", "1+2i"),
    ("5 + i", "5+i"),
    ("10^{-3}", "0.001"),
    ("1e-3", "0.001"),
    ("1.5e3", "1500"),
    ("1.5 \\times 10^3", "1500"),
    ("2^{10}", "1024"),
    ("1024", "2^{10}"),
    ("\\frac{1}{1024}", "2^{-10}"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{bmatrix} 1 & 2 \\\\ 3 & 4 \\end{bmatrix}"),
    ("\\begin{pmatrix}2\\\\1\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("\\frac{n(n+1)}{2}", "\\frac{n^2+n}{2}"),
    ("n(n+1)/2", "\\frac{n(n+1)}{2}"),
    ("e-1", "e - 1"),
    ("e", "e-1"),
    ("\\ln 2", "\\ln(2)"),
    ("\\log_2 8", "3"),
    ("\\sin x", "\\cos x"),
    ("7", "seven"),
    ("", "5"),
    (" ", "5"),
    ("the answer is 5", "5"),
    ("5 or 6", "5"),
    ("five", "5"),
    ("0", "-0"),
    ("0", "0.0"),
    ("1.10", "1.1"),
    ("1.1", "1.11"),
    ("-12", "-12.0"),
    ("\\infty", "\\infty"),
    ("-\\infty", "\\infty"),
    ("\\text{None}", "5"),
    ("p - q", "p-q"),
    ("11_2", "11_{2}"),
    ("1011_2", "1011_{2}"),
    ("y = 2x + 3", "y=2x+3"),
    ("2x+3", "y = 2x + 3"),
    ("x \\le 3", "x \\leq 3"),
    ("x<3", "x>3"),
    ("\\frac{a}{b}", "a/b"),
    ("\\pm 3", "\\pm3"),
    ("3, -3", "\\pm 3"),
    ("12 \\text{ hours}", "12"),
    ("2:30", "2:30"),
    ("2:30 pm", "2:30"),
    ("90^\\circ", "\\frac{\\pi}{2}"),
    ("\\boxed{5}", "5"),
    ("5", "\\boxed{5}"),
    ("{5}", "5"),
    ("1 000", "1000"),
    ("-\\frac34", "-0.75"),
    ("\\frac{-3}{-4}", "\\frac34"),
    ("\\frac{10}{5}", "2"),
    ("2", "\\frac{10}{5}"),
    ("\\frac{1.5}{3}", "0.5"),
    ("5\\%", "0.05"),
    ("(x, y) = (1, 2)", "(1,2)"),
    ("3\\cdot 4", "12"),
    ("3 \\times 4", "12"),
    ("2^3 \\cdot 5", "40"),
    ("6!", "720"),
    ("\\binom{5}{2}", "10"),
)

DIFFERENT = (
    # answer, accepted, upstream, ours, why
    ("31/2", "3 1/2", True, False, "upstream drops the space of mixed numbers"),
    ("1\\,000", "1000", False, True, "a thin space between thousands is how LaTeX writes them"),
    ("\\overline{AB}", "AB", True, False, "a line over letters has a meaning"),
)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)


def theirs(answer: str, gold: str) -> bool:
    return bool(grader.boxed_reward_fn(f"\\boxed{{{answer}}}", gold, False, 1.0, 0.0)[1])


def ours(answer: str, gold: str) -> bool:
    """The published verdict of `MathEnv`, without the process around it, which upstream lacks here, too."""
    from gem_math.verification import any_equal

    known = exact.equal(answer, gold)
    return known if known is not None else bool(answer.strip()) and any_equal(answer, [gold])


@pytest.mark.parametrize(("answer", "gold"), PAIRS)
def test_both_give_the_same_verdict(answer: str, gold: str) -> None:
    assert ours(answer, gold) is theirs(answer, gold)


@pytest.mark.parametrize(("answer", "gold", "upstream", "here", "why"), DIFFERENT)
def test_the_differences_are_these(answer: str, gold: str, upstream: bool, here: bool, why: str) -> None:
    assert (theirs(answer, gold), ours(answer, gold)) == (upstream, here), why


def test_both_decide_plain_numbers_alike() -> None:
    plain = ["5", "-5", "5.0", "0.5", "1/2", "\\frac{1}{2}", "\\dfrac12", "2/4", "1,000", "1000", "999", "50\\%", "50"]
    for answer in plain:
        for gold in plain:
            assert ours(answer, gold) is theirs(answer, gold), (answer, gold)


def test_both_take_the_last_box() -> None:
    from gem_questions.extraction import published_box

    for text in ("\\boxed{1}", "\\boxed{1} \\boxed{2}", "\\boxed{1} \\boxed{2", "\\boxed{}", "\\boxed{{1}}", "1", ""):
        assert published_box(text) == grader.extract_answer(text), text
