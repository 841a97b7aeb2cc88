"""The bytes of the page: what was recorded can be read from them."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from made_up import Plan, Vocabulary, episode, write_run

from gem_core.episode import as_logprobs, as_token_ids
from gem_train.records import RecordedEpisode, RecordedSummary, Trained, open_records
from gem_viewer._columns import columns
from gem_viewer._shards import BLOCK, TokenTable, shard

MARKS = {0xFFFFFFFF: math.nan, 0xFFFFFFFE: -math.inf, 0xFFFFFFFD: math.inf}


def inflated(part: bytes) -> bytes:
    return zlib.decompress(part, -15)


def unshuffled(part: bytes, width: int) -> list[int]:
    return np.frombuffer(part, np.uint8).reshape(width, -1).T.copy().view(f"<u{width}").ravel().tolist()


def number(code: int, base: float = 0.0) -> float:
    """What the page decodes."""
    if code in MARKS:
        return MARKS[code]
    whole = -(code + 1) // 2 if code % 2 else code // 2
    return whole * 1e-6 + (round(base * 1e6) * 1e-6 if math.isfinite(base) else 0.0)


def recorded(**changes: object) -> RecordedEpisode:
    """An episode of three turns."""
    plan = Plan(turns=(3, 3), vocabulary=Vocabulary(100, extra=["\ud83d", "🙂"]))
    chance = np.random.default_rng(0)
    made = episode("demo:A-v0", 1, 0, 0, run="run", plan=plan, chance=chance, solved=True)
    for name, value in changes.items():
        setattr(made, name, value)
    return RecordedEpisode(RecordedSummary(made.summary(), 1, "train", 1), made, [])


def test_every_token_and_number_comes_back(tmp_path: Path) -> None:
    plan = Plan(updates=2)
    write_run(tmp_path / "run", plan)
    records = open_records(tmp_path / "run")
    episodes = [records.episode(index) for index in range(len(records.summaries))]
    assert len(episodes) < BLOCK
    table = TokenTable(records.texts)
    details, tokens, *numbers = map(inflated, shard(episodes, table))
    document = json.loads(details)
    ids = [table.entries()["ids"][place] for place in unshuffled(tokens, document["width"])]
    assert ids == [one for each in episodes for sequence in each.episode.sequences for one in sequence.ids]
    assert [plan.vocabulary.texts[one] for one in table.entries()["ids"]] == table.entries()["texts"]
    for one, part in zip(episodes, numbers, strict=True):
        assert one.trained is not None
        count = one.summary.summary.response_tokens
        codes = [unshuffled(part[4 * count * at : 4 * count * (at + 1)], 4) for at in range(3)]
        sampled = [x for turn in one.episode.turns for x in one.episode.response_logprobs(turn) or ()]
        trained = [x for turn in one.trained.logprobs for x in turn or ()]
        entropies = [x for turn in one.trained.entropies for x in turn or ()]
        assert [number(code) for code in codes[0]] == pytest.approx(sampled, abs=1e-6)
        assert [number(code, base) for code, base in zip(codes[1], sampled, strict=True)] == pytest.approx(
            trained, abs=1e-6
        )
        assert [number(code) for code in codes[2]] == pytest.approx(entropies, abs=1e-6)


def test_texts_that_the_tokens_have_are_stored_once() -> None:
    one = recorded()
    texts = dict(enumerate(Vocabulary(100).texts))
    (found,) = json.loads(inflated(shard([one], TokenTable(texts))[0]))["episodes"]
    ids, end = one.episode.sequences[0].ids, 0
    for turn, played in zip(found["turns"], one.episode.turns, strict=True):
        before, sampled = (
            "".join(texts[x] for x in ids[a:b]) for a, b in ((end, played.start), (played.start, played.end))
        )
        assert before[slice(*turn["observation"])] == played.observation
        assert sampled[slice(*turn["response"])] == played.response
        end = played.end
    (unknown,) = json.loads(inflated(shard([one], TokenTable({}))[0]))["episodes"]
    assert unknown["turns"][0]["response"] == one.episode.turns[0].response


def test_slices_count_as_javascript_does() -> None:
    one = recorded()
    texts = dict.fromkeys(range(100), "🙂")
    turn = one.episode.turns[0]
    turn.response = "🙂🙂"
    (found,) = json.loads(inflated(shard([one], TokenTable(texts))[0]))["episodes"]
    assert found["turns"][0]["response"] == [0, 4]


def test_a_text_is_found_in_tokens_that_have_parts_of_its_characters() -> None:
    one = recorded()
    turn = one.episode.turns[0]
    one.episode.sequences[0].ids[turn.start : turn.start + 3] = as_token_ids([10, 11, 12])
    texts: dict[int, str | bytes] = {
        **dict.fromkeys(range(100), "."),
        10: " go漢".encode()[:4],
        11: b"\xbc",
        12: b"\xa2",
    }
    turn.response = "go漢."
    table = TokenTable(texts)
    (found,) = json.loads(inflated(shard([one], table)[0]))["episodes"]
    assert found["turns"][0]["response"] == [1, 5]
    entries = table.entries()
    assert dict(zip(entries["ids"], entries["texts"], strict=True))[11] == [0xBC]


def test_numbers_that_are_unknown_or_not_finite() -> None:
    one = recorded()
    first, second, third = one.episode.turns
    logprobs = one.episode.sequences[0].logprobs
    logprobs[first.start : first.start + 3] = as_logprobs([math.nan, -math.inf, -1e30])
    sizes = [turn.end - turn.start for turn in (first, second, third)]
    theirs = [as_logprobs([-0.25] * sizes[0]), None, as_logprobs([math.nan] * sizes[2])]
    trained = Trained(1, [1.5, None, math.inf], [0.0, None, math.nan], theirs, [None, None, as_logprobs([0.5])])
    one = msgspec.structs.replace(one, updates=[trained])
    details, _, numbers = map(inflated, shard([one], TokenTable({})))
    (found,) = json.loads(details)["episodes"]
    assert found["updates"] == [
        {
            "update": 1,
            "advantages": [1.5, None, "Infinity"],
            "returns": [0.0, None, "NaN"],
            "logprobs": [True, False, True],
            "entropies": [False, False, False],  # one number does not belong to a turn of several tokens
        }
    ]
    count = sum(sizes)
    codes = unshuffled(numbers[: 4 * count], 4)
    assert math.isnan(number(codes[0]))
    assert [number(code) for code in codes[1:3]] == [-math.inf, -1000.0]
    later = unshuffled(numbers[4 * count :], 4)
    assert len(later) == sizes[0] + sizes[2]
    assert number(later[0]) == -0.25  # nothing to subtract from
    assert number(later[3], logprobs[first.start + 3]) == pytest.approx(-0.25, abs=1e-6)
    assert all(math.isnan(number(code)) for code in later[sizes[0] :])


def test_anything_may_be_in_an_episode() -> None:
    circle: dict[str, object] = {}
    circle["itself"] = circle
    one = recorded(final_observation="\ud800 </script> \u2028", error="\udfff")
    one.episode.turns[0].info = circle
    one.episode.turns[1].info = {"score": math.nan, "thing": object(), "bytes": b"\xff"}
    one.episode.turns[2].reward = -math.inf
    (found,) = json.loads(inflated(shard([one], TokenTable({}))[0]))["episodes"]
    assert (found["final"], found["error"]) == (one.episode.final_observation, "\udfff")
    assert "..." in found["turns"][0]["info"]
    assert "NaN" in found["turns"][1]["info"]
    assert found["turns"][2]["reward"] == "-Infinity"


def test_columns_keep_large_seeds_and_name_what_json_lacks() -> None:
    one = recorded(seed=(1 << 63) - 1)
    one.episode.turns[0].reward = math.nan
    summary = RecordedSummary(one.episode.summary(), None)
    found = columns([summary, summary])
    assert found["seed"] == [str((1 << 63) - 1)] * 2
    assert found["return"] == ["NaN", "NaN"]
    assert found["env"] == {"values": ["demo:A-v0"], "of": [0, 0]}


def test_agents_of_a_match_are_known() -> None:
    agents = [recorded(agent=agent) for agent in ("left", "right", "")]
    found = columns([RecordedSummary(one.episode.summary(), None) for one in agents])
    assert found["agent"] == {"values": ["left", "right", None], "of": [0, 1, 2]}
    assert found["match"] == [agents[0].episode.match] * 2 + [None]


def test_a_thought_is_told_apart_in_javascripts_units() -> None:
    one = recorded()
    first, second, third = one.episode.turns
    first.response, first.action = "<think>🙂 or not</think>go", "go"
    second.reasoning = "so"
    third.action = ""
    (found,) = json.loads(inflated(shard([one], TokenTable({}))[0]))["episodes"]
    thought, speech = found["turns"][0]["response"][: found["turns"][0]["thought"] - 1], first.response[-2:]
    assert (thought, speech) == ("<think>🙂 or not</think>", "go")  # a character of two units before it
    assert "action" not in found["turns"][0]
    assert found["turns"][1]["reasoning"] == "so"
    assert "thought" not in found["turns"][1]
    assert "reasoning" not in found["turns"][2]
    assert found["turns"][2]["action"] == ""
