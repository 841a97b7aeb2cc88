"""Matches in TRL's own loop: rows, ids and advantages of every agent."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from spy import Response, SpyTrainer, assert_same

from gem_core.episode import Episode
from gem_core.errors import AdapterError
from gem_support import pairs_match
from gem_support.brute_force import expected, returns_to_go
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model
from gem_train.records import open_records

pairs_match.register()

GAMMA = 0.9


def trained(run: SpyTrainer) -> list[Response]:
    """The responses in the loss. It divides by matches, and the spy by episodes."""
    agents = len(run.batches[0].episodes) / run.batches[0].matches
    return [one._replace(advantage=one.advantage / agents) for one in run.trained_responses()]


def wanted(run: SpyTrainer, numbers: Sequence[Sequence[Sequence[float]]]) -> list[Response]:
    return [
        Response(tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number)
        for batch, rows in zip(run.batches, numbers, strict=True)
        for episode, row in zip(batch.episodes, rows, strict=True)
        for turn, number in zip(episode.turns, row, strict=True)
    ]


def rewards_of(episodes: Sequence[Episode]) -> list[list[float]]:
    return [[turn.reward for turn in episode.turns] for episode in episodes]


@pytest.mark.parametrize("row", ["episode", "turn"])
def test_a_task_s_agents_are_compared_with_their_own_kind(bpe_trainer: Any, row: str) -> None:
    run = bpe_trainer(
        cls=SpyTrainer,
        env=pairs_match.ID,
        advantage="grpo",
        num_generations=4,
        row=row,
        max_steps=2,
        gamma=GAMMA,
        truncated_is_invalid=False,
    )
    run.train()
    assert any(turn.reward for batch in run.batches for episode in batch.episodes for turn in episode.turns)
    assert [(batch.matches, len(batch.episodes)) for batch in run.batches] == [(8, 16)] * 2
    assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)
    numbers = []
    for batch in run.batches:
        groups = [(episode.group_id, episode.agent) for episode in batch.episodes]
        assert len({*groups}) == 4, "two tasks, two agents"
        names = {name: number for number, name in enumerate(sorted({*groups}))}
        numbers.append(expected("grpo", rewards_of(batch.episodes), [names[one] for one in groups], GAMMA))
    assert_same(trained(run), wanted(run, numbers))


def test_every_role_has_a_baseline_that_lasts(bpe_trainer: Any) -> None:
    run = bpe_trainer(
        cls=SpyTrainer, env=pairs_match.ID, advantage="rae", max_steps=3, gamma=GAMMA, truncated_is_invalid=False
    )
    run.train()
    baselines: dict[str, float] = {}
    numbers = []
    for batch in run.batches:
        returns = [returns_to_go(rewards, GAMMA)[0] for rewards in rewards_of(batch.episodes)]
        for agent in ("first", "second"):
            own = [one for one, episode in zip(returns, batch.episodes, strict=True) if episode.agent == agent]
            mean = sum(own) / len(own)
            kept = 0.95 ** len(own)
            baselines[agent] = kept * baselines[agent] + (1 - kept) * mean if agent in baselines else mean
        numbers.append(
            [
                [one - baselines[episode.agent]] * len(episode.turns)
                for one, episode in zip(returns, batch.episodes, strict=True)
            ]
        )
    assert_same(trained(run), wanted(run, numbers))


def test_a_run_against_an_opponent_has_one_episode_per_match(bpe_trainer: Any) -> None:
    kwargs = {"opponents": {"second": "random"}}
    run = bpe_trainer(
        cls=SpyTrainer, env=pairs_match.ID, env_kwargs=kwargs, max_steps=2, gamma=GAMMA, truncated_is_invalid=False
    )
    run.train()
    assert {episode.agent for batch in run.batches for episode in batch.episodes} == {"first"}
    assert_same(run.trained_responses(), run.expected_responses("rebn", GAMMA))


def test_a_checkpoint_can_be_the_opponent(bpe_trainer: Any, tmp_path: Path) -> None:
    tokenizer = byte_level_bpe()
    for part in (tiny_model(tokenizer, seed=1), tokenizer):
        part.save_pretrained(tmp_path / "old")
    opponent = {"model": f"model:{tmp_path / 'old'}", "max_tokens": 3}
    kwargs = {"opponents": {"first": opponent}}
    run = bpe_trainer(
        cls=SpyTrainer, env=pairs_match.ID, env_kwargs=kwargs, max_steps=2, gamma=GAMMA, truncated_is_invalid=False
    )
    run.train()
    turns = [turn for batch in run.batches for episode in batch.episodes for turn in episode.turns]
    assert [len(turn.info["partner_replies"]) for turn in turns] == [2] * len(turns), (
        "before the only turn of `second`, and after"
    )
    assert len({answer for turn in turns for answer in turn.info["partner_replies"]}) > len(turns), (
        "sampled, not repeated"
    )
    assert {episode.agent for batch in run.batches for episode in batch.episodes} == {"second"}
    assert_same(run.trained_responses(), run.expected_responses("rebn", GAMMA))
    assert not [thread for thread in threading.enumerate() if thread.name == "gem-partner"]


def test_metrics_evaluation_and_records_know_agents(bpe_trainer: Any, tmp_path: Path) -> None:
    run = bpe_trainer(
        env=pairs_match.ID,
        max_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        eval_episodes=4,
        per_device_eval_batch_size=4,
        record="full",
        record_folder=str(tmp_path / "records"),
    )
    run.train()
    names = {name for line in run.state.log_history for name in line}
    assert any("agent/second/return" in name for name in names), names
    records = open_records(tmp_path / "records")
    found = [records.episode(number) for number, one in enumerate(records.summaries) if one.split == "train"]
    assert len(found) == 32
    for one in found:
        assert one.summary.summary.agent == one.episode.agent != ""
        assert one.trained is not None
        assert len(one.trained.advantages) == len(one.episode.turns)
        assert None not in one.trained.advantages


def test_settings_that_count_rows_are_refused(bpe_trainer: Any) -> None:
    run = bpe_trainer(env=pairs_match.ID, log_completions=True)
    with pytest.raises(AdapterError, match="a match has a row for each agent"):
        run.train()
