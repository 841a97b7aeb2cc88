"""Episodes as verl's rows: every sampled id once, every reward on its turn, and a result that is never lost."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from without_ray import MemoryQueue, hand_over

from gem_core.episode import as_token_ids
from gem_support.hand_made import Said, hand_made, random_episodes
from gem_train.results import EpisodeResult
from gem_train.rollout import Conversation, Episode, EpisodeSummary, RolloutSettings, StopReason
from gem_train.rows import TurnSpan
from gem_verl._rows import RESULT, TURNS, episode_rows, report_row

VERSIONS = {"min_global_steps": 3, "max_global_steps": 4}


def episode(*turns: Said) -> Episode:
    return hand_made(*turns, env_id="test:Babble-v0", seed=7, task_id=5, success=True)


def rows(played: Episode, kind: Any = "episode") -> list[AgentLoopOutput]:
    return episode_rows([played], kind, VERSIONS, AgentLoopMetrics(generate_sequences=1.5))


def spans(fields: dict[str, Any]) -> list[tuple[int, int, int]]:
    """The turns of a row: position in the episode, and where it is in the response."""
    first = len(fields["prompts"])
    turns = [TurnSpan(*turn) for turn in fields["extra_fields"][TURNS]]
    return [(turn.position, turn.start - first, turn.end - first) for turn in turns]


TURNS_OF_THREE = [
    Said([1, 2], [3, 4], 0.5, [-0.1, -0.2]),
    Said([1, 2, 3, 4, 5, 6], [7], -1.0, [-0.3]),  # two tokens between, a response of one
    Said([1, 2, 3, 4, 5, 6, 7], [8, 9, 10], 2.0, [-0.4, -0.5, -0.6]),  # no tokens between
]
THREE = episode(*TURNS_OF_THREE)


def test_an_episode_is_one_row():
    (row,) = rows(THREE)
    fields = row.as_dict()
    assert fields["prompts"].tolist() == [1, 2]
    assert fields["responses"].tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert fields["response_mask"].tolist() == [1, 1, 0, 0, 1, 1, 1, 1]
    assert fields["rm_scores"].tolist() == [0.0, 0.5, 0.0, 0.0, -1.0, 0.0, 0.0, 2.0]
    assert fields["rollout_log_probs"].tolist() == pytest.approx([-0.1, -0.2, 0.0, 0.0, -0.3, -0.4, -0.5, -0.6])
    assert spans(fields) == [(0, 0, 2), (1, 4, 5), (2, 5, 8)]
    assert fields["num_turns"] == 3
    assert {name: fields["extra_fields"][name] for name in VERSIONS} == VERSIONS
    assert fields["metrics"]["generate_sequences"] == 1.5


def test_a_turn_is_a_row():
    found = [row.as_dict() for row in rows(THREE, "turn")]
    assert [row["prompts"].tolist() for row in found] == [THREE.prompt_ids(one).tolist() for one in THREE.turns]
    assert [row["responses"].tolist() for row in found] == [THREE.response_ids(one).tolist() for one in THREE.turns]
    assert [row["response_mask"].tolist() for row in found] == [[1, 1], [1], [1, 1, 1]]
    assert [row["rm_scores"].tolist() for row in found] == [[0.0, 0.5], [-1.0], [0.0, 0.0, 2.0]]
    assert [*map(spans, found)] == [[(0, 0, 2)], [(1, 0, 1)], [(2, 0, 3)]]


def test_a_prompt_that_does_not_continue_starts_another_row():
    played = episode(Said([1], [2], 1.0), Said([1, 2, 3], [4], 2.0), Said([9], [5], 3.0), Said([9, 5], [6], 4.0))
    found = [row.as_dict() for row in rows(played)]
    assert [row["prompts"].tolist() for row in found] == [[1], [9]]
    assert [row["responses"].tolist() for row in found] == [[2, 3, 4], [5, 6]]
    assert [*map(spans, found)] == [[(0, 0, 1), (1, 2, 3)], [(2, 0, 1), (3, 1, 2)]]
    assert [row["rm_scores"].tolist() for row in found] == [[1.0, 0.0, 2.0], [3.0, 4.0]]


def test_without_log_probabilities_there_is_no_such_column():
    played = episode(Said([1], [2], 1.0, [-0.1]), Said([1, 2], [3], 1.0))
    assert "rollout_log_probs" not in rows(played)[0].as_dict()
    assert ["rollout_log_probs" in row.as_dict() for row in rows(played, "turn")] == [True, False]


@effort(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), breaks=st.sampled_from([0.0, 0.4]), kind=st.sampled_from(["episode", "turn"]))
def test_nothing_is_lost_or_invented(seed, breaks, kind):
    (played,) = random_episodes(random.Random(seed), 1, 1, breaks=breaks)
    sampled: list[tuple[int, list[int], list[int], list[float]]] = []
    total = 0.0
    for row in rows(played, kind):
        fields = row.as_dict()
        ids = [*fields["prompts"].tolist(), *fields["responses"].tolist()]
        first = len(fields["prompts"])
        covered = [at for _, start, end in spans(fields) for at in range(start, end)]
        assert covered == [at for at, one in enumerate(fields["response_mask"].tolist()) if one]
        assert fields["rm_scores"].shape == fields["responses"].shape == fields["rollout_log_probs"].shape
        total += fields["rm_scores"].sum().item()
        for number, start, end in spans(fields):
            logprobs = fields["rollout_log_probs"][start:end].tolist()
            sampled.append((number, ids[: first + start], ids[first + start : first + end], logprobs))
            assert fields["rm_scores"][start:end].sum().item() == pytest.approx(played.turns[number].reward)
            assert fields["rm_scores"][end - 1].item() == pytest.approx(played.turns[number].reward)
    assert [(number, before, ids) for number, before, ids, _ in sampled] == [
        (number, played.prompt_ids(one).tolist(), played.response_ids(one).tolist())
        for number, one in enumerate(played.turns)
    ]
    for (_, _, _, logprobs), one in zip(sampled, played.turns, strict=True):
        assert logprobs == list(played.response_logprobs(one) or [])
    assert total == pytest.approx(played.total_reward, abs=1e-5)


def test_ids_that_no_encoding_produces(bpe):
    """A byte-level BPE decodes random ids to text that encodes to other ids; rows have the sampled ones."""
    rng = random.Random(0)
    settings = RolloutSettings(max_response_tokens=6)
    drifted = 0
    for _ in range(20):
        conversation = Conversation(settings.template(bpe), None)
        turns: list[Said] = []
        for number in range(3):
            conversation.observe(f"look {number}", {})
            prompt = conversation.prompt().tolist()
            response = [rng.randrange(3, len(bpe)) for _ in range(rng.randint(1, 6))]
            text = conversation.respond(as_token_ids(response), None)
            drifted += bpe.encode(text, add_special_tokens=False) != response
            turns.append(Said(prompt, response, float(number)))
        (row,) = rows(episode(*turns))
        ids = row.prompt_ids + row.response_ids
        for one, (_, start, end, *_) in zip(turns, row.extra_fields[TURNS], strict=True):
            assert ids[start:end] == one.response
            assert ids[:start] == one.prompt
    assert drifted > 40


def test_a_report_row_trains_nothing_and_has_the_columns_of_the_others():
    # TransferQueue drops a column that one of the rows lacks, and verl then misses it.
    told = report_row(EpisodeResult(episode().summary()), VERSIONS).as_dict()
    played = rows(THREE)[0].as_dict()
    assert told.keys() == played.keys()
    assert told["extra_fields"].keys() == played["extra_fields"].keys()
    for name in ("response_mask", "rm_scores", "rollout_log_probs"):
        assert told[name].tolist() == [0.0]
        assert told[name].dtype == played[name].dtype
    assert told["extra_fields"][TURNS] == []


def test_every_row_has_the_numbers_that_verl_may_filter_groups_by():
    def numbers(result: EpisodeResult) -> tuple[float, float]:
        info = report_row(result, VERSIONS).extra_fields["reward_extra_info"]
        return info["acc"], info["return"]

    assert numbers(EpisodeResult(episode().summary())) == (1.0, 0.0)
    assert numbers(EpisodeResult()) == (0.0, 0.0)
    # A group of only such rows would be removed for having no differences, and the error would be lost.
    assert all(map(math.isnan, numbers(EpisodeResult(fatal="no"))))


def test_fields_that_verl_reads():
    info = rows(THREE)[0].extra_fields["reward_extra_info"]
    assert (info["acc"], info["return"]) == (1.0, 1.5)
    assert isinstance(info[RESULT], str), "verl makes no metric of a text"
    assert EpisodeResult.decode(info[RESULT]).summary == THREE.summary()


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_verl_stores_rows_unchanged(kind, monkeypatch):
    queue = MemoryQueue().install(monkeypatch)
    played = episode(*TURNS_OF_THREE, Said([50], [51], 0.25, [-0.7]))
    made = rows(played, kind)
    wanted = [copy.deepcopy(row).as_dict() for row in made]
    keys = hand_over(queue, made, "some_task", 2, data_source="test:Babble-v0")
    assert keys == [f"some_task_2_{number}" for number in range(len(made))]
    for key, want in zip(keys, wanted, strict=True):
        got = queue.rows[key]
        for name in ("prompts", "responses", "response_mask", "rm_scores", "rollout_log_probs"):
            assert torch.equal(got[name], want[name]), name
        assert torch.equal(got["loss_mask"], want["response_mask"])
        assert got["extra_fields"] == want["extra_fields"], "verl does not mix rows up"
        assert got["num_turns"] == 4
        assert queue.tags[key]["min_global_steps"] == 3
        assert queue.tags[key]["seq_len"] == len(want["prompts"]) + len(want["responses"])


def test_rows_go_through_pickle():
    row = rows(THREE)[0]
    again = pickle.loads(pickle.dumps(row.as_dict()))
    assert again["extra_fields"] == row.as_dict()["extra_fields"]


TEXTS = ["", "plain", 'quotes " and \\ and\nlines', "\x00", "日本", "\ud83d", "file \udcff gone"]


@pytest.mark.parametrize("text", TEXTS)
def test_results_survive_any_text(text):
    summary = EpisodeSummary(text, 2**63 - 1, 1 << 39, StopReason.ENV_ERROR, False, text, 1, 0.5, 4, 0, 1)
    for result in (EpisodeResult(summary), EpisodeResult(fatal=text), EpisodeResult()):
        assert result.encode().isascii(), "verl may write it to a file"
        assert EpisodeResult.decode(result.encode()) == result


@pytest.mark.parametrize("reward", [1e-300, -1e250, 1 / 3, math.inf, -math.inf])
def test_results_keep_rewards_exactly(reward):
    summary = EpisodeSummary("a", 1, 1, StopReason.TERMINATED, True, None, 2, reward, 1, 0, 0)
    assert EpisodeResult.decode(EpisodeResult(summary).encode()).summary == summary


def test_results_keep_nan():
    summary = EpisodeSummary("a", 1, 1, StopReason.TERMINATED, True, None, 1, math.nan, 1, 0, 0)
    again = EpisodeResult.decode(EpisodeResult(summary).encode()).summary
    assert again is not None
    assert math.isnan(again.total_reward)


def test_a_truncated_response_is_counted():
    played = episode(Said([1], [2], 1.0))
    played.turns[0].truncated = True
    summary = EpisodeResult.decode(rows(played)[0].extra_fields["reward_extra_info"][RESULT]).summary
    assert summary is not None
    assert (summary.truncated, summary.response_tokens) == (1, 1)
