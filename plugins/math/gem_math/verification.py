"""Comparing answers as mathematics, with math-verify. This runs in grading processes and never where training runs.

sympy evaluates what it reads, so an answer can run code, loop or eat memory here; `gem_grading` bounds that.
"""

from __future__ import annotations

import logging
from typing import Any

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify  # pyright: ignore

_READ = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())

logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that it has no time limit; the process has one


def equal(answer: str, gold: str) -> bool:
    """Do two answers mean the same?"""
    return bool(verify(_parsed(gold), _parsed(answer), timeout_seconds=None))


def any_equal(answer: str, golds: list[str]) -> bool:
    """Does an answer mean the same as one of several?"""
    return any(equal(answer, gold) for gold in golds)


def _parsed(text: str) -> Any:
    # As upstream calls it, so that the same pairs agree.
    return parse(
        text if "$" in text else f"${text}$",
        extraction_config=_READ,
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,  # pyright: ignore
    )


def _warm_up() -> None:
    # The parser learns its tables from what it reads, and each grading process would learn them anew.
    for answer, gold in _TYPICAL:
        equal(answer, gold)


_TYPICAL = (
    ("\\frac{3}{4}", "0.75"),
    ("2\\sqrt{3} + \\pi", "\\pi + \\sqrt{12}"),
    ("x^2 - 2x + 1", "(x-1)^{2}"),
    ("n(n+1)/2", "\\frac{n^2 + n}{2}"),
    ("(x, y) = (1, \\frac{1}{2})", "(1, 0.5)"),
    ("[-1, \\frac{1}{2}) \\cup (3, \\infty)", "(3, \\infty) \\cup [-1, 0.5)"),
    ("\\{1, 2\\}", "2, 1"),
    ("x = 5", "5"),
    ("5 y", "5"),
    ("x \\le 3", "(-\\infty, 3]"),
    ("\\begin{pmatrix} 1 \\\\ -2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}"),
    ("\\sin(2x) e^{-x}", "2\\sin x\\cos x e^{-x}"),
    ("\\log_2 8", "3"),
    ("3 \\text{ cm}", "\\text{Monday}"),
    ("50\\%", "1/2"),
    ("1 + 2i", "2i - 1"),
)
_warm_up()
