"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_MATCHES = {
    "TicTacToe-v0": "tic_tac_toe:TicTacToe",
    "KuhnPoker-v0": "kuhn:KuhnPoker",
    "IteratedDilemma-v0": "dilemma:IteratedDilemma",
    "Negotiation-v0": "negotiation:Negotiation",
}


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """The matches."""
    for name, place in _MATCHES.items():
        yield EnvSpec(
            f"match:{name}",
            f"gem_matches.{place}",
            {},
            ("match", "multi-turn", "several agents"),
            trusting=("opponents",),
        )
