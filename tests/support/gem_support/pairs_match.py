"""A match for the tests of adapters: two agents babble in turns, and each is paid by what it said and heard."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import gem_core
from gem_core import Match, MatchStep
from gem_core._match_env import MatchEnv
from gem_core.advantages import compute_advantages
from gem_core.env import ResetResult
from gem_support.brute_force import returns_to_go
from gem_train.rollout import Batch, BatchCollector, Completion, Episode, RolloutSettings
from gem_train.turn_table import TurnTable

ID = "test:Pair-v0"
FRAGILE_ID = "test:FragilePair-v0"
FRAGILE_SEED = 23
"""With this seed of a run, the first match of `FRAGILE_ID` that cannot start is task 49."""


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


class FragilePair(MatchEnv):
    """Cannot start for every 107th seed."""

    def __init__(self) -> None:
        super().__init__(Pair())

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        if seed is not None and seed % 107 == 0:
            raise RuntimeError("no such table")
        return super().reset(seed=seed, **options)


def register() -> None:
    gem_core.register(ID, Pair)
    gem_core.register(FRAGILE_ID, FragilePair)


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
            alike = [other for other in alike if other.task_id == one.task_id]
        numbers = [returns[other.id] for other in alike]
        spread = statistics.pstdev(numbers) + 1e-9 if name == "grpo" else 1.0
        found[one.id] = [(returns[one.id] - statistics.fmean(numbers)) / spread] * len(one.turns)
    return found


def assert_trained_with_rae(
    batches: Sequence[Sequence[Any]], steps: Mapping[int, Sequence[Episode]], matches: int, gamma: float
) -> None:
    """Assert that batches have the responses of both agents of each match, with the advantages of RAE by brute force.

    Args:
        batches: for each batch, its `training_run.Response`s.
        steps: the episodes by batch; there may be further batches that were played and not trained on.
        matches: of each batch.
        gamma: discount per turn.
    """
    baselines: dict[str, float] = {}
    for step, batch in enumerate(batches):
        episodes = steps[step]
        assert Counter(one.agent for one in episodes) == dict.fromkeys(Pair.agents, matches)
        assert len({one.match for one in episodes}) == matches
        returns = [returns_to_go([turn.reward for turn in one.turns], gamma)[0] for one in episodes]
        for agent in Pair.agents:
            mean = statistics.fmean(number for number, one in zip(returns, episodes, strict=True) if one.agent == agent)
            kept = 0.95**matches if agent in baselines else 0.0
            baselines[agent] = kept * baselines.get(agent, 0.0) + (1 - kept) * mean
        want = sorted(
            (tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn)), number - baselines[one.agent])
            for one, number in zip(episodes, returns, strict=True)
            for turn in one.turns
        )
        got = sorted(batch)
        assert [one[:2] for one in got] == [one[:2] for one in want]
        assert [one.advantage for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)


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
