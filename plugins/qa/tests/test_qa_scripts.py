# ruff: noqa: RUF001
"""Punctuation and digits of other scripts: they mean what their western ones mean."""

from __future__ import annotations

import pytest

from gem_qa.verdicts import is_right, is_right_in_squad

SAME = """
    札幌。 | 札幌
    「神戸」 | 神戸
    『雪国』 | 雪国
    《阿Q正传》 | 阿Q正传
    【奈良】 | 奈良
    上海，| 上海
    Oslo！ | Oslo
    الرباط؟ | الرباط
    कोलकाता। | कोलकाता
    Երևան։ | Երևան
    አዲስ አበባ። | አዲስ አበባ
    «Львів». | Львів
    ¿Lima? | Lima
    １９６９年 | 1969年
    １，２００ | 1200
    －８ | -8
    ٢٠٢٤ | 2024
    ٢٫٥ | 2.5
    २५ | 25
    ５０％ | 50%
    Ｃ＋＋ | C++
    ＮＡＳＡ | NASA
    マリー・キュリー | マリーキュリー
    マリー・キュリー | マリー キュリー
    **札幌**。 | 札幌
    **Oslo**. | Oslo
    "**Oslo**" | Oslo
    ***Marie Curie***! | Marie Curie
"""
OTHER = """
    札幌市。 | 札幌
    「神戸」 | 京都
    Ｆ | F#
    Ｃ | C++
    ８ | -8
    ２５ | 2.5
    ٢٥ | 2.5
    ٢٫٥ | 25
    3。5 | 35
    10² | 102
    5‰ | 5
    5′ | 5
    ～10 | -10
    「」 | 神戸
    。 | 神戸
    ** | 神戸
"""


def pairs(table: str) -> list[tuple[str, str]]:
    lines = [line.split("|") for line in table.strip().split("\n")]
    return [(given.strip(), accepted.strip()) for given, accepted in lines]


@pytest.mark.parametrize(("given", "accepted"), pairs(SAME))
def test_signs_of_other_scripts_say_what_ours_say(given: str, accepted: str) -> None:
    assert is_right(given, accepted)
    assert "*" in given or is_right(accepted, given), "a reference has no markup"


@pytest.mark.parametrize(("given", "accepted"), pairs(OTHER))
def test_what_means_something_else_stays_wrong(given: str, accepted: str) -> None:
    assert not is_right(given, accepted)


def test_the_published_verdict_is_as_before() -> None:
    assert not is_right_in_squad("札幌。", "札幌")
    assert not is_right_in_squad("２.５", "2.5")
    assert is_right_in_squad("F", "F#")
