"""The verdicts on pairs of our own, each of which is argued in pairs.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_qa.verdicts import is_right
from gem_support.pairs import Pair, read_pairs

NOTHING = "<nothing>"
PAIRS = [
    pair._replace(given="" if pair.given == NOTHING else pair.given)
    for pair in read_pairs(Path(__file__).with_name("pairs.txt"))
]


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{pair.given} for {pair.reference}" for pair in PAIRS])
def test_the_verdict_is_the_one_that_is_argued(pair: Pair) -> None:
    assert is_right(pair.given, pair.reference) is pair.right, pair.why


def test_there_are_100_pairs_and_no_two_are_alike() -> None:
    assert len(PAIRS) >= 100
    assert len({(pair.given, pair.reference) for pair in PAIRS}) == len(PAIRS)
