"""A match for the tests of adapters: two agents babble in turns, and each is paid by what it said and heard."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from brute_force import returns_to_go

import gem_core
from gem_core import Match, MatchStep
from gem_core.advantages import compute_advantages
from gem_core.rollout import Batch, BatchCollector, Completion, Episode, RolloutSettings
from gem_core.training.turn_table import TurnTable

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


def played(tokenizer: Any, slots: int = 4, group_size: int = 2) -> Batch:
    """Matches of a policy whose answer depends on its prompt alone; two episodes for each."""
    register()
    vec = gem_core.make_vec(ID, slots, backend="sync", seed=3, group_size=group_size)

    def policy(prompts: Sequence[Any]) -> list[Completion]:
        return [Completion([65 + sum(prompt) % 20, 66], [-0.5, -0.25]) for prompt in prompts]

    collector = BatchCollector(vec, policy, tokenizer, RolloutSettings(max_response_tokens=4))
    batch = collector.collect_round()
    collector.close()
    return batch


def advantages(episodes: Sequence[Episode], name: str, gamma: float) -> dict[str, list[float]]:
    """The advantages of each episode by brute force: GRPO within task and agent, or RAE for a first batch."""
    returns = {one.id: returns_to_go([turn.reward for turn in one.turns], gamma)[0] for one in episodes}
    found: dict[str, list[float]] = {}
    for one in episodes:
        alike = [other for other in episodes if other.agent == one.agent]
        if name == "grpo":
            alike = [other for other in alike if other.group == one.group]
        numbers = [returns[other.id] for other in alike]
        spread = statistics.pstdev(numbers) + 1e-9 if name == "grpo" else 1.0
        found[one.id] = [(returns[one.id] - statistics.fmean(numbers)) / spread] * len(one.turns)
    return found


def assert_advantages(table: TurnTable, ids: Sequence[str], episodes: Sequence[Episode]) -> None:
    """Assert that the turns of a table are those of the episodes, and that estimators compare each agent with itself.

    Args:
        table: the turns of the batch.
        ids: `Episode.id` of each episode by its number in the table.
        episodes: all episodes of the batch.
    """
    assert sorted(ids) == sorted(one.id for one in episodes if one.turns)
    by_id = {one.id: one for one in episodes}
    for episode, position, reward in zip(table.episode, table.position, table.reward, strict=True):
        assert by_id[ids[episode]].turns[position].reward == reward
    for name in ("grpo", "rae"):
        wanted = advantages(episodes, name, 0.9)
        got, _ = compute_advantages(name, table.batch(), gamma=0.9)
        turns = zip(table.episode, table.position, strict=True)
        assert got.tolist() == pytest.approx([wanted[ids[episode]][position] for episode, position in turns], abs=1e-6)
