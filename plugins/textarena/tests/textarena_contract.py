"""The conformance kit on every id of a game for two players: minutes, so `nox -s textarena -- FILE` runs it by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("textarena")

from gem_testing import check_env
from gem_textarena._names import MATCHES, match_names


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", match_names())
def test_two_players_keep_the_contract(name: str) -> None:
    check_env(f"textarena:{name}")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("game", MATCHES)
@pytest.mark.parametrize("opponents", [{"player 0": "random"}, {"player 1": "random"}])
def test_against_an_opponent_a_match_keeps_the_contract(game: str, opponents: Mapping[str, Any]) -> None:
    check_env(f"textarena:{game}-v0", opponents=opponents)
