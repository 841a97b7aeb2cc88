"""Episodes as verl's rows: every sampled id once, every reward on its turn, and a note that survives anything."""

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
from without_ray import MemoryQueue, hand_over, random_episodes

from gem_core.rollout import Completion, Conversation, Episode, EpisodeSummary, RolloutSettings, StopReason, Turn
from gem_verl.rows import NOTE, TURNS, Note, TurnSpan, episode_rows, report_row

VERSIONS = {"min_global_steps": 3, "max_global_steps": 4}


def turn(prompt: list[int], response: list[int], reward: float, logprobs: list[float] | None = None) -> Turn:
    return Turn("", prompt, response, logprobs, "", "", False, reward)


def episode(*turns: Turn) -> Episode:
    return Episode("test:Babble-v0", 7, group=5, turns=[*turns], stop_reason=StopReason.TERMINATED, success=True)


def rows(played: Episode, view: Any = "episode") -> list[AgentLoopOutput]:
    return episode_rows(played, view, VERSIONS, AgentLoopMetrics(generate_sequences=1.5))


THREE = episode(
    turn([1, 2], [3, 4], 0.5, [-0.1, -0.2]),
    turn([1, 2, 3, 4, 5, 6], [7], -1.0, [-0.3]),  # glue of two tokens, a response of one
    turn([1, 2, 3, 4, 5, 6, 7], [8, 9, 10], 2.0, [-0.4, -0.5, -0.6]),  # no glue at all
)


def test_an_episode_is_one_row():
    (row,) = rows(THREE)
    fields = row.as_dict()
    assert fields["prompts"].tolist() == [1, 2]
    assert fields["responses"].tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert fields["response_mask"].tolist() == [1, 1, 0, 0, 1, 1, 1, 1]
    assert fields["rm_scores"].tolist() == [0.0, 0.5, 0.0, 0.0, -1.0, 0.0, 0.0, 2.0]
    assert fields["rollout_log_probs"].tolist() == pytest.approx([-0.1, -0.2, 0.0, 0.0, -0.3, -0.4, -0.5, -0.6])
    assert fields["extra_fields"][TURNS] == [(0, 0, 2), (1, 4, 5), (2, 5, 8)]
    assert fields["num_turns"] == 3
    assert {name: fields["extra_fields"][name] for name in VERSIONS} == VERSIONS
    assert fields["metrics"]["generate_sequences"] == 1.5


def test_a_turn_is_a_row():
    found = [row.as_dict() for row in rows(THREE, "turn")]
    assert [row["prompts"].tolist() for row in found] == [one.prompt_ids for one in THREE.turns]
    assert [row["responses"].tolist() for row in found] == [one.response_ids for one in THREE.turns]
    assert [row["response_mask"].tolist() for row in found] == [[1, 1], [1], [1, 1, 1]]
    assert [row["rm_scores"].tolist() for row in found] == [[0.0, 0.5], [-1.0], [0.0, 0.0, 2.0]]
    assert [row["extra_fields"][TURNS] for row in found] == [[(0, 0, 2)], [(1, 0, 1)], [(2, 0, 3)]]


def test_a_broken_prefix_begins_another_row():
    played = episode(turn([1], [2], 1.0), turn([1, 2, 3], [4], 2.0), turn([9], [5], 3.0), turn([9, 5], [6], 4.0))
    found = [row.as_dict() for row in rows(played)]
    assert [row["prompts"].tolist() for row in found] == [[1], [9]]
    assert [row["responses"].tolist() for row in found] == [[2, 3, 4], [5, 6]]
    assert [row["extra_fields"][TURNS] for row in found] == [[(0, 0, 1), (1, 2, 3)], [(2, 0, 1), (3, 1, 2)]]
    assert [row["rm_scores"].tolist() for row in found] == [[1.0, 0.0, 2.0], [3.0, 4.0]]


def test_without_log_probabilities_there_is_no_such_column():
    played = episode(turn([1], [2], 1.0, [-0.1]), turn([1, 2], [3], 1.0))
    assert "rollout_log_probs" not in rows(played)[0].as_dict()
    assert ["rollout_log_probs" in row.as_dict() for row in rows(played, "turn")] == [True, False]


@effort(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), breaks=st.sampled_from([0.0, 0.4]), view=st.sampled_from(["episode", "turn"]))
def test_nothing_is_lost_or_invented(seed, breaks, view):
    (played,) = random_episodes(random.Random(seed), 1, 1, breaks=breaks)
    sampled: list[tuple[int, list[int], list[int], list[float]]] = []
    total = 0.0
    for row in rows(played, view):
        fields = row.as_dict()
        ids = [*fields["prompts"].tolist(), *fields["responses"].tolist()]
        first = len(fields["prompts"])
        spans = [TurnSpan(*span) for span in fields["extra_fields"][TURNS]]
        covered = [at for span in spans for at in range(span.start, span.end)]
        assert covered == [at for at, one in enumerate(fields["response_mask"].tolist()) if one]
        assert fields["rm_scores"].shape == fields["responses"].shape == fields["rollout_log_probs"].shape
        total += fields["rm_scores"].sum().item()
        for number, start, end in spans:
            logprobs = fields["rollout_log_probs"][start:end].tolist()
            sampled.append((number, ids[: first + start], ids[first + start : first + end], logprobs))
            assert fields["rm_scores"][start:end].sum().item() == pytest.approx(played.turns[number].reward)
            assert fields["rm_scores"][end - 1].item() == pytest.approx(played.turns[number].reward)
    assert [(number, before, ids) for number, before, ids, _ in sampled] == [
        (number, one.prompt_ids, one.response_ids) for number, one in enumerate(played.turns)
    ]
    for (_, _, _, logprobs), one in zip(sampled, played.turns, strict=True):
        assert logprobs == pytest.approx(one.logprobs)
    assert total == pytest.approx(played.total_reward, abs=1e-5)


def test_ids_that_no_encoding_gives(bpe):
    """A byte-level BPE decodes random ids to text that encodes to other ids; rows have the sampled ones."""
    rng = random.Random(0)
    settings = RolloutSettings(max_response_tokens=6)
    drifted = 0
    for _ in range(20):
        conversation = Conversation(settings.template(bpe), None)
        turns: list[Turn] = []
        for number in range(3):
            conversation.observe(f"look {number}", {})
            prompt = conversation.prompt()
            response = [rng.randrange(3, len(bpe)) for _ in range(rng.randint(1, 6))]
            text = conversation.respond(response)
            drifted += bpe.encode(text, add_special_tokens=False) != response
            turns.append(turn([*prompt], response, float(number)))
        (row,) = rows(episode(*turns))
        ids = row.prompt_ids + row.response_ids
        for one, (_, start, end) in zip(turns, row.extra_fields[TURNS], strict=True):
            first = len(row.prompt_ids)
            assert ids[first + start : first + end] == one.response_ids
            assert ids[: first + start] == one.prompt_ids
    assert drifted > 40


def test_a_report_row_trains_nothing_and_has_the_columns_of_the_others():
    # TransferQueue leaves out a column that one of the rows does not have, and verl then misses it.
    told = report_row(Note(episode().summary()), VERSIONS).as_dict()
    played = rows(THREE)[0].as_dict()
    assert told.keys() == played.keys()
    assert told["extra_fields"].keys() == played["extra_fields"].keys()
    for name in ("response_mask", "rm_scores", "rollout_log_probs"):
        assert told[name].tolist() == [0.0]
        assert told[name].dtype == played[name].dtype
    assert told["extra_fields"][TURNS] == []


def test_every_row_has_the_numbers_that_verl_may_filter_groups_by():
    def numbers(note: Note) -> tuple[float, float]:
        info = report_row(note, VERSIONS).extra_fields["reward_extra_info"]
        return info["acc"], info["return"]

    assert numbers(Note(episode().summary())) == (1.0, 0.0)
    assert numbers(Note(dropped=True)) == (0.0, 0.0)
    # A group of nothing but these would be taken out for having no differences, and nobody would hear of the error.
    assert all(map(math.isnan, numbers(Note(fatal="no"))))


def test_what_verl_reads_of_an_episode():
    info = rows(THREE)[0].extra_fields["reward_extra_info"]
    assert (info["acc"], info["return"]) == (1.0, 1.5)
    assert isinstance(info[NOTE], str), "verl makes no metric of a text"
    assert Note.decode(info[NOTE]).episode == THREE.summary()


@pytest.mark.parametrize("view", ["episode", "turn"])
def test_verl_stores_them_as_they_are(view, monkeypatch):
    queue = MemoryQueue().install(monkeypatch)
    played = episode(*THREE.turns, turn([50], [51], 0.25, [-0.7]))
    made = rows(played, view)
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
def test_notes_survive_any_text(text):
    summary = EpisodeSummary(text, 2**63 - 1, 1 << 39, StopReason.ENV_ERROR, False, text, 1, 0.5, 4, 0, 1)
    for note in (Note(summary), Note(fatal=text), Note(summary, dropped=True), Note()):
        assert note.encode().isascii(), "verl may write it to a file"
        assert Note.decode(note.encode()) == note


@pytest.mark.parametrize("reward", [1e-300, -1e250, 1 / 3, math.inf, -math.inf])
def test_notes_keep_rewards_exactly(reward):
    summary = EpisodeSummary("a", 1, 1, StopReason.TERMINATED, True, None, 2, reward, 1, 0, 0)
    assert Note.decode(Note(summary).encode()).episode == summary


def test_notes_keep_what_is_no_number():
    summary = EpisodeSummary("a", 1, 1, StopReason.TERMINATED, True, None, 1, math.nan, 1, 0, 0)
    again = Note.decode(Note(summary).encode()).episode
    assert again is not None
    assert math.isnan(again.total_reward)


def test_truncated_completion_is_what_the_summary_counts():
    assert Completion([1], None, True).truncated
    played = episode(turn([1], [2], 1.0))
    played.turns[0].truncated = True
    note = Note.decode(rows(played)[0].extra_fields["reward_extra_info"][NOTE])
    assert note.episode is not None
    assert (note.episode.truncated, note.episode.response_tokens) == (1, 1)
