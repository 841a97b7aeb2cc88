"""Exact match and the extraction of answers agree with upstream's."""

from __future__ import annotations

import random

import pytest

from gem_qa.verdicts import normalised
from gem_questions.extraction import last_tag, published_block, published_box

pytest.importorskip("gem", reason="this needs gem-llm, as in `nox -s parity`")

from gem.utils import parsing, qa_em

TEXTS = [
    "Paris", "the Eiffel Tower", "A.I.", "a", "The", "", " ", "an an an", "it's", "1,000", "3.14", "theatre", "-",
    "Saint-Étienne", "co-op", "\u00c9t\u00e9", "\u2019tis", "New  York\n", "\tthe\tthe", "A B C", "50%", "$5",
    "\u0130stanbul", "\u00df", "\ufb01sh", "the_the", "O'Neil", "(1969)", "No. 5", "x\0y", "\ud800",
]  # fmt: skip
PIECES = [
    "<answer>", "</answer>", "<answer", "\\boxed{", "\\boxed", "\\fbox{", "{", "}", "```", "```python\n", "```\n", "`",
    "\n", " ", "a", "b2", "5", "\\", "the",
]  # fmt: skip


def texts(count: int) -> list[str]:
    rng = random.Random(0)
    return ["".join(rng.choices(PIECES, k=rng.randint(0, 14))) for _ in range(count)]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_normalised_alike(text: str) -> None:
    assert normalised(text) == qa_em.normalize_answer(text)


def test_any_text_is_normalised_alike() -> None:
    for text in texts(3000):
        assert normalised(text) == qa_em.normalize_answer(text), text


def test_pairs_match_alike() -> None:
    for answer in TEXTS:
        for gold in TEXTS:
            assert (normalised(answer) == normalised(gold)) is qa_em.em_check(answer, [gold])


def test_tags_boxes_and_blocks_are_found_alike() -> None:
    for text in texts(20_000):
        assert last_tag(text) == parsing.extract_last_tagged_answer(text), text
        assert published_box(text) == parsing.extract_last_boxed_answer(text), text
        assert published_block(text) == parsing.extract_code_from_model(text), text
