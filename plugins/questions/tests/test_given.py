"""Data that a program gives as an object."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_questions import RIGHT, WRONG, QuestionEnv, Verdict
from gem_train.arguments import recorded

ROWS = [{"question": f"{number} and one?", "answer": number + 1} for number in range(7)]


class Sums(QuestionEnv):
    def grade(self, action: str) -> Verdict:
        return RIGHT if action == str(self.answer) else WRONG

    def sample_random_action(self) -> str:
        return "3"


def table(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


def splits(**parts: Any) -> Any:
    return pytest.importorskip("datasets").DatasetDict(parts)


@pytest.fixture(params=["rows", "table", "one split"])
def data(request: pytest.FixtureRequest) -> Any:
    if request.param == "rows":
        return ROWS
    return table(ROWS) if request.param == "table" else splits(train=table(ROWS))


def test_rows_of_a_program_are_asked(data: Any) -> None:
    env = Sums(data)
    assert (env.data_size, len(env.dataset), env.dataset[2]["answer"]) == (7, 7, 3)
    assert {env.reset()[0] for _ in range(7)} == {row["question"] for row in ROWS}
    env.reset(row=4)
    assert env.step("5")[1] == 1.0


def test_the_data_is_what_was_given() -> None:
    given = table(ROWS)
    assert Sums(given).dataset[:2]["answer"] == [1, 2]
    assert Sums(given).dataset is Sums(given).dataset


def test_rows_that_change_afterwards_stay_as_they_were() -> None:
    rows = [dict(row) for row in ROWS]
    env = Sums(rows)
    rows[0]["answer"] = 5
    rows.clear()
    env.reset(row=0)
    assert env.step("1")[1] == 1.0


def test_the_same_rows_are_one_source_and_others_are_not(data: Any) -> None:
    one, same = Sums(data), Sums(data)
    assert one.questions.source == same.questions.source
    assert one.questions.rows is same.questions.rows
    assert Sums(ROWS[:6]).questions.source != one.questions.source
    assert str(one.questions.source).startswith("given:7 rows, ")


def test_a_snapshot_holds_no_rows_and_a_pickle_does(data: Any) -> None:
    env = Sums(data)
    env.reset(row=3)
    state = env.get_state()
    assert state["questions"].source.given is env.questions.source.given
    sent = pickle.loads(pickle.dumps(state))
    assert sent["questions"].source == env.questions.source
    env.reset(row=0)
    env.set_state(sent)
    assert env.step("4")[1] == 1.0
    assert copy.deepcopy(env).dataset is env.dataset


def test_rows_go_when_the_last_environment_goes() -> None:
    env = Sums(ROWS[1:4])
    env.reset()
    given = weakref.ref(env.questions.source.given)
    del env
    gc.collect()
    assert given() is None


def test_rows_travel_to_the_processes_that_play() -> None:
    kwargs = {"given:Rows-v0": {"dataset": ROWS}, "given:Table-v0": {"dataset": table(ROWS)}}
    for name, own in kwargs.items():
        gem_core.register(name, Sums)
        own["shuffle_seed"] = None
    with gem_core.make_vec([*kwargs], num_envs=4, seed=0, backend="process", workers=1, env_kwargs=kwargs) as vec:
        asked = vec.reset()[0]
        assert sorted(asked) == ["0 and one?", "0 and one?", "1 and one?", "1 and one?"]
        assert vec.step([str(int(one[0]) + 1) for one in asked])[1].tolist() == [1.0] * 4


def test_records_name_rows_by_what_they_hold() -> None:
    name = recorded({"dataset": table(ROWS)})["dataset"]
    assert name == str(Sums(table(ROWS)).questions.source)
    assert recorded([{"a": 1}]) == [{"a": 1}]
    many = [{"question": "?", "answer": number} for number in range(100)]
    assert recorded(many) == str(Sums(many).questions.source) != recorded(many[::-1])
    with pytest.raises(EnvError, match="names rows that a program gave"):
        Sums(name)


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (5, {}, "must be the name of a data set, .* a list of rows or a datasets.Dataset, and is builtins:int"),
        ([{"question": "?", "answer": 1}, "x"], {}, r"row 1 of dataset \(the first is 0\) must be a dict of columns"),
        ({"question": "?", "answer": 1}, {}, "Give rows as a list"),
        ((row for row in ROWS), {}, "a list of rows or a datasets.Dataset, and is builtins:generator"),
        (ROWS, {"split": "test"}, "neither the split 'test'"),
        (ROWS, {"subset": "main"}, "nor the subset 'main'"),
        (ROWS, {"streaming": True}, "streaming=False"),
        ([{"question": "?", "answer": print, "more": lambda: 1}], {}, "cannot be sent to another process"),
    ],
)
def test_what_is_no_data_says_so_at_once(data: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EnvError, match=message):
        Sums(data, **arguments)


def test_no_rows_and_wrong_rows_say_so_at_the_first_reset() -> None:
    with pytest.raises(EnvError, match=r"given:0 rows, .* has no rows"):
        Sums([]).reset()
    with pytest.raises(EnvError, match=r"given:2 rows, .*, row 1 .*there is no column 'answer'"):
        Sums([ROWS[0], {"question": "?"}]).reset()
    with pytest.raises(EnvError, match="column 'answer' must hold"):
        Sums(table([{"question": "?", "answer": " "}])).reset()


def test_a_data_set_with_splits_needs_one() -> None:
    both = splits(train=table(ROWS), test=table(ROWS[:2]))
    assert Sums(both, split="test").data_size == 2
    with pytest.raises(EnvError, match="Name one: split='train'"):
        Sums(both)
    with pytest.raises(EnvError, match="Did you mean 'test'"):
        Sums(both, split="tets")


def test_a_stream_is_named_and_not_given() -> None:
    with pytest.raises(EnvError, match="Give its name with streaming=True"):
        Sums(table(ROWS).to_iterable_dataset())
