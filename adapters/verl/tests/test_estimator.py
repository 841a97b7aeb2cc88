"""Advantages as verl's own trainer computes them, compared with their formulas in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from omegaconf import DictConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from without_ray import MemoryQueue, batch_of, hand_over, trainer

from gem_core.errors import AdvantageError
from gem_core.plugins import manager
from gem_core.specs import AdvantageSpec
from gem_support import brute_force
from gem_support.hand_made import random_episodes, without_turns
from gem_train.results import EpisodeResult
from gem_train.rollout import Episode
from gem_train.rows import TurnSpan
from gem_train.turn_table import TurnTable
from gem_verl._estimator import ESTIMATOR, TURN_ESTIMATOR
from gem_verl._rows import RESULT, TURNS, episode_rows, report_row

ESTIMATORS = ["rebn", "rebn_loo", "reinforce", "grpo", "drgrpo", "rloo"]
GROUPS, SIZE = 4, 3
VERSIONS = {"min_global_steps": 0, "max_global_steps": 0}
LAM = 0.8


class Step:
    """A batch of episodes on its way through verl, up to the advantages."""

    def __init__(
        self, config: DictConfig, tokenizer: Any, queue: MemoryQueue, episodes: Sequence[Episode], *, seed: int = 0
    ) -> None:
        self.queue, self.episodes = queue, episodes
        self.trainer = trainer(config, tokenizer, ranks=2)
        self.of: dict[str, int] = {}
        """The episode of each row."""
        keys: list[str] = []
        members: dict[int, int] = {}
        for number, episode in enumerate(episodes):
            member = members[episode.task_id] = members.get(episode.task_id, -1) + 1
            rows = [report_row(EpisodeResult(episode.summary()), VERSIONS)]
            if episode.turns:
                rows = episode_rows([episode], config.gem.row, VERSIONS, AgentLoopMetrics())
            stored = hand_over(queue, rows, f"task{episode.task_id}", member)
            self.of |= dict.fromkeys(stored, number)
            keys += stored
        self.batch = batch_of(self.trainer, queue, keys, random.Random(seed))
        self.metrics: dict[str, Any] = {}

    def advantages(self, field: str = "advantages") -> list[list[float]]:
        """One number per turn of each episode, from the rows; all other tokens have 0."""
        found: list[dict[int, float]] = [{} for _ in self.episodes]
        for key in self.batch.keys:
            row = self.queue.rows[key]
            numbers: list[float] = row[field].tolist()
            assert len(numbers) == len(row["responses"])
            padding = bool(self.queue.tags[key].get("is_padding"))
            assert padding == (key not in self.of)
            for turn, start, end in [] if padding else spans_of(row):
                assert len({*numbers[start:end]}) == 1, "one turn, one number"
                assert all(row["response_mask"][start:end]), "all of a turn's tokens are trained on"
                assert turn not in found[self.of[key]], "a turn stands in one row"
                found[self.of[key]][turn] = numbers[start]
                numbers[start:end] = [0.0] * (end - start)
            assert not any(numbers), "no number on tokens that were not sampled"
        return [[numbers[turn] for turn in range(len(numbers))] for numbers in found]

    def compute(self) -> list[list[float]]:
        self.batch = self.trainer._compute_advantage(self.batch, self.metrics)
        return self.advantages()


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> MemoryQueue:
    return MemoryQueue().install(monkeypatch)


@pytest.fixture
def step(configure: Callable[..., DictConfig], words: Any, queue: MemoryQueue) -> Callable[..., Step]:
    """A function that brings episodes up to the advantages; its arguments override the configuration."""

    def make(episodes: Sequence[Episode], *flags: str, seed: int = 0) -> Step:
        config = configure("actor_rollout_ref.rollout.n=3", f"algorithm.lam={LAM}", *flags)
        return Step(config, words, queue, episodes, seed=seed)

    return make


def spans_of(row: dict[str, Any]) -> list[tuple[int, int, int]]:
    """The turns of a stored row: position in the episode, and where it is in the response."""
    first = len(row["prompts"])
    turns = [TurnSpan(*turn) for turn in row["extra_fields"][TURNS]]
    return [(turn.position, turn.start - first, turn.end - first) for turn in turns]


def rewards_of(episodes: Sequence[Episode]) -> list[list[float]]:
    return [[turn.reward for turn in episode.turns] for episode in episodes]


def same(got: Sequence[Sequence[float]], want: Sequence[Sequence[float]]) -> None:
    assert [len(one) for one in got] == [len(one) for one in want]
    flat = [[number for one in rows for number in one] for rows in (got, want)]
    assert flat[0] == pytest.approx(flat[1], abs=1e-5)


@pytest.mark.parametrize("row", ["episode", "turn"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_equals_brute_force(step, name, row):
    for seed, gamma in enumerate([0.9, 1.0, 0.0]):
        episodes = random_episodes(random.Random(f"{name}{seed}"), GROUPS, SIZE, breaks=0.2)
        run = step(episodes, f"algorithm.adv_estimator={name}", f"algorithm.gamma={gamma}", f"gem.row={row}")
        got = run.compute()
        groups = [episode.task_id for episode in episodes]
        same(got, brute_force.expected(name, rewards_of(episodes), groups, gamma))
        same(run.advantages("returns"), [brute_force.returns_to_go(one, gamma) for one in rewards_of(episodes)])
        turns = sum(map(len, rewards_of(episodes)))
        assert (run.metrics["advantage/turns"], run.metrics["rollout/turns"]) == (turns, turns)
        assert run.metrics["rollout/episodes"] == len(episodes)
        run.queue.rows.clear()


@pytest.mark.parametrize("row", ["episode", "turn"])
@pytest.mark.parametrize("gamma", [1.0, 0.7])
def test_gae_uses_the_value_at_the_first_token_of_each_turn(step, row, gamma):
    episodes = random_episodes(random.Random(5), GROUPS, SIZE, breaks=0.2)
    run = step(episodes, "algorithm.adv_estimator=gae", f"algorithm.gamma={gamma}", f"gem.row={row}")
    values: list[list[float]] = [[0.0] * len(episode.turns) for episode in episodes]
    for key, number in run.of.items():
        for turn, start, _ in spans_of(run.queue.rows[key]):
            values[number][turn] = run.queue.rows[key]["values"][start].item()
    got = run.compute()
    wanted = [
        brute_force.gae(rewards, own, gamma, LAM) for rewards, own in zip(rewards_of(episodes), values, strict=True)
    ]
    same(got, wanted)
    targets = [[a + v for a, v in zip(*pair, strict=True)] for pair in zip(wanted, values, strict=True)]
    same(run.advantages("returns"), targets)


@pytest.mark.parametrize("name", ["rebn", "rloo"])
def test_both_kinds_of_row_give_each_token_the_same_number(step, name):
    episodes = random_episodes(random.Random(8), GROUPS, SIZE)
    found: list[dict[tuple[tuple[int, ...], int], float]] = []
    for kind in ("episode", "turn"):
        run = step(episodes, f"algorithm.adv_estimator={name}", f"gem.row={kind}", "algorithm.gamma=0.9")
        run.compute()
        tokens: dict[tuple[tuple[int, ...], int], float] = {}
        for key in run.of:
            row = run.queue.rows[key]
            ids = [*row["prompts"].tolist(), *row["responses"].tolist()]
            first = len(row["prompts"])
            for at, (number, trained) in enumerate(zip(row["advantages"], row["response_mask"], strict=True)):
                if trained:
                    tokens[tuple(ids[: first + at]), ids[first + at]] = number.item()
        found.append(tokens)
        run.queue.rows.clear()
    assert len(found[0]) == sum(turn.end - turn.start for episode in episodes for turn in episode.turns)
    assert found[0].keys() == found[1].keys()
    assert [*found[0].values()] == pytest.approx([found[1][token] for token in found[0]], abs=1e-6)


def test_padding_rows_exist_and_do_not_count(step):
    # With 2 ranks, and 8 rows at once without dynamic batches, verl adds copies of the first row.
    fixed = ["actor_rollout_ref.actor.use_dynamic_bsz=False", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8"]
    episodes = random_episodes(random.Random(2), GROUPS, SIZE)
    run = step(episodes, "algorithm.gamma=0.9", *fixed)
    assert (len(run.of), len(run.batch)) == (12, 16)
    same(run.compute(), brute_force.expected("rebn", rewards_of(episodes), [0] * 12, 0.9))
    assert run.metrics["rollout/episodes"] == 12


def test_episodes_without_turns_do_not_count(step):
    episodes = random_episodes(random.Random(3), GROUPS, SIZE)
    for number in (0, 4, 5):
        without_turns(episodes[number])
        episodes[number].error = "RuntimeError: no such level"
    run = step(episodes, "algorithm.adv_estimator=rloo", "algorithm.gamma=0.9")
    rewards = rewards_of(episodes)
    kept = [number for number in range(12) if rewards[number]]
    got = run.compute()
    # Group 1 has a single episode left, which deviates by 0.
    left = [number for number in kept if number != 3]
    wanted = brute_force.expected("rloo", [rewards[n] for n in left], [episodes[n].task_id for n in left], 0.9)
    same([got[number] for number in left], wanted)
    assert got[3] == [0.0] * len(rewards[3])
    assert run.metrics["rollout/episodes"] == 12
    assert run.metrics["episode/turns"] == sum(map(len, rewards)) / 12


@pytest.mark.parametrize("name", [*ESTIMATORS, "gae"])
def test_batch_without_any_turn(step, name):
    episodes = random_episodes(random.Random(4), GROUPS, SIZE)
    for episode in episodes:
        without_turns(episode)
    run = step(episodes, f"algorithm.adv_estimator={name}")
    assert run.compute() == run.advantages("returns") == [[]] * 12
    assert (run.metrics["rollout/episodes"], run.metrics["rollout/turns"]) == (12.0, 0.0)


@pytest.mark.parametrize("name", ["rebn", "rebn_loo", "reinforce"])
def test_single_turn(step, name):
    episodes = random_episodes(random.Random(4), 1, 1)
    episodes[0].turns = episodes[0].turns[:1]
    reward = episodes[0].turns[0].reward
    got = step(episodes, f"algorithm.adv_estimator={name}").compute()
    assert got == [[pytest.approx(reward)]] if name == "reinforce" else got == [[0.0]]


def test_the_kl_penalty_counts_in_the_turn_of_its_tokens(step):
    episodes = random_episodes(random.Random(6), GROUPS, SIZE, breaks=0.2)
    flags = ["algorithm.use_kl_in_reward=True", "algorithm.kl_ctrl.kl_coef=0.3", "algorithm.adv_estimator=reinforce"]
    run = step(episodes, *flags, "algorithm.gamma=0.5")
    rewards = rewards_of(episodes)
    for key, number in run.of.items():
        row = run.queue.rows[key]
        difference = (row["old_log_probs"] - row["ref_log_prob"]).tolist()
        for turn, start, end in spans_of(row):
            rewards[number][turn] -= 0.3 * sum(difference[start:end])
    same(run.compute(), [brute_force.returns_to_go(one, 0.5) for one in rewards])


def test_rejected_tokens_get_nothing(step):
    # verl's rollout correction removes tokens from the mask before it computes advantages.
    episodes = random_episodes(random.Random(7), GROUPS, SIZE)
    flags = [
        "algorithm.rollout_correction.rollout_rs=token_k1",
        "algorithm.rollout_correction.rollout_rs_threshold=1.5",
    ]
    run = step(episodes, "algorithm.adv_estimator=reinforce", "algorithm.gamma=0.5", *flags)
    before = {key: run.queue.rows[key]["response_mask"] for key in run.of}
    run.batch = run.trainer._compute_advantage(run.batch, run.metrics)
    rejected = 0
    wanted = [brute_force.returns_to_go(one, 0.5) for one in rewards_of(episodes)]
    for key, number in run.of.items():
        row = run.queue.rows[key]
        for turn, start, end in spans_of(row):
            for at in range(start, end):
                kept = row["response_mask"][at].item()
                rejected += before[key][at].item() - kept
                assert row["advantages"][at].item() == pytest.approx(wanted[number][turn] * kept, abs=1e-5)
    assert 0 < rejected < sum(mask.sum().item() for mask in before.values())


def test_estimator_of_a_plugin(step):
    def first_of_all(batch, *, gamma=1.0, gather=None):
        return (batch.turn == 0) * 10.0 + batch.group_key

    manager.add("gem_advantages", AdvantageSpec("test:first", first_of_all))
    episodes = random_episodes(random.Random(9), GROUPS, SIZE)
    run = step(episodes, "algorithm.adv_estimator=test:first")
    got = run.compute()
    assert got == [[10.0 * (turn == 0) + one.task_id for turn in range(len(one.turns))] for one in episodes]


def test_wrong_estimator_of_a_plugin_stops_the_run(step):
    manager.add("gem_advantages", AdvantageSpec("test:nan", lambda batch, **_: np.full(len(batch), np.nan)))
    run = step(random_episodes(random.Random(9), GROUPS, SIZE), "algorithm.adv_estimator=test:nan")
    with pytest.raises(AdvantageError, match=r"test:nan.*not finite"):
        run.compute()


def test_verl_finds_the_estimator():
    assert core_algos.get_adv_estimator_fn(ESTIMATOR) is TURN_ESTIMATOR
    assert compute_advantage_for_multi_trajectories.__module__ == "verl.trainer.ppo.v1.utils"


def test_estimator_is_announced_once(step, capsys):
    run = step(random_episodes(random.Random(1), GROUPS, SIZE), "algorithm.gamma=0.9", "gem.row=turn")
    run.compute()
    run.trainer._compute_advantage(run.batch, {})
    said = [line for line in capsys.readouterr().out.splitlines() if " active: " in line]
    turns = sum(map(len, rewards_of(run.episodes)))
    assert len(said) == 1
    assert said[0].startswith(f"rebn active: {turns} turns from 12 episodes, return-to-go mean ")
    assert "gamma 0.9; a row is a turn; acting: " in said[0]
    assert "actor_rollout_ref.actor.clip_ratio=0.2" in said[0]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[TurnSpan]], int]:
    """Keys, spans and width of a batch with turns of any length at any position."""
    keys: list[str] = []
    spans: list[list[TurnSpan]] = []
    for episode in range(draw(st.integers(0, 4))):
        turn = row = 0
        while turn == 0 or draw(st.booleans()):
            own: list[TurnSpan] = []
            at = 0
            for _ in range(draw(st.integers(0 if turn else 1, 3))):
                at += draw(st.integers(0, 2))
                length = draw(st.integers(1, 3))
                own.append(TurnSpan(turn, at, at + length, 0.0, False))
                at += length
                turn += 1
            keys.append(f"task_with_underscore_{episode // 2}_{episode % 2}_{row}")
            spans.append(own)
            row += 1
    order = draw(st.permutations(range(len(keys))))
    width = max([1, *(span.end for own in spans for span in own)])
    return [keys[i] for i in order], [spans[i] for i in order], width


@effort(max_examples=150, deadline=None, derandomize=True)
@given(table=tables(), gamma=st.sampled_from([0.0, 0.5, 1.0]), noise=st.randoms(use_true_random=False))
def test_any_table(table, gamma, noise):
    keys, spans, width = table
    mask = torch.zeros(len(keys), width)
    rewards = torch.zeros(len(keys), width)
    by_episode: dict[str, dict[int, float]] = {}
    for row, (key, own) in enumerate(zip(keys, spans, strict=True)):
        for turn, start, end, *_ in own:
            mask[row, start:end] = 1
            # Anywhere in the turn, as with divergence.
            rewards[row, start:end] = torch.tensor([noise.uniform(-1, 1) for _ in range(end - start)])
            by_episode.setdefault(key.rpartition("_")[0], {})[turn] = rewards[row, start:end].sum().item()
    episodes = [key.rpartition("_")[0] for key in keys]
    tasks = [int(episode.split("_")[-2]) for episode in episodes]
    TURN_ESTIMATOR.expect(TurnTable.of(spans, episodes, tasks), "rebn", gamma=gamma, lam=1.0)
    advantages, returns = TURN_ESTIMATOR(token_level_rewards=rewards, response_mask=mask, index=None, config=None)
    assert advantages.shape == returns.shape == mask.shape
    assert not (advantages * (1 - mask)).any()
    played = [[one[turn] for turn in sorted(one)] for one in by_episode.values()]
    if not played:
        return
    wanted = dict(zip(by_episode, brute_force.expected("rebn", played, [0] * len(played), gamma), strict=True))
    for row, (key, own) in enumerate(zip(keys, spans, strict=True)):
        for turn, start, end, *_ in own:
            number = wanted[key.rpartition("_")[0]][turn]
            assert advantages[row, start:end].tolist() == pytest.approx([number] * (end - start), abs=1e-4)


def test_an_episode_with_several_rows_counts_once(step):
    episodes = random_episodes(random.Random(11), GROUPS, SIZE)
    run = step(episodes, "gem.row=turn")
    run.compute()
    assert len(run.of) > 12
    assert run.metrics["episode/success"] == sum(episode.success for episode in episodes) / 12
    assert run.metrics["episode/return"] == pytest.approx(sum(episode.total_reward for episode in episodes) / 12)
    for key, number in run.of.items():
        info = run.queue.rows[key]["extra_fields"]["reward_extra_info"]
        assert EpisodeResult.decode(info[RESULT]).summary == episodes[number].summary()
