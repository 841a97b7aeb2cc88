"""Our verdict on mathematics: no answer costs much, raises, or earns anything by being odd."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("mpmath")

from gem_math import _evaluation as evaluation
from gem_math import _expressions as expressions
from gem_math._tokens import tokens
from gem_math.verdicts import is_right

REFERENCES = (
    *("5", "-12", "0.375", "\\frac{1}{2}", "1.6\\times 10^{-19}", "78.54", "30\\%", "2\\sqrt{5}", "\\pi", "101_2"),
    *("x^2+1", "\\sin x", "(1,2)", "[0,1)", "x>3", "\\{7,9\\}", "1,2", "x=8", "y=2x+3", "C", "ABCD", "3:4"),
    *("\\text{even}", "\\begin{pmatrix}4\\\\7\\end{pmatrix}", "5\\text{ cm}", "\\$18", "2:30"),
)
"""One of each kind."""
DEGENERATE = (
    *(
        "",
        " ",
        "{}",
        "()",
        "[]",
        "\\{\\}",
        "(,)",
        ",",
        ";",
        ":",
        "|",
        "||",
        "%",
        "\\%",
        "$",
        "\\$",
        "?",
        "...",
        "-",
        "+",
        "\\",
    ),
    *(
        "\\boxed{}",
        "\\text{}",
        "\\frac{}{}",
        "\\sqrt{}",
        "\\begin{pmatrix}\\end{pmatrix}",
        "\\emptyset",
        "=",
        "x=",
        "=5x",
    ),
    *("x", "n", "a", "f", "c", "x=x", "0=0", "1=1", "5=6", "x\\neq x", "x^0", "1^x", "0x", "\\frac{x}{x}", "\\log_x x"),
    *(
        "nan",
        "inf",
        "-inf",
        "\\infty",
        "-\\infty",
        "\\pm\\infty",
        "0/0",
        "1/0",
        "0^0",
        "\\frac00",
        "0\\cdot\\infty",
        "0:0",
    ),
    *(
        "(-\\infty,\\infty)",
        "[-\\infty,\\infty]",
        "\\mathbb{R}",
        "x\\in\\mathbb{R}",
        "x>3 or x\\le 3",
        "(0,1)\\cup(-9,9)",
    ),
    *(
        "0,1,2,3,4,5,6,7,8,9",
        "\\{0,1,2,3,4,5,6,7,8,9\\}",
        "5 or 6",
        "1 or 2 or 3",
        "5\\pm 5",
        "[5,5]",
        "\\{5,5\\}",
        "5,5",
        "[5]",
    ),
    *(
        "5\\ldots",
        "5?",
        "~5.1",
        "5 \\to 6",
        "0\\text{ cm}\\text{ or }5",
        "A,B,C,D",
        "(A)(B)(C)(D)",
        "any",
        "all",
    ),
    *("none", "no solution", "undefined", "the answer", "see above", "True", "yes or no", "\\text{even or odd}"),
    *(
        "0.0",
        "0.00000000000",
        "10^{-300}",
        "1e-300",
        "1e300",
        "10^{300}",
        "9^{9^{9}}",
        "999!",
        "5+10^{-60}",
        "5+0",
        "5\\cdot 1",
    ),
    *(
        "5^1",
        "\\frac{5}{1}",
        "\\sqrt{25}",
        "5!/4!",
        "\\int_0^5 dx",
        "\\sum_{k=1}^5 1",
        "\\lim_{x\\to 5}x",
        "\\max(5,1)",
    ),
)
HOSTILE = {
    "sums": "1+" * 199 + "1",
    "factors": "x" + " x" * 150,
    "signs": "-" * 300 + "5",
    "brackets": "(" * 25 + "x x x x x x)" * 25,
    "deep brackets": "(" * 400 + "5" + ")" * 400,
    "braces": "{" * 400 + "5" + "}" * 400,
    "fractions": "\\frac{" * 60 + "1" + "}{2}" * 60,
    "powers": "x^{" * 60 + "2" + "}" * 60,
    "power tower": "9^{9^{9^{9}}}",
    "python tower": "9**9**9**9",
    "factorials": "5" + "!" * 300,
    "power of a factorial": "(999!)^{999}",
    "binomials": "\\binom{1000}{500}" * 20,
    "functions": "\\sin " * 150 + "x",
    "sum of functions": "+".join(["e^{x}"] * 60),
    "polynomial": "(x+1)^{99}" * 30,
    "roots": "\\sqrt{" * 24 + "2" + "}" * 24,
    "digits": "9" * 1000,
    "roots of large numbers": "+".join(f"\\sqrt{{2^{{9000}}+{number}}}" for number in range(24)),
    "large powers": "+".join(f"{number}^{{10^{{900}}}}" for number in range(2, 60)),
    "chain": "=".join(["\\sqrt{2}+\\sqrt{3}"] * 25),
    "systems": ",".join(["x=1,y=2"] * 60),
    "set without points": "\\mathbb{R}\\setminus\\{" + ",".join(map(str, range(120))) + "\\}",
    "conditions": "\\{x|" + ",".join(f"x\\neq {number}" for number in range(80)) + "\\}",
    "constants": "+".join(f"C_{number}x^{number}" for number in range(1, 40)),
    "factorials of letters": "\\frac{(9n)!}{n!}" * 20,
    "large exponents": "1e999" * 50,
    "numbers between commas": "1," * 400,
    "equations": "1=" * 200 + "1",
    "bars": "|" * 200,
    "plus-minus": "\\pm 1" * 80,
    "set of expressions": "\\{" + ",".join(f"x^{{{power}}}" for power in range(60)) + "\\}",
    "union": "(0,1)" + "\\cup(0,1)" * 40,
    "units": "5 " + "\\text{m}" * 60,
    "indices": "a_" * 200 + "1",
    "set of relations": "\\{" + ",".join(f"{factor}x=y^z" for factor in range(2, 55)) + "\\}",
    "a base that Python takes for a digit": "101_{\\text{\u2460}}",
    "a divisor that Python takes for a digit": "3 1/\\text{\u2460}",
    "a numerator that Python takes for a digit": "3 \\text{\u2460}/2",
    "a period that Python takes for a digit": "0.1\\overline{\\text{\u2460}}",
    "code": "__import__('os').system('true')",
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_no_degenerate_answer_is_right(reference: str) -> None:
    for answer in DEGENERATE:
        assert not is_right(answer, reference), answer


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_is_right_and_no_other_of_another_kind(reference: str) -> None:
    assert is_right(reference, reference)
    assert is_right(f" {reference} ", f"${reference}$") or "\\$" in reference
    for other in REFERENCES:
        assert other == reference or not is_right(other, reference), other


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_takes_no_time_and_does_not_raise(kind: str) -> None:
    answer = HOSTILE[kind]
    begin = time.process_time()
    for reference in REFERENCES:
        assert not is_right(answer, reference)
    is_right(f"{answer} ", f"{answer}+0")  # as far as it can be read, all of it is computed
    assert time.process_time() - begin < 10.0  # it takes less than a second, where a test is not in a hurry


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_needs_no_deep_stack(kind: str) -> None:
    def deep(frames: int) -> bool:
        return deep(frames - 1) if frames else is_right(HOSTILE[kind], HOSTILE[kind] + "+0")

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2000)
    try:
        deep(1000)
    finally:
        sys.setrecursionlimit(limit)


@settings(derandomize=True, max_examples=300)
@given(st.text("0123456789.+-*/^(){}[]|,;:=<>!%$&_\\xyneiABC '\t", max_size=40), st.sampled_from(REFERENCES))
def test_any_text_has_a_verdict(answer: str, reference: str) -> None:
    assert is_right(answer, reference) in (True, False)
    assert is_right(reference, answer) in (True, False)


@pytest.mark.parametrize("bits", [60, 250, 600, 900])
def test_a_small_difference_is_seen_on_whatever_digits(bits: int) -> None:
    assert not is_right(f"\\sqrt{{2}}+2^{{-{bits}}}", "\\sqrt{2}")
    assert not is_right(f"2^{{{bits}}}+\\sqrt{{2}}", f"2^{{{bits}}}+\\sqrt{{3}}")
    assert is_right(f"2^{{{bits}}}+\\sqrt{{8}}", f"2^{{{bits}}}+2\\sqrt{{2}}")


def test_variables_are_drawn_anew_in_each_process() -> None:
    tree = expressions.read(tokens("x+y"))
    assert evaluation.variables(tree) == ["x", "y"]
    assert not evaluation.equal(tree, expressions.read(tokens("x+1.5")))


def test_threads_share_the_arithmetic() -> None:
    verdicts: list[bool] = []

    def compare() -> None:
        for number in range(2, 40):
            verdicts.append(is_right(f"\\sqrt{{{4 * number}}}+\\sin x", f"\\sin x+2\\sqrt{{{number}}}"))
            verdicts.append(not is_right(f"\\sqrt{{{4 * number + 1}}}+\\pi", f"\\pi+2\\sqrt{{{number}}}"))

    threads = [threading.Thread(target=compare) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(verdicts) == 8 * 76
    assert all(verdicts)
