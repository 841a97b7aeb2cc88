"""Boxes: which ones there are, what stands in them, and that finding them takes one pass."""

from __future__ import annotations

import time

import pytest

from gem_core.responses import boxes, last_box


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("\\boxed{5}", "5"),
        ("\\boxed {5}", "5"),
        ("\\boxed\n{5}", "5"),
        ("\\fbox{5}", "5"),
        ("\\BOXED{5}", "5"),
        ("\\\\boxed{5}", "5"),
        ("a = \\\\\\boxed{5}", "5"),
        ("$$\\boxed{5}$$", "5"),
        ("\\[\\boxed{5}\\]", "5"),
        ("\\boxed{}", ""),
        # White space and signs of mathematics around it say nothing.
        ("\\boxed{ 5\t}", "5"),
        ("\\boxed{\n5 6\n7 8\n}", "5 6\n7 8"),
        ("\\boxed{$5$}", "5"),
        ("\\boxed{ $$ 5 $$ }", "5"),
        ("\\boxed{\\(5\\)}", "5"),
        ("\\boxed{\\[ 5 \\]}", "5"),
        ("\\boxed{$5}", "$5"),
        ("\\boxed{$}", "$"),
        ("\\boxed{$5$ and $6$}", "$5$ and $6$"),
        ("\\boxed{\\(5\\) and \\(6\\)}", "\\(5\\) and \\(6\\)"),
        ("\\boxed{[5, 6]}", "[5, 6]"),
        # Braces.
        ("\\boxed{\\frac{7}{8}} and text }", "\\frac{7}{8}"),
        ("\\boxed{\\left\\{\\begin{array}{l}a=1\\\\b=2\\end{array}\\right.}", None),
        ("\\boxed{\\{7, 8\\}}", "\\{7, 8\\}"),
        ("\\boxed{\\{7}", "\\{7"),
        ("\\boxed{7\\\\{b}}", "7\\\\{b}"),
        ("{ \\boxed{5}", "5"),
        ("} \\boxed{5} }", "5"),
    ],
)
def test_what_stands_in_a_box(text: str, content: str | None) -> None:
    content = text[len("\\boxed{") : -1] if content is None else content
    assert boxes(text) == [content]
    assert last_box(text) == content


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("\\boxed{1}, then \\boxed {2}.", ["1", "2"]),
        ("\\boxed{1}{2}\\boxed{3}", ["1", "3"]),
        # What is never closed is no box, and nothing that it could hide.
        ("\\boxed{1} \\boxed{2", ["1"]),
        ("\\boxed{1} \\boxed 2", ["1"]),
        ("\\boxed{1 \\boxed{2}", ["2"]),
        ("\\boxed{1 {2}", []),
        # Inner ones.
        ("\\boxed{\\boxed{1}}", ["1"]),
        ("\\boxed{a \\boxed{1} b {\\fbox{2}} c} \\boxed{3}", ["1", "2", "3"]),
        ("boxed{1}", []),
        ("\\boxedness{1}", []),
        ("\\boxed[1]", []),
        ("", []),
    ],
)
def test_several_boxes(text: str, several: list[str]) -> None:
    assert boxes(text) == several
    assert last_box(text) == (several[-1] if several else None)


@pytest.mark.parametrize("piece", ["\\boxed{", "\\boxed{}", "\\boxed ", "\\fbox", "{", "}", "\\", "\\{", "x", " ", "$"])
def test_finding_boxes_takes_one_pass(piece: str) -> None:
    def seconds(characters: int) -> float:
        text = f"\\boxed{piece * (characters // len(piece))}{{"
        began = time.process_time()
        boxes(text)
        return time.process_time() - began

    assert seconds(400_000) < 6 * seconds(100_000) + 0.2
