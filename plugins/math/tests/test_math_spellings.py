"""A sample of the answers that benchmarks/math_verdicts.py makes by rule: right spellings and certified mutants."""

from __future__ import annotations

import pytest

pytest.importorskip("mpmath")
pytest.importorskip("sympy")

from gem_math._references import answer_of
from gem_math.verdicts import is_right
from gem_support.math_answers import KINDS, Case, differ
from gem_support.math_kinds import right, wrong


def _verdict(case: Case) -> bool:
    return is_right(case.answer, answer_of(case.reference), case.question)


def test_right_spellings_are_right() -> None:
    cases = [*right(1, seed=1)]
    assert len({case.kind for case in cases}) == len(KINDS) > 40
    assert [case for case in cases if not _verdict(case)] == []


def test_mutants_are_wrong() -> None:
    cases = [*wrong(1, seed=1)]
    assert len(cases) > 500
    assert [case for case in cases if _verdict(case)] == []


def test_a_certificate_tells_values_apart() -> None:
    import sympy

    x = sympy.Symbol("x")
    assert differ((1, 2), (2, 1))
    assert differ(frozenset({1, 2}), frozenset({1, 3}))
    assert differ(sympy.sin(x), sympy.cos(x))
    assert not differ((x + 1) ** 2, x**2 + 2 * x + 1)
    assert not differ(frozenset({(1, 2), (3, 4)}), frozenset({(3, 4), (1, 2)}))
