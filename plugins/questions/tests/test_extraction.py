"""The answer in a text: which one counts, and that finding it takes one pass."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gem_questions.extraction import last_tag, published_block, published_box


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{5}", "5"),
        ("first \\boxed{1}, then \\boxed{ 2 }!", " 2 "),
        ("\\boxed{\\frac{1}{2}} and text }", "\\frac{1}{2}"),
        ("\\boxed{}", ""),
        ("\\boxed{\\boxed{1}}", "1"),
        ("\\boxed{1} \\boxed{2", None),
        ("\\boxed{1} \\boxed 2", None),
        ("\\boxed{\\{1}", None),
        ("\\boxed {1}", None),
        ("boxed{1}", None),
        ("", None),
    ],
)
def test_the_published_box(text: str, answer: str | None) -> None:
    assert published_box(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>Paris</answer>", "Paris"),
        ("<answer>a</answer> no, <answer>\n b \n</answer> yes", "b"),
        ("<answer>a<answer>b</answer>", "a<answer>b"),
        ("<answer>a</answer><answer>b", "a"),
        ("<answer></answer>", ""),
        ("</answer>a<answer>", None),
        ("<Answer>a</Answer>", None),
        ("", None),
    ],
)
def test_the_last_tags_count(text: str, answer: str | None) -> None:
    assert last_tag(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("```\nprint(1)\n```", "print(1)"),
        ("```py\na\n``` or ```python3\nb\n```", "b"),
        ("```python\na\n```\n```python\nb", "a"),
        ("```python a\n```", None),
        ("````python\na\n````", "a"),
        ("```python\n```", ""),
        ("print(1)", None),
        ("", None),
    ],
)
def test_the_published_block(text: str, answer: str | None) -> None:
    assert published_block(text) == answer


@pytest.mark.parametrize("find", [published_box, last_tag, published_block])
@pytest.mark.parametrize(
    "piece", ["<answer>", "</answer>", "\\boxed{", "\\boxed{}", "{", "}", "```", "```python", "```\n", "`", "x", "\\"]
)
def test_finding_it_takes_one_pass(find: Callable[[str], str | None], piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    find(text)
    assert time.process_time() - start < 1.0  # upstream: 3.3 s for 160 KB of tags
