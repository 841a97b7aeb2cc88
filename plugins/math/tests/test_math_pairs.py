"""The verdicts on pairs of our own, each of which is argued in pairs.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_support.pairs import Pair, read_pairs

pytest.importorskip("mpmath")

from gem_math.verdicts import is_right

PAIRS = read_pairs(Path(__file__).with_name("pairs.txt"))


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{pair.given} for {pair.reference}" for pair in PAIRS])
def test_the_verdict_is_the_one_that_is_argued(pair: Pair) -> None:
    assert is_right(pair.given, pair.reference, pair.question) is pair.right, pair.why


def test_there_are_200_pairs_and_no_two_are_alike() -> None:
    assert len(PAIRS) >= 200
    assert len({(pair.given, pair.reference, pair.question) for pair in PAIRS}) == len(PAIRS)
