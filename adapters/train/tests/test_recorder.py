"""Episodes on disk: everything comes back, whatever an environment puts into its texts and infos."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_core import make_vec
from gem_core.episode import as_logprobs, as_token_ids
from gem_core.plugins import manager
from gem_train.records import RecordsError, open_records, read_episodes
from gem_train.rollout import (
    BatchCollector,
    Completion,
    Episode,
    Recorder,
    RolloutSettings,
    StopReason,
    TokenSequence,
    Turn,
    recording,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def episodes_in(path: Path) -> Iterator[Episode]:
    return (one.episode for one in read_episodes(path))


def episode(number: int = 0, *, observation: str = "go", info: dict[str, Any] | None = None) -> Episode:
    tokens = TokenSequence.starting(as_token_ids([1, 2, 3]))
    tokens.add_response(as_token_ids([4, 5]), as_logprobs([-0.5, -1.25]))
    tokens.add_prompt(as_token_ids([6]))
    tokens.add_response(as_token_ids([7]), as_logprobs([0.0]))
    alone = TokenSequence.starting(as_token_ids([8]))
    alone.add_response(as_token_ids([9]), as_logprobs([-2.5]))
    turns = [
        Turn(0, 3, 5, observation, "left", "left", False, 0.5, info or {}),
        Turn(0, 6, 7, "on", "", "", True, -0.1, {"invalid_action": True}),
        Turn(1, 1, 2, "and on", "right", "right", False),
    ]
    return Episode(
        "demo:A-v0",
        2**63 - 1,
        slot=3,
        number=number,
        task_id=5,
        turns=turns,
        sequences=[tokens, alone],
        stop_reason=StopReason.ENV_ERROR,
        success=True,
        final_observation="the end\n",
        error="OSError: gone",
        provenance="gem-demo 1.0 (plugin 'demo')",
    )


def written(path: Path, *episodes: Episode) -> list[Episode]:
    """Record through the hook and read back."""
    with recording(path):
        for one in episodes:
            manager.notify("gem_episode_end", episode=one)
    return list(episodes_in(path))


def test_episodes_come_back_equal_and_in_order(tmp_path: Path) -> None:
    episodes = [episode(number, info={"a": [1, {"b": None}], "c": 0.1 + 0.2}) for number in range(3)]
    assert written(tmp_path / "deep" / "er" / "episodes.jsonl", *episodes) == episodes


def test_a_run_is_recorded_as_it_was(tmp_path: Path, chatml: PreTrainedTokenizerFast) -> None:
    path = tmp_path / "episodes.jsonl"
    settings = RolloutSettings(max_response_tokens=8, history=2)
    with recording(path), make_vec("game:GuessTheNumber-v0", 4, backend="thread", seed=0) as vec:
        collector = BatchCollector(
            vec, lambda prompts: [_guess(chatml, prompt) for prompt in prompts], chatml, settings
        )
        episodes = collector.collect_round().episodes
        collector.close()
    read = sorted(episodes_in(path), key=lambda one: one.slot)
    assert read == episodes
    assert {len(one.run) for one in read} == {16}
    assert sum(len(one.turns) for one in read) > 8
    assert {one.provenance.partition(" ")[0] for one in read} == {"gem-core"}


def _guess(tokenizer: PreTrainedTokenizerFast, prompt: list[int]) -> Completion:
    ids = [*tokenizer.encode(f"\\boxed{{{1 + len(prompt) % 20}}}", add_special_tokens=False), tokenizer.eos_token_id]
    return Completion(ids, [-0.125] * len(ids))


def test_each_episode_is_one_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    written(path, episode(observation="two\nlines\r\n\u2028and more"), episode())
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["env_id"] for line in lines] == ["demo:A-v0", "demo:A-v0"]
    assert json.loads(lines[0])["turns"][0]["observation"] == "two\nlines\r\n\u2028and more"


def test_recording_goes_on_where_it_stopped_and_only_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    written(path, episode(1))
    manager.notify("gem_episode_end", episode=episode(99))
    assert [one.number for one in written(path, episode(2))] == [1, 2]


def test_an_episode_is_on_disk_when_its_hook_returns(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with recording(path):
        manager.notify("gem_episode_end", episode=episode(1))
        assert [one.number for one in episodes_in(path)] == [1]


@pytest.mark.parametrize("text", ["\ud800", "a\udcffb", "\x00\x1b[31m", "é漢😀", '"\\', ""])
def test_any_text_can_be_written(tmp_path: Path, text: str) -> None:
    one = episode(observation=text, info={"said": text, text: [text]})
    [back] = written(tmp_path / "episodes.jsonl", one)
    expected = text.encode("utf-8", "backslashreplace").decode()
    assert back.turns[0].observation == expected
    assert back.turns[0].info == {"said": expected, expected: [expected]}


class Thing:
    def __repr__(self) -> str:
        return "<Thing \ud800>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (object, "<class 'object'>"),
        (1 + 2j, "(1+2j)"),
        (range(3), "range(0, 3)"),
        (Thing(), "<Thing \\ud800>"),
        ((1, "a"), [1, "a"]),
        ({1: "one"}, {"1": "one"}),
        ({(1, 2): "pair"}, {"(1, 2)": "pair"}),
        ({None: 1, True: 2}, {"None": 1, "True": 2}),
        ({(1, 2): "\ud800"}, {"(1, 2)": "\\ud800"}),
        ([Thing(), {(1, 2): Thing()}], ["<Thing \\ud800>", {"(1, 2)": "<Thing \\ud800>"}]),
        (2**200, 2**200),
        (StopReason.TERMINATED, "terminated"),
    ],
)
def test_what_json_cannot_say_is_written_as_text(tmp_path: Path, value: Any, expected: Any) -> None:
    [back] = written(tmp_path / "episodes.jsonl", episode(info={"value": value, "kept": 1}))
    assert back.turns[0].info == {"value": expected, "kept": 1}
    assert back.turns[1] == episode().turns[1]


class LyingFloat(float):
    def __repr__(self) -> str:
        raise ValueError


class LyingInt(int):
    def __ge__(self, other: object) -> bool:
        raise ValueError


class LyingText(str):
    def encode(self, *_: Any) -> bytes:
        raise ValueError


class LyingList(list[int]):
    def __iter__(self) -> Any:
        raise SystemExit


class Masked:
    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class Exits:
    def __repr__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LyingFloat(0.5), 0.5),
        (LyingInt(5), 5),
        (LyingText("\ud800"), "\\ud800"),
        (LyingList([1]), "<what cannot be read>"),
        (Masked(), "<what cannot be read>"),
        (Exits(), "<what cannot be read>"),
    ],
    ids=["float", "int", "text", "list", "class", "repr"],
)
def test_an_episode_with_a_value_that_cannot_be_read_is_written(tmp_path: Path, value: Any, expected: Any) -> None:
    [back] = written(tmp_path / "episodes.jsonl", episode(info={"value": value, "kept": (1, "\ud800")}))
    assert back.turns[0].info == {"value": expected, "kept": [1, "\\ud800"]}


def test_arrays_in_an_info_are_written(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    info = {"array": numpy.arange(3), "number": numpy.int64(4), "share": numpy.float64(0.5)}
    [back] = written(tmp_path / "episodes.jsonl", episode(info=info))
    assert "0" in str(back.turns[0].info["array"])
    assert "4" in str(back.turns[0].info["number"])
    assert "0.5" in str(back.turns[0].info["share"])


def test_numbers_that_json_has_not_become_null(tmp_path: Path) -> None:
    back = written(tmp_path / "episodes.jsonl", episode(info={"loss": math.nan, "bound": -math.inf}), episode(7))
    assert back[0].turns[0].info == {"loss": None, "bound": None}
    assert back[1].number == 7


def test_the_episode_itself_is_left_alone(tmp_path: Path) -> None:
    thing = Thing()
    one = episode(info={"thing": thing, "pair": {(1, 2): "\ud800"}})
    written(tmp_path / "episodes.jsonl", one)
    assert one.turns[0].info == {"thing": thing, "pair": {(1, 2): "\ud800"}}


def test_concurrent_writers_give_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    recorders = [Recorder(path), Recorder(path)]
    # Longer than any buffer on the way, so that a line written in pieces would be torn.
    big = "x" * 50_000

    def write(writer: int) -> None:
        for number in range(10):
            recorders[writer % 2].gem_episode_end(episode(writer * 10 + number, observation=big))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for recorder in recorders:
        recorder.close()
        recorder.close()
    assert sorted(one.number for one in episodes_in(path)) == list(range(80))


def test_a_log_probability_that_nobody_knows_comes_back(tmp_path: Path) -> None:
    unknown = episode(info={"logprobs": [None]})
    unknown.sequences[0].logprobs[3] = unknown.sequences[1].logprobs[1] = math.nan
    [read] = written(tmp_path / "episodes.jsonl", unknown)
    assert read.response_logprobs(read.turns[2]) is None
    first = read.response_logprobs(read.turns[0])
    assert first is not None
    assert (math.isnan(first[0]), first[1]) == (True, -1.25)
    assert "[null,-1.25,0.0]" in (tmp_path / "episodes.jsonl").read_text()


def test_a_recording_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_text('{"version": 4, "env_id": "demo:A-v0", "seed": 1}\n')
    with pytest.raises(RecordsError, match="version 4, but this release reads version 3"):
        list(episodes_in(path))


def test_a_recorder_goes_on_after_one_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    written(path, episode(0), episode(1))
    path.write_bytes(path.read_bytes()[:-50])
    recorder = Recorder(path)
    recorder.gem_episode_end(episode(2))
    recorder.close()
    assert [one.number for one in episodes_in(path)] == [0, 2]


def test_a_line_that_is_no_episode_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    for line in (
        '{"env_id": 3}',
        '{"env_id": 3, "seed": 1, "turns": []}',
        '{"turns": [3]}',
        "[]",
        '{"env_id": "a", "seed": 1, "version": 3, "sequences": [{"ids": [1], "logprobs": [0.5]}]}',
    ):
        path.write_text(line + "\n")
        with pytest.raises(RecordsError, match=r"episodes\.jsonl, line 1: "):
            list(episodes_in(path))


def test_a_damaged_episode_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    written(path, episode())
    good = json.loads(path.read_text())
    turn = {**good["turns"][0], "prompt_ids": [1], "response_ids": [2, 3], "logprobs": [-1.0]}
    v1 = {name: value for name, value in good.items() if name not in ("version", "sequences")}
    damaged = [
        {**good, "sequences": []},
        {**good, "turns": [{**good["turns"][0], "sequence": -1}]},
        {**good, "turns": [{**good["turns"][0], "end": 99}]},
        {**good, "sequences": [{"ids": [2**40], "logprobs": []}]},
        {**v1, "turns": [turn]},
        {**v1, "turns": [{**turn, "logprobs": [-1.0] * 3}]},
    ]
    for one in damaged:
        path.write_text(json.dumps(good) + "\n" + json.dumps(one) + "\n" + json.dumps(good) + "\n")
        assert len([*episodes_in(path)]) == 2
        assert [gap[:24] for gap in open_records(path).gaps] == ["episodes.jsonl, line 2: "]
    path.write_text(json.dumps(good) + "\n" + json.dumps(good)[:50])  # killed while it wrote
    assert len([*episodes_in(path)]) == 1
    assert open_records(path).gaps == [
        "episodes.jsonl ends within a record: its writer was killed, or is still writing."
    ]


def test_a_recorder_that_cannot_write_fails_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recording(tmp_path / "episodes.jsonl") as recorder:
        recorder.close()
        manager.notify("gem_episode_end", episode=episode())
    assert "Recorder" in caplog.text
    assert "the run continues" in caplog.text


def nested(depth: int, inner: Any) -> Any:
    """Lists and mappings in turn, this deep."""
    for level in range(depth):
        inner = {"level": inner, "number": level} if level % 2 else [inner]
    return inner


@pytest.mark.parametrize("depth", [90, 500, 1000, 100_000])
def test_an_info_may_be_nested_deeply(depth: int, tmp_path: Path) -> None:
    with recording(tmp_path / "episodes") as recorder:
        recorder.gem_episode_end(episode(0, info={"deep": nested(depth, "the bottom"), "shallow": 1}))
        recorder.gem_episode_end(episode(1))
    first, second = episodes_in(tmp_path / "episodes")
    assert (first.number, second.number) == (0, 1)
    assert first.turns[0].info["shallow"] == 1
    value, levels = first.turns[0].info["deep"], 0
    while not isinstance(value, str):
        value, levels = value["level"] if isinstance(value, dict) else value[0], levels + 1
    if depth < 100:
        assert (value, levels) == ("the bottom", depth)
        return
    # The rest is there, as JSON in a text.
    rest = value.replace('"number"', "").count("{") + value.count("[")
    assert levels + rest == depth
    assert '"the bottom"' in value


def test_an_info_may_contain_itself_and_what_cannot_be_shown(tmp_path: Path) -> None:
    class Mute:
        def __repr__(self) -> str:
            raise OSError("no")

    loop: dict[str, Any] = {"big": 1 << 80, "mute": Mute(), 3: {"set": frozenset({1})}}
    loop["again"] = [loop]
    with recording(tmp_path / "episodes") as recorder:
        recorder.gem_episode_end(episode(0, info=loop))
        recorder.gem_episode_end(episode(1, info={"a": [Mute()]}))
    first, second = episodes_in(tmp_path / "episodes")
    assert first.turns[0].info["big"] == hex(1 << 80)
    assert "whose repr raised OSError" in first.turns[0].info["mute"]
    assert first.turns[0].info["again"][0]["3"] == {"set": [1]}
    assert second.turns[0].info == {"a": ["<Mute, whose repr raised OSError>"]}


def test_an_episode_without_tokens_comes_back(tmp_path: Path) -> None:
    turn = Turn(0, 0, 0, observation="2 + 2?", response="4", action="4", truncated=False, reward=1.0)
    episode = Episode("demo:A", 1, turns=[turn], success=True)
    with recording(tmp_path / "episodes.jsonl") as recorder:
        recorder.gem_episode_end(episode)
    assert [*episodes_in(tmp_path / "episodes.jsonl")] == [episode]
    assert (episode.prompt_ids(turn), episode.response_ids(turn)) == (as_token_ids(), as_token_ids())
    assert episode.response_logprobs(turn) is None
    assert episode.summary().response_tokens == 0
