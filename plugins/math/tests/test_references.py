"""What a reference states, with boxes and without."""

from __future__ import annotations

import pytest

from gem_math._references import answer_of


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("7", "7"),
        ("\\boxed{7}", "7"),
        ("We get $2x = 14$, so $x = \\boxed{7}$.", "7"),
        ("\\boxed{6} \\text{ and } \\boxed{-1}", "6, -1"),
        ("So $x=\\boxed{6}$ or $x=\\boxed{-1}$.", "6 \\text{ or } -1"),
        ("\\boxed{1}, \\boxed{2}, \\boxed{3}", "1, 2, 3"),
        ("First, $y=\\boxed{4}$. Hence $x=\\boxed{9}$.", "9"),
        ("\\boxed{4} comes from a long way " + "of words " * 10 + "\\boxed{9}", "9"),
        ("\\boxed{5} = \\boxed{5}", "5"),
    ],
)
def test_boxes_of_one_sentence_are_one_answer(reference: str, answer: str) -> None:
    assert answer_of(reference) == answer
