"""Records of a run: what was played and trained on comes back, and what is missing is said."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import record_mutations

from gem_core.episode import Episode, Run, Source, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_train.records import Records, RecordsError, RunRecorder, Update, open_records, read_episodes
from gem_train.records._columns import packed_ids, packed_numbers, unpacked_ids, unpacked_numbers
from gem_train.records._frames import FrameReader, FrameWriter
from gem_train.rollout import Recorder

SAMPLED = (3, 2, 4)
RUN = Run("run", ["demo:A-v0"], {}, {}, "train")


class Words:
    """Texts of token ids; id 7 is half of a character."""

    def decode(self, token_ids: Any, /, **_: Any) -> str:
        return "".join("\ud83d" if one == 7 else f"<{one}>" for one in token_ids)


def episode(number: int = 0, *, task_id: int = 5) -> Episode:
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
        task_id=task_id,
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
        "task_id": np.array([episodes[index].task_id for index, _ in pairs]),
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
    made.gem_rollout_start(RUN)
    yield made
    made.close()


def test_what_was_played_and_trained_on_comes_back(recorder: RunRecorder, tmp_path: Path) -> None:
    episodes = [episode(number) for number in range(3)]
    for one in episodes:
        recorder.gem_episode_end(one)
    recorder.gem_update(update(4, episodes[:2]))
    recorder.gem_rollout_end(RUN, None)
    records = open_records(tmp_path)
    assert (records.kind, records.gaps, records.versions) == ("training", [], {"demo": "1.0"})
    assert (records.settings["gamma"], records.settings["odd"]) == (0.9, "<class 'object'>")
    assert [(one.id, one.split, one.update, one.data_index) for one in records.summaries] == [
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


def all_frames(path: Path) -> list[Any]:
    return [*FrameReader(path).frames()]


def head(frame: Any) -> dict[str, Any]:
    return msgspec.msgpack.decode(frame.head, type=dict[str, Any])


def frames(path: Path, kind: str) -> list[Any]:
    return [one for one in all_frames(path) if head(one)["kind"] == kind]


def body(path: Path, frame: Any) -> bytes:
    return path.read_bytes()[frame.body.start : frame.body.end]


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
            recorder.gem_episode_end(episode(number, task_id=number // 2))
        recorder.gem_update(update(1, [episode(number, task_id=number // 2) for number in range(400)]))
    tasks, others = ([one.summary.task_id for one in open_records(tmp_path / name).summaries] for name in names)
    assert tasks == others
    assert all(tasks.count(one) == 2 for one in tasks)
    assert 60 <= len(tasks) <= 140
    assert {one.update for one in open_records(tmp_path / "one").summaries} == {1}
    whole = RunRecorder(tmp_path / "all")
    whole.gem_update(update(1, [episode(number, task_id=number // 2) for number in range(400)]))
    sizes = [sum(frame.body.size for frame in frames(one.path, "update")) for one in (recorder, whole)]
    assert sizes[0] < 0.4 * sizes[1]


def test_a_killed_writer_leaves_what_it_wrote(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_records import RunRecorder, episode
recorder = RunRecorder({str(tmp_path)!r})
recorder.gem_episode_end(episode())
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=240)
    assert done.returncode == -9
    assert [one.episode.number for one in read_episodes(tmp_path)] == [0]


def test_a_file_that_was_cut_anywhere_is_read_up_to_there(recorder: RunRecorder, tmp_path: Path) -> None:
    for number in range(2):
        recorder.gem_episode_end(episode(number))
    recorder.gem_rollout_end(RUN, None)
    whole = recorder.path.read_bytes()
    known = all_frames(recorder.path)
    cut = tmp_path / "cut" / "a.gemrec"
    cut.parent.mkdir()
    for size in [*range(0, len(whole), 7), *(one.body.end for one in known)]:
        cut.write_bytes(whole[:size])
        records = open_records(cut)
        assert len(records.summaries) == sum(one.body.end <= size for one in known if head(one)["kind"] == "episode")
        assert records.gaps or size in (known[0].body.end, len(whole))
        assert len([*read_episodes(cut)]) == len(records.summaries)


def test_no_damage_goes_unsaid_or_costs_other_records(recorder: RunRecorder, tmp_path: Path) -> None:
    for number in range(3):
        recorder.gem_episode_end(episode(number))
    recorder.gem_update(update(1, [episode(number) for number in range(3)]))
    recorder.gem_rollout_end(RUN, None)
    whole, copy = recorder.path.read_bytes(), tmp_path / "copy" / "a.gemrec"
    copy.parent.mkdir()
    place = 8
    for frame in all_frames(recorder.path):
        for at in {*range(place, place + 16), *range(place + 16, frame.body.end, 5)}:
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            copy.write_bytes(damaged)
            records = open_records(copy)
            kept = readable(records)
            assert kept == sorted({*kept})
            in_body = at >= frame.body.start or 12 <= at - place < 16  # its checksum
            assert in_body or records.gaps
            if in_body and head(frame)["kind"] == "episode":
                assert kept == sorted({0, 1, 2} - {kept_out(frame)})
            if in_body and head(frame)["kind"] == "update":
                assert kept == [0, 1, 2]
                assert records.gaps == ["a.gemrec has 1 damaged record."]
        place = frame.body.end


def readable(records: Records) -> list[int]:
    """The numbers of the episodes that can be read."""
    found: list[int] = []
    for index in range(len(records.summaries)):
        with suppress(RecordsError):
            found.append(records.episode(index).episode.number)
    return found


def kept_out(frame: Any) -> int:
    """The number of the episode of a frame."""
    return int(head(frame)["id"].rpartition("-")[2])


def small_file(folder: Path) -> bytes:
    """A file with a frame of each kind."""
    recorder = RunRecorder(folder, settings={"gamma": 0.9}, versions={"demo": "1.0"}, tokenizer=Words())
    recorder.gem_rollout_start(RUN)
    for number in range(2):
        recorder.gem_episode_end(episode(number))
    recorder.gem_update(update(1, [episode(0), episode(1)]))
    stalled = {"env/errors": 0.0, "turn/truncated": 1.0, "episode/success": 0.0, "episode/turns": 2.0}
    stalled |= {"episode/response_tokens": 9.0, "advantage/zero": 1.0, "advantage/return_std": 0.0}
    recorder.gem_metrics(Source("s", "training", "demo"), 1, stalled | {"advantage/return_mean": 0.0})
    recorder.gem_rollout_end(RUN, None)
    recorder.close()
    return recorder.path.read_bytes()


def test_random_changes_raise_nothing_else(tmp_path: Path) -> None:
    frames = record_mutations.frames_of(small_file(tmp_path / "honest"))
    path = tmp_path / "a.gemrec"
    path.write_bytes(record_mutations.file_of(frames))
    assert not record_mutations.read(path)
    refused = 0
    for seed in range(500):
        path.write_bytes(record_mutations.mutated(frames, seed))
        refused += record_mutations.read(path)
    assert refused > 250


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


def test_missing_ranks_updates_and_episodes_are_said(tmp_path: Path) -> None:
    player, trainer = RunRecorder(tmp_path), RunRecorder(tmp_path)
    player.gem_episode_end(episode(0))
    for number in (3, 5, 6, 9):
        trainer.gem_update(update(number, [episode(0)], ranks=1 + (number == 6)))
    trainer.gem_update(update(10, [episode(0), episode(1)]))
    assert open_records(tmp_path).gaps == [
        "There is no record of updates 4, 7 to 8.",
        "Not all training processes left a record of update 6.",
        "Episodes of update 10 are in no file: 1.",
    ]


def test_a_killed_run_is_told_from_one_that_ended(recorder: RunRecorder, tmp_path: Path) -> None:
    played = msgspec.structs.replace(episode(), run="run")
    recorder.gem_episode_end(played)
    assert open_records(tmp_path).gaps == ["The run did not end: it was killed, or is still going on."]
    recorder.gem_rollout_end(RUN, None)
    assert open_records(tmp_path).gaps == ["No process that trains left a record."]
    recorder.gem_update(update(1, [played]))
    assert open_records(tmp_path).gaps == []


def test_an_episode_of_several_updates_and_ranks(tmp_path: Path) -> None:
    players, ranks = RunRecorder(tmp_path), [RunRecorder(tmp_path) for _ in range(2)]
    played = episode()
    players.gem_episode_end(played)
    for number in (1, 2):
        for rank, recorder in enumerate(ranks):
            part = update(number, [played], rank=rank, ranks=2)
            chosen = part.position % 2 == rank
            recorder.gem_update(only(part, chosen, advantage=part.advantage[chosen] + number))
    (found,) = read_episodes(tmp_path)
    assert [one.update for one in found.updates] == [1, 2]
    assert found.summary.update == 1
    assert [one.advantages for one in found.updates] == [[1.1, 2.1, 3.1], [2.1, 3.1, 4.1]]
    assert open_records(tmp_path).gaps == []


def only(whole: Update, chosen: np.ndarray[Any, Any], **changes: Any) -> Update:
    columns = {
        name: getattr(whole, name)[chosen] for name in ("episode", "position", "task_id", "advantage", "return_to_go")
    }
    assert whole.logprobs is not None
    logprobs = [one for one, kept in zip(whole.logprobs, chosen, strict=True) if kept]
    return dataclasses.replace(whole, **{**columns, "logprobs": logprobs, **changes})


def test_an_episode_without_turns_belongs_to_its_update(recorder: RunRecorder, tmp_path: Path) -> None:
    failed = msgspec.structs.replace(episode(1), turns=[], sequences=[], error="it broke\n" * 100)
    for one in (episode(0), failed):
        recorder.gem_episode_end(one)
    part = update(1, [episode(0)])
    recorder.gem_update(dataclasses.replace(part, episodes=[episode(0).id, failed.id]))
    first, second = read_episodes(tmp_path)
    assert first.trained is not None
    assert (second.summary.update, second.episode.error) == (1, failed.error)


def test_unknown_numbers_are_none(recorder: RunRecorder, tmp_path: Path) -> None:
    unknown = episode()
    start, end = unknown.turns[1].start, unknown.turns[1].end
    unknown.sequences[0].logprobs[start:end] = as_logprobs([float("nan")] * (end - start))
    recorder.gem_episode_end(unknown)
    part = update(1, [unknown])
    nothing = [np.full(len(one), np.nan) for one in part.logprobs or ()]
    recorder.gem_update(dataclasses.replace(part, logprobs=nothing))
    (found,) = read_episodes(tmp_path)
    assert [found.episode.response_logprobs(turn) is None for turn in found.episode.turns] == [False, True, False]
    assert found.trained is not None
    assert found.trained.logprobs == [None] * 3


def test_repeats_of_a_bounded_history_cost_little(tmp_path: Path) -> None:
    chance = random.Random(0)
    ids = [chance.randrange(20_000) for _ in range(2000)]
    sizes = []
    for copies in (1, 4):
        sequences = [TokenSequence.starting(as_token_ids(ids)) for _ in range(copies)]
        recorder = RunRecorder(tmp_path / str(copies))
        recorder.gem_episode_end(msgspec.structs.replace(episode(), turns=[], sequences=sequences))
        sizes.append(frames(recorder.path, "episode")[0].body.size)
    assert sizes[1] < 1.1 * sizes[0]


def test_secrets_are_hidden(tmp_path: Path) -> None:
    settings = {
        "hub_token": "S3",
        "kwargs": {"api_key": "S3", "list": [{"password": "S3"}]},
        "max_tokens": 7,
        "key": None,
    }
    recorder = RunRecorder(tmp_path, settings=settings)
    recorder.gem_rollout_start(Run("run", [], {}, {"token": "S3"}))
    assert b"S3" not in recorder.path.read_bytes()
    read = open_records(tmp_path).settings
    assert (read["max_tokens"], read["key"], read["kwargs"]["list"]) == (7, None, [{"password": "<hidden>"}])


def test_a_full_disk_costs_records_and_no_run(recorder: RunRecorder, monkeypatch: Any, caplog: Any) -> None:
    recorder.gem_episode_end(episode(0))
    append = FrameWriter.write

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for round_ in range(2):
        monkeypatch.setattr(FrameWriter, "write", full)
        recorder.gem_episode_end(episode(2 * round_ + 1))
        monkeypatch.setattr(FrameWriter, "write", append)
        recorder.gem_episode_end(episode(2 * round_ + 2))
    recorder.gem_rollout_end(RUN, None)
    records = open_records(recorder.path)
    assert [one.id for one in records.summaries] == ["run-3-0", "run-3-2", "run-3-4"]
    assert len(caplog.records) == 1
    assert f"{recorder.path.name} lacks 2 records that could not be written." in records.gaps


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A file size limit of the process, in a process of its own."""
    program = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_records import RunRecorder, episode
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
recorder = RunRecorder({str(tmp_path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
for number in range(30):
    recorder.gem_episode_end(episode(number))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
recorder.gem_episode_end(episode(30))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("lacks records") == 1
    records = open_records(tmp_path)
    assert records.summaries[-1].id == "run-3-30"
    missing = 31 - len(records.summaries)
    assert missing > 0
    assert any(f"lacks {missing} records that could not be written" in gap for gap in records.gaps)


def test_whatever_describing_raises_costs_one_record(recorder: RunRecorder, tmp_path: Path, caplog: Any) -> None:
    class Broken:
        def decode(self, *_: Any, **__: Any) -> str:
            raise RuntimeError("no")

    recorder.tokenizer = Broken()
    recorder.gem_episode_end(msgspec.structs.replace(episode(0), seed=2**70))
    recorder.gem_episode_end(episode(1))
    assert [one.id for one in open_records(tmp_path).summaries] == ["run-3-1"]
    assert len(caplog.records) == 1


def test_a_fork_has_its_own_file(recorder: RunRecorder, tmp_path: Path) -> None:
    recorder.gem_episode_end(episode(0))
    child = os.fork()
    if not child:
        recorder.gem_episode_end(episode(1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    recorder.gem_episode_end(episode(2))
    assert len([*tmp_path.glob("*.gemrec")]) == 2
    assert sorted(one.episode.number for one in read_episodes(tmp_path)) == [0, 1, 2]


def test_json_lines_are_read_alike(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "episodes.jsonl")
    recorder.gem_episode_end(episode(0))
    records = open_records(tmp_path)
    recorder.gem_episode_end(episode(1))
    assert records.refresh()
    assert (records.kind, len(records.summaries)) == ("episodes", 2)
    assert_same(records.episode(1).episode, episode(1))
    recorder.close()


def test_an_episode_has_the_number_of_its_task_and_its_row(recorder: RunRecorder, tmp_path: Path) -> None:
    recorder.gem_episode_end(msgspec.structs.replace(episode(task_id=7), data_index=3))
    [read] = open_records(tmp_path).summaries
    assert (read.summary.task_id, read.summary.group_id, read.summary.group_key, read.data_index) == (7, 7, 7, 3)
    assert {*update(1, [episode(task_id=7)]).task_id.tolist()} == {7}


def test_what_has_no_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="there is no file or folder"):
        open_records(tmp_path / "nothing")
    with pytest.raises(RecordsError, match=r"has no records: neither a file \*\.gemrec"):
        open_records(tmp_path)
    (tmp_path / "a.gemrec").write_bytes(b"something else")
    with pytest.raises(RecordsError, match="does not start with"):
        open_records(tmp_path)
    (tmp_path / "b.jsonl").write_text("[]\n")
    with pytest.raises(RecordsError, match=r"b\.jsonl, line 1: "):
        open_records(tmp_path / "b.jsonl")


def test_foreign_files_beside_records_cost_nothing(recorder: RunRecorder, tmp_path: Path) -> None:
    recorder.gem_episode_end(episode())
    (tmp_path / "other.jsonl").write_text('{"loss": 1}\n')
    (tmp_path / "later.gemrec").write_bytes(b"GEMREC9\n")
    (tmp_path / "folder.gemrec").mkdir()
    records = open_records(tmp_path)
    assert len(records.summaries) == 1
    assert "later.gemrec is of another version; read it with the release of gem-core that wrote it" in records.gaps


def test_a_resumed_run_has_the_settings_of_its_last_start(tmp_path: Path) -> None:
    for rate in (0.1, 0.2):
        RunRecorder(tmp_path, settings={"rate": rate}).close()
    _, second = sorted(tmp_path.glob("*.gemrec"), key=lambda one: one.stat().st_mtime_ns)
    second.rename(tmp_path / "a-earlier-name.gemrec")
    assert open_records(tmp_path).settings == {"rate": 0.2}


def test_metrics_of_a_training_are_recorded(recorder: RunRecorder, tmp_path: Path) -> None:
    for kind in ("training", "evaluation"):
        recorder.gem_metrics(Source("s", kind, "demo"), 2, {"loss": 0.5, "odd": float("nan")})
    (line,) = open_records(tmp_path).metrics
    assert (line["step"], line["loss"], str(line["odd"])) == (2.0, 0.5, "nan")


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
    assert unpacked_ids(packed_ids(ids), count).tolist() == ids.tolist()
    numbers = -chance.exponential(2.0, count)
    np.testing.assert_allclose(unpacked_numbers(packed_numbers(numbers), count), numbers, rtol=1e-7, atol=5.1e-7)


def test_numbers_that_are_none() -> None:
    odd = [float("nan"), float("-inf"), float("inf"), 0.0, 1e9, -1e9]
    found = unpacked_numbers(packed_numbers(odd), len(odd)).tolist()
    assert str(found[:4]) == "[nan, -inf, inf, 0.0]"
    assert found[4] == pytest.approx(2147.48, abs=0.01)
    assert found[5] == pytest.approx(-2147.48, abs=0.01)
