"""Which question comes when: none twice before all came once, in any vector, from one shared copy."""

from __future__ import annotations

import copy
import json
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core import make_vec
from gem_core.env import Env, shown_text
from gem_core.errors import EnvError
from gem_questions import BOX
from gem_questions import _questions as questions
from gem_questions import _rows as rows
from gem_questions._questions import WINDOW, Questions, order
from gem_questions._rows import Source

COUNT = 30


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file of numbered questions."""
    return numbered(tmp_path / "numbered.jsonl", COUNT)


def numbered(path: Path, count: int) -> str:
    path.write_text("".join(json.dumps({"problem": f"question {n}", "answer": str(n)}) + "\n" for n in range(count)))
    return str(path)


def asked(env: Env, **which: Any) -> int:
    """The number of the question that a reset shows."""
    return int(env.reset(**which)[0].split()[1])


def make(path: str, **kwargs: Any) -> Env:
    return gem_core.make("math:Dataset", dataset=path, **kwargs)


# -- order -------------------------------------------------------------------------------------------------------------


def test_an_order_has_every_number_once() -> None:
    for count in (1, 2, 7, 1000):
        assert sorted(order(count, 0, 0)) == list(range(count))


def test_orders_are_the_same_everywhere() -> None:
    assert list(order(10, 0, 0)) == [0, 9, 8, 1, 7, 6, 3, 2, 4, 5]  # a run that is resumed elsewhere relies on it


def test_orders_differ_by_seed_and_epoch() -> None:
    assert len({tuple(order(50, seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


@pytest.mark.parametrize("shuffle_seed", [0, 1, None])
def test_tasks_repeat_no_question_before_all_were_asked(path: str, shuffle_seed: int | None) -> None:
    env = make(path, shuffle_seed=shuffle_seed)
    for epoch in range(3):
        numbers = [asked(env, seed=1, data_index=index) for index in range(epoch * COUNT, (epoch + 1) * COUNT)]
        assert sorted(numbers) == list(range(COUNT))
        assert (numbers == list(range(COUNT))) is (shuffle_seed is None)


def test_a_task_is_one_question_for_everybody(path: str) -> None:
    one, other = make(path), make(path)
    assert [asked(one, seed=0, data_index=index) for index in range(100)] == [
        asked(other, seed=9, data_index=index) for index in range(100)
    ]


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_a_vector_asks_every_question_once(path: str, backend: Any) -> None:
    with make_vec("math:Dataset", 6, env_kwargs={"dataset": path}, backend=backend, seed=0) as vec:
        shown = [*vec.reset()[0]]
        for _ in range(COUNT // 6 - 1):
            shown += vec.step(["\\boxed{1}"] * 6)[0]
    assert len(set(shown)) == len(shown) == COUNT


def test_a_group_is_asked_the_same(path: str) -> None:
    with make_vec("math:Dataset", 6, env_kwargs={"dataset": path}, group_size=3, seed=0) as vec:
        shown = vec.reset()[0]
    assert shown[0] == shown[1] == shown[2] != shown[3] == shown[4] == shown[5]


def test_with_a_seed_alone_a_question_is_drawn(path: str) -> None:
    env = make(path)
    drawn = [asked(env, seed=seed) for seed in range(300)]
    assert drawn == [asked(make(path), seed=seed) for seed in range(300)]
    assert set(drawn) == set(range(COUNT))


def test_without_anything_the_next_question_comes(path: str) -> None:
    env, tasks = make(path), make(path)
    assert [asked(env) for _ in range(2 * COUNT)] == [asked(tasks, data_index=index) for index in range(2 * COUNT)]


def test_an_index_is_a_row_of_the_data(path: str) -> None:
    env = make(path)
    assert [asked(env, row=index) for index in range(COUNT)] == list(range(COUNT))
    assert asked(env, seed=3, data_index=7, row=5) == 5


@pytest.mark.parametrize("index", [COUNT, 10**9])
def test_an_index_outside_the_data_is_refused(path: str, index: int) -> None:
    with pytest.raises(EnvError, match=f"{COUNT} rows"):
        make(path).reset(row=index)


@pytest.mark.parametrize(
    "which", [{"row": -1}, {"data_index": -1}, {"data_index": 1.5}, {"row": "0"}, {"data_index": True}]
)
def test_a_place_that_cannot_be_is_refused(path: str, which: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match=f"{next(iter(which))} must be a whole number"):
        make(path).reset(**which)


def test_as_many_episodes_as_there_are_questions_ask_each_once(path: str) -> None:
    env: Any = make(path)
    count = len(env.unwrapped.questions)
    assert count == COUNT
    assert {asked(env, data_index=index) for index in range(count)} == set(range(COUNT))


# -- one copy ----------------------------------------------------------------------------------------------------------


def test_environments_share_one_copy(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Source] = []

    def counting(source: Source) -> Any:
        reads.append(source)
        return rows.read(source)

    monkeypatch.setattr(questions, "read", counting)
    envs: list[Any] = [make(path, shuffle_seed=seed) for seed in range(64)]
    for env in envs:
        env.reset(data_index=0)
    assert len(reads) == 1
    assert len({id(env.questions.rows) for env in envs}) == 1


def test_threads_that_load_at_the_same_time_share_one_copy(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Source] = []
    start = threading.Barrier(8)

    def counting(source: Source) -> Any:
        reads.append(source)
        return rows.read(source)

    monkeypatch.setattr(questions, "read", counting)

    def load(worker: int) -> int:
        start.wait()
        return asked(make(path), data_index=worker)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(load, range(8)))) == 8
    assert len(reads) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_pickles_and_snapshots_carry_no_data(tmp_path: Path, moment: str) -> None:
    env: Any = make(numbered(tmp_path / "many.jsonl", 5000))
    if moment == "after":
        env.reset(data_index=0)
    assert len(pickle.dumps(env)) < 3000
    assert len(pickle.dumps(env.get_state())) < 3000
    again = pickle.loads(pickle.dumps(env))
    assert asked(again, data_index=3) == asked(env, data_index=3)
    assert again.questions.rows is env.questions.rows is copy.deepcopy(env.questions).rows


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    import os

    path = numbered(tmp_path / "growing.jsonl", 2)
    before: Any = make(path)
    before.reset(data_index=0)
    numbered(tmp_path / "growing.jsonl", 40)
    os.utime(path, ns=(1, 1))
    assert asked(make(path), row=39) == 39
    with pytest.raises(EnvError):  # an environment keeps what it began with
        before.reset(row=39)


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def streamed(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Source:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return Source(path, streaming=True)


def places(handle: Questions, wanted: Any) -> list[int]:
    return [int(handle.ask(place)["answer"]) for place in wanted]


def test_a_stream_repeats_no_question_before_all_were_asked(streamed: Source) -> None:
    handle = Questions(streamed, 0)
    first, second = places(handle, range(COUNT)), places(handle, range(COUNT, 2 * COUNT))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second


def test_a_stream_in_order_stays_in_order(streamed: Source) -> None:
    assert places(Questions(streamed, None), range(COUNT + 2)) == [*range(COUNT), 0, 1]


def test_a_stream_can_be_asked_for_what_went_by(streamed: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "WINDOW", 4)
    handle = Questions(streamed, 7)
    forward = places(handle, range(20))
    assert places(handle, [19, 17, 3, 0, 12]) == [forward[19], forward[17], forward[3], forward[0], forward[12]]


def test_processes_see_one_stream(streamed: Source) -> None:
    even, odd = pickle.loads(pickle.dumps(Questions(streamed, 3))), Questions(streamed, 3)
    numbers = places(even, range(0, COUNT, 2)) + places(odd, range(1, COUNT, 2))
    assert sorted(numbers) == list(range(COUNT))


def test_a_stream_has_no_index_but_can_be_drawn_from(streamed: Source) -> None:
    handle = Questions(streamed, 0)
    with pytest.raises(EnvError, match="streaming=False"):
        len(handle)
    with pytest.raises(EnvError, match="streaming=False"):
        handle.at(0)
    assert handle.draw(random.Random(0)) == handle.draw(random.Random(0))
    assert WINDOW > COUNT  # it was drawn from more than one round


def test_a_stream_goes_on_after_an_error(streamed: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"on": True}

    def unsteady(*arguments: Any) -> Any:
        for number, row in enumerate(rows.stream(*arguments)):
            if number == 5 and broken["on"]:
                raise OSError("the network is gone")
            yield row

    monkeypatch.setattr(questions, "stream", unsteady)
    handle = Questions(streamed, 11)
    with pytest.raises(OSError, match="gone"):
        places(handle, range(COUNT))
    broken["on"] = False
    assert sorted(places(handle, range(COUNT))) == list(range(COUNT))


# -- columns and templates ---------------------------------------------------------------------------------------------


def test_a_missing_column_is_told_with_those_there_are(path: str) -> None:
    with pytest.raises(EnvError) as caught:
        make(path, question="problme").reset()
    assert "'problme'" in str(caught.value)
    assert "Did you mean 'problem'?" in str(caught.value)
    assert "problem, answer" in str(caught.value)


def test_columns_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"frage": "1 + 1?", "antwort": 2}\n')
    env = make(str(tmp_path / "q.jsonl"), question="frage", answer="antwort")
    assert env.reset()[0] == "1 + 1?"
    assert env.step("\\boxed{2}")[1] == 1.0


def test_a_template_shows_the_question_where_it_says(path: str) -> None:
    env = make(path, template="{x} Solve: {question} {")
    assert env.reset(row=4)[0] == "{x} Solve: question 4 {"


@pytest.mark.parametrize(
    ("kwargs", "suffix"),
    [
        ({}, BOX.text),
        ({"instruction": "Only \\boxed{}."}, "Only \\boxed{}."),
        ({"instruction": False}, None),
        ({"instruction": ""}, None),
        ({"template": "Solve: {question}"}, BOX.text),
        ({"template": "{question} Use \\boxed{}."}, None),
        ({"template": "{question} Use \\boxed{}.", "instruction": "Be brief."}, "Be brief."),
    ],
    ids=str,
)
def test_the_form_of_the_answer_is_said_after_the_question(path: str, kwargs: dict[str, Any], suffix: str) -> None:
    observation, info = make(path, **kwargs).reset(row=4)
    assert info.get("suffix") == suffix
    assert "question 4" in observation
    assert shown_text(observation, info) == observation + (f"\n{suffix}" if suffix else "")


@pytest.mark.parametrize("instruction", [None, 1, ["\\boxed{}"]], ids=repr)
def test_an_instruction_of_another_kind_is_refused(path: str, instruction: Any) -> None:
    with pytest.raises(EnvError, match="instruction"):
        make(path, instruction=instruction)


@pytest.mark.parametrize(
    ("env_id", "mark"), [("math:Sample", "\\boxed{"), ("qa:Sample", "<answer>"), ("code:Sample", "```")]
)
def test_every_kind_of_question_says_its_own_form(env_id: str, mark: str) -> None:
    assert mark in gem_core.make(env_id).reset(row=0)[1]["suffix"]
    assert "suffix" not in gem_core.make(env_id, instruction=False).reset(row=0)[1]


def test_a_published_text_stays_bare(path: str) -> None:
    env = gem_core.make("math:Math12K-v0", dataset=path)
    assert env.reset(row=4) == ("question 4", {})


def test_a_template_without_the_question_is_refused(path: str) -> None:
    with pytest.raises(EnvError, match=r"\{question\}"):
        make(path, template="Solve this.")


def test_a_question_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"problem": null, "answer": "2"}\n')
    with pytest.raises(EnvError, match="None"):
        make(str(tmp_path / "q.jsonl")).reset()


UNUSABLE = [None, "", " ", [], {}, {"a": 1}, [""], ["5", ""], ["5", None], [["5"]]]


@pytest.mark.parametrize("env_id", ["math:Dataset", "qa:Dataset"])
@pytest.mark.parametrize("gold", UNUSABLE, ids=repr)
def test_a_row_without_a_usable_answer_is_told_before_any_is_asked(env_id: str, tmp_path: Path, gold: Any) -> None:
    rows = [{"problem": "?", "answer": 5}, {"problem": "?", "answer": gold}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = gem_core.make(env_id, dataset=tmp_path / "q.jsonl", question="problem")
    with pytest.raises(EnvError, match=r"row 1 .*'answer'"):
        env.reset(row=0)


def test_a_row_that_lacks_a_column_is_told_before_any_is_asked(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"problem": "?", "answer": 5}\n{"problem": "?"}\n')
    with pytest.raises(EnvError, match=r"row 1 .*no column 'answer'"):
        make(str(tmp_path / "q.jsonl")).reset(row=0)


def test_the_rows_of_a_file_are_checked_once_for_each_pair_of_columns(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"problem": "?", "answer": 5, "note": null}\n')
    make(str(tmp_path / "q.jsonl")).reset()
    with pytest.raises(EnvError, match="'note'"):
        make(str(tmp_path / "q.jsonl"), answer="note").reset()


def test_a_stream_tells_an_unusable_answer_when_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "q.jsonl").write_text('{"problem": "?", "answer": "5"}\n{"problem": "?", "answer": ""}\n')
    env = make(str(tmp_path / "q.jsonl"), streaming=True, shuffle_seed=None)
    env.reset()
    with pytest.raises(EnvError, match="'answer'"):
        env.reset()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0", None, True])
def test_a_reward_that_is_no_number_is_refused(path: str, value: Any) -> None:
    with pytest.raises(EnvError, match="format_reward"):
        make(path, format_reward=value)


def test_any_answer_ends_the_episode(path: str) -> None:
    env = make(path)
    for action in ("", "\\boxed{1}", "nothing"):
        env.reset(data_index=0)
        observation, _, terminated, truncated, info = env.step(action)
        assert (observation, terminated, truncated) == ("", True, True)
        assert info["success"] is info["correct"]
