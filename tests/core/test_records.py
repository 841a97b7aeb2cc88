"""Records of a run: what was played and trained on comes back, and what is missing is said."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gem_core.episode import Episode, Run, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_core.records import RecordsError, RunRecorder, Update, open_records, read_episodes
from gem_core.records.columns import packed_ids, packed_numbers, unpacked_ids, unpacked_numbers
from gem_core.records.frames import FrameWriter, read_frames
from gem_core.rollout import Recorder

SAMPLED = (3, 2, 4)


class Words:
    """Texts of token ids; id 7 is half of a character."""

    def decode(self, token_ids: Any, /, **_: Any) -> str:
        return "".join("\ud83d" if one == 7 else f"<{one}>" for one in token_ids)


def episode(number: int = 0, *, task: int = 5) -> Episode:
    """Three turns in two sequences."""
    chance = random.Random(number)
    first, second = (TokenSequence.starting(as_token_ids([1, 2, number + 3])) for _ in range(2))
    turns: list[Turn] = []
    for position, (tokens, sequence) in enumerate(zip(SAMPLED, (first, first, second), strict=True)):
        start = len(sequence.ids)
        ids = as_token_ids(chance.choices(range(4, 90), k=tokens))
        sequence.add_response(ids, as_logprobs([-chance.expovariate(2) for _ in range(tokens)]))
        if position == 0:
            sequence.add_prompt(as_token_ids([7, 8]))
        place = (int(sequence is second), start, start + tokens)
        said = f"said {position}"
        turns.append(Turn(*place, f"seen {position}", said, said, False, position / 4, {"a": [position]}))
    return Episode(
        "demo:A-v0",
        11,
        slot=3,
        number=number,
        group=task,
        turns=turns,
        sequences=[first, second],
        stop_reason=StopReason.TERMINATED,
        success=True,
        final_observation="the end",
        provenance="demo 1.0",
        run="run",
    )


def update(number: int, episodes: list[Episode], **changes: Any) -> Update:
    """An update of all turns of these episodes, in another order."""
    pairs = [(index, position) for index, one in enumerate(episodes) for position in range(len(one.turns))]
    random.Random(number).shuffle(pairs)
    sizes = [SAMPLED[position] for _, position in pairs]
    fields: dict[str, Any] = {
        "number": number,
        "episodes": [one.id for one in episodes],
        "episode": np.array([index for index, _ in pairs]),
        "position": np.array([position for _, position in pairs]),
        "advantage": np.array([index * 10 + position + 0.1 for index, position in pairs]),
        "return_to_go": np.array([index * 100 + position + 0.2 for index, position in pairs]),
        "logprobs": [
            np.full(size, -index - position / 8) for size, (index, position) in zip(sizes, pairs, strict=True)
        ],
    }
    return Update(**(fields | changes))


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[RunRecorder]:
    settings = {"gamma": 0.9, "odd": object}
    made = RunRecorder(tmp_path, settings=settings, versions={"demo": "1.0"}, tokenizer=Words())
    made.gem_rollout_start(Run("run", ["demo:A-v0"], {}, {}, "train"))
    yield made
    made.close()


def test_what_was_played_and_trained_on_comes_back(recorder: RunRecorder, tmp_path: Path) -> None:
    episodes = [episode(number) for number in range(3)]
    for one in episodes:
        recorder.gem_episode_end(one)
    recorder.gem_update(update(4, episodes[:2]))
    records = open_records(tmp_path)
    assert (records.kind, records.gaps, records.versions) == ("training", [], {"demo": "1.0"})
    assert (records.settings["gamma"], records.settings["odd"]) == (0.9, "<class 'object'>")
    assert [(one.id, one.split, one.update, one.task) for one in records.summaries] == [
        ("run-3-0", "train", 4, None),
        ("run-3-1", "train", 4, None),
        ("run-3-2", "train", None, None),
    ]
    assert [one.summary for one in records.summaries] == [one.summary() for one in episodes]
    for index, (found, played) in enumerate(zip(read_episodes(tmp_path), episodes, strict=True)):
        assert_same(found.episode, played)
        assert (found.trained is None) == (index == 2)
        if found.trained is not None:
            assert found.trained.advantages == [index * 10 + position + 0.1 for position in range(3)]
            assert found.trained.returns == [index * 100 + position + 0.2 for position in range(3)]
            expected = [as_logprobs([-index - at / 8]) * size for at, size in enumerate(SAMPLED)]
            assert found.trained.logprobs == expected
            assert found.trained.entropies == [None] * 3


def assert_same(found: Episode, played: Episode) -> None:
    plain = [msgspec.structs.replace(one, sequences=[]) for one in (found, played)]
    assert plain[0] == plain[1]
    assert [one.ids for one in found.sequences] == [one.ids for one in played.sequences]
    for one, other in zip(found.sequences, played.sequences, strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=1e-6)


def test_every_token_has_its_text_once(recorder: RunRecorder, tmp_path: Path) -> None:
    for number in range(3):
        recorder.gem_episode_end(episode(number))
    texts = open_records(tmp_path).texts
    assert {*texts} == {one for number in range(3) for part in episode(number).sequences for one in part.ids}
    assert texts[1] == "<1>"
    assert texts[7] == "\\ud83d"
    written = [msgspec.msgpack.decode(body(recorder.path, one))["ids"] for one in frames(recorder.path, "texts")]
    assert sum(map(len, written)) == len(texts)


def frames(path: Path, kind: str) -> list[Any]:
    return [one for one in read_frames(path) if one.head["kind"] == kind]


def body(path: Path, frame: Any) -> bytes:
    return path.read_bytes()[frame.start : frame.start + frame.size]


def test_a_summary_has_numbers_only(tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path, detail="summary", tokenizer=Words())
    played = episode()
    recorder.gem_episode_end(played)
    recorder.gem_update(update(1, [played]))
    (found,) = read_episodes(tmp_path)
    assert found.summary.summary == played.summary()
    assert [one.reward for one in found.episode.turns] == [0, 0.25, 0.5]
    assert (found.episode.sequences, found.episode.turns[0].observation, found.episode.turns[0].info) == ([], "", {})
    assert found.trained is not None
    assert found.trained.advantages == [0.1, 1.1, 2.1]
    assert found.trained.logprobs == [None] * 3
    assert b"said" not in recorder.path.read_bytes()


def test_a_share_has_whole_tasks_and_the_same_ones_in_each_process(tmp_path: Path) -> None:
    names = ("one", "two")
    for name in names:
        recorder = RunRecorder(tmp_path / name, share=0.25)
        for number in range(400):
            recorder.gem_episode_end(episode(number, task=number // 2))
        recorder.gem_update(update(1, [episode(number) for number in range(400)]))
    tasks, others = ([one.summary.group for one in open_records(tmp_path / name).summaries] for name in names)
    assert tasks == others
    assert all(tasks.count(one) == 2 for one in tasks)
    assert 60 <= len(tasks) <= 140
    assert open_records(tmp_path / "one").gaps == []


def test_a_killed_writer_leaves_what_it_wrote(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_records import RunRecorder, episode
recorder = RunRecorder({str(tmp_path)!r})
recorder.gem_episode_end(episode())
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120)
    assert done.returncode == -9
    assert [one.episode.number for one in read_episodes(tmp_path)] == [0]


def test_a_file_that_was_cut_anywhere_is_read_up_to_there(recorder: RunRecorder, tmp_path: Path) -> None:
    for number in range(2):
        recorder.gem_episode_end(episode(number))
    whole = recorder.path.read_bytes()
    ends = [one.start + one.size for one in read_frames(recorder.path)]
    cut = tmp_path / "cut" / "a.gem"
    cut.parent.mkdir()
    for size in [*range(0, len(whole), 7), *ends]:
        cut.write_bytes(whole[:size])
        records = open_records(cut)
        assert len(records.summaries) == sum(
            one.start + one.size <= size for one in read_frames(recorder.path) if one.head["kind"] == "episode"
        )
        complete = size in ends
        assert bool(records.gaps) != complete
        assert len([*read_episodes(cut)]) == len(records.summaries)


def test_a_damaged_record_ends_the_file(recorder: RunRecorder) -> None:
    for number in range(3):
        recorder.gem_episode_end(episode(number))
    damaged = bytearray(recorder.path.read_bytes())
    second = frames(recorder.path, "episode")[1]
    damaged[second.start] ^= 1
    recorder.path.write_bytes(damaged)
    records = open_records(recorder.path)
    assert [one.id for one in records.summaries] == ["run-3-0"]
    assert records.gaps == [f"{recorder.path.name} ends within a record: its writer was killed, or is still writing."]


def test_following_a_run(recorder: RunRecorder, tmp_path: Path) -> None:
    records = open_records(tmp_path)
    assert records.summaries == []
    assert not records.refresh()
    recorder.gem_episode_end(episode())
    assert records.refresh()
    assert [one.update for one in records.summaries] == [None]
    other = RunRecorder(tmp_path)  # the trainer's process
    other.gem_update(update(1, [episode()]))
    assert records.refresh()
    assert [one.update for one in records.summaries] == [1]
    assert not records.refresh()


def test_missing_ranks_and_episodes_are_said(tmp_path: Path) -> None:
    player, trainer = RunRecorder(tmp_path), RunRecorder(tmp_path)
    player.gem_episode_end(episode(0))
    trainer.gem_update(update(3, [episode(0), episode(1)], ranks=2))
    assert open_records(tmp_path).gaps == [
        "1 of 2 training processes left no record of update 3.",
        "Update 3 trained on episodes that are in no file: 1.",
    ]


def test_a_full_disk_costs_records_and_no_run(recorder: RunRecorder, monkeypatch: Any, caplog: Any) -> None:
    recorder.gem_episode_end(episode(0))
    append = FrameWriter.write

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FrameWriter, "write", full)
    recorder.gem_episode_end(episode(1))
    recorder.gem_episode_end(episode(2))
    monkeypatch.setattr(FrameWriter, "write", append)
    recorder.gem_episode_end(episode(3))
    records = open_records(recorder.path)
    assert [one.id for one in records.summaries] == ["run-3-0", "run-3-3"]
    assert len(caplog.records) == 1
    (gap,) = records.gaps
    assert gap.startswith(f"{recorder.path.name} lacks ")


def test_json_lines_are_read_alike(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "episodes.jsonl")
    recorder.gem_episode_end(episode(0))
    records = open_records(tmp_path)
    recorder.gem_episode_end(episode(1))
    assert records.refresh()
    assert (records.kind, len(records.summaries)) == ("episodes", 2)
    assert_same(records.episode(1).episode, episode(1))
    recorder.close()


def test_recordings_of_0_1_0_are_read() -> None:
    assert len([*read_episodes(Path(__file__).parent / "recording_0_1_0.jsonl")]) == 3


def test_what_has_no_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="there is no file or folder"):
        open_records(tmp_path / "nothing")
    with pytest.raises(RecordsError, match=r"has no records: neither a file \*\.gem"):
        open_records(tmp_path)
    (tmp_path / "a.gem").write_bytes(b"something else")
    with pytest.raises(RecordsError, match="does not start with"):
        open_records(tmp_path)


def test_metrics_of_the_report_are_read(recorder: RunRecorder, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 2, "a": NaN}\n{"step": 1, "a": 1}\n{"step": 3, "a"')
    recorder.gem_episode_end(episode())
    first, second = open_records(tmp_path).metrics
    assert first == {"step": 1, "a": 1}
    assert np.isnan(second["a"])


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_columns(count: int) -> None:
    chance = np.random.default_rng(count)
    ids = chance.integers(0, 2**31 - 1, count)
    assert unpacked_ids(packed_ids(ids)).tolist() == ids.tolist()
    numbers = -chance.exponential(2.0, count)
    np.testing.assert_allclose(unpacked_numbers(packed_numbers(numbers)), numbers, rtol=1e-7, atol=5.1e-7)


def test_numbers_that_are_none() -> None:
    odd = [float("nan"), float("-inf"), float("inf"), 0.0, 1e9, -1e9]
    found = unpacked_numbers(packed_numbers(odd)).tolist()
    assert str(found[:4]) == "[nan, -inf, inf, 0.0]"
    assert found[4] == pytest.approx(2147.48, abs=0.01)
    assert found[5] == pytest.approx(-2147.48, abs=0.01)
