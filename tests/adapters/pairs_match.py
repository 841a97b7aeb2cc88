"""A match for the tests of adapters: two agents babble in turns, and each is paid by what it said and heard."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import gem_core
from gem_core import Match, MatchStep

ID = "test:Pair-v0"


class Pair(Match):
    """Three turns in all. What an agent says pays itself at once, and the other one later."""

    agents = ("first", "second")

    def deal(self) -> Mapping[str, str]:
        self.turn = 0
        self.word = self.rng.choice("abc")
        return {"first": f"you {self.word}", "second": f"me {self.word}"}

    def to_act(self) -> Sequence[str]:
        return (self.agents[self.turn % 2],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        [(agent, text)] = actions.items()
        other = self.agents[1 - self.agents.index(agent)]
        self.turn += 1
        worth = sum(map(ord, text)) % 7
        over = self.turn == 3
        return MatchStep(
            observations={other: f"turn {self.turn}"},
            rewards={agent: float(worth), other: worth / 2},
            terminated=dict.fromkeys(self.agents, over),
            infos={one: {"success": worth > 3} for one in self.agents},
        )

    def random_action(self, agent: str, rng: random.Random) -> str:
        return rng.choice("abc")


def register() -> None:
    gem_core.register(ID, Pair)
