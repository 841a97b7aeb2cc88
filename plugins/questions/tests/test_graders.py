"""Graders that a user writes."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gem_core
from gem_core.errors import EnvError
from gem_questions import RIGHT, WRONG, Grader, QuestionEnv, Verdict
from gem_train.arguments import recorded

ROWS: list[dict[str, Any]] = [{"question": "What is 3 + 4?", "answer": "7", "unit": "m"}]


class Tagged(QuestionEnv):
    """Its answer follows a colon; its own grade takes none."""

    def answer_in(self, response: str) -> str | None:
        return response.partition(":")[2] or None

    def grade(self, action: str) -> Verdict:
        return WRONG

    def sample_random_action(self) -> str:
        return ":7"


def ends_with(response: str, reference: str) -> bool:
    return response.endswith(reference)


class Units:
    """A grader with a setting."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, answer: str, row: Any) -> float:
        return self.factor * (row["unit"] in answer)


def step(grader: Grader | str, response: str, rows: Any = ROWS, **kwargs: Any) -> tuple[float, dict[str, Any]]:
    env = Tagged(rows, grader=grader, **kwargs)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(response)
    assert terminated
    assert truncated
    return reward, info


def test_a_function_grades_in_place_of_the_environment() -> None:
    assert step(ends_with, "It is 7") == (1.0, {"success": True, "correct": True})
    assert step(ends_with, "It is 8") == (0.0, {"success": False, "correct": False})


def test_it_is_given_what_it_names() -> None:
    seen: dict[str, Any] = {}

    def grader(question: str, response: str, answer: str, reference: str, row: Any, weight: float = 0.5) -> float:
        seen.update(locals())
        return weight

    assert step(grader, "so: 7")[0] == 0.5
    assert (seen["question"], seen["response"], seen["answer"], seen["reference"]) == (
        "What is 3 + 4?",
        "so: 7",
        " 7",
        "7",
    )
    assert seen["row"] == ROWS[0]


def test_one_that_changes_the_row_changes_its_own() -> None:
    env = Tagged(ROWS, grader=lambda row: len(row.clear() or row))
    for _ in range(2):
        assert env.reset(seed=0)[0] == ROWS[0]["question"]
        assert env.step("so: 7")[1] == 0.0


def test_one_that_takes_everything_is_given_everything() -> None:
    assert step(lambda **known: len(known), "so: 7")[0] == 5.0


def test_one_that_names_the_answer_is_called_where_there_is_one() -> None:
    calls: list[str] = []

    def grader(answer: str) -> float:
        calls.append(answer)
        return 1.0

    assert step(grader, "no answer", format_reward=-0.5) == (
        -0.5,
        {"success": False, "correct": False, "invalid_action": True},
    )
    assert calls == []
    assert step(grader, ":7")[0] == 1.0


@pytest.mark.parametrize(
    ("returned", "reward", "success"),
    [
        (0.25, 0.25, False),
        (1, 1.0, True),
        (2.5, 2.5, True),
        (-1, -1.0, False),
        (True, 1.0, True),
        (False, 0.0, False),
        (np.float32(0.5), 0.5, False),
        (np.bool_(True), 1.0, True),
        (RIGHT, 1.0, True),
        (Verdict(0.5, correct=True, info={"why": "half"}), 0.5, True),
    ],
)
def test_what_it_may_return(returned: Any, reward: float, success: bool) -> None:
    found, info = step(lambda response: returned, ":7")
    assert (found, info["success"]) == (reward, success)
    assert type(found) is float


@pytest.mark.parametrize(
    "returned", [None, "1", float("nan"), float("inf"), [1.0], np.array([1.0, 2.0]), Verdict(float("nan"))]
)
def test_what_it_may_not_return(returned: Any) -> None:
    with pytest.raises(
        EnvError, match=r"returned .* finite number, True, False or a gem_questions.Verdict.*response=':7'"
    ):
        step(lambda response: returned, ":7")


def test_an_error_in_it_names_it_and_the_line() -> None:
    def careless(answer: str) -> float:
        return float(answer)

    with pytest.raises(EnvError, match=r"careless raised at .*test_graders.py:\d+: ValueError: .*answer=' seven'"):
        step(careless, "so: seven")


@pytest.mark.parametrize(
    ("grader", "message"),
    [
        (lambda solution, truth: 1.0, "has a parameter 'solution', and nothing is known for it"),
        (lambda responses: 1.0, "Did you mean 'response'"),
        (lambda response, /: 1.0, "nothing is known for it"),
        (5, "grader must be a function or 'package.module:function', and is 5"),
        ("ends_with", "not of the form 'package.module:function'"),
        ("gem_no_such:grade", "importing 'gem_no_such' failed"),
        ("gem_questions:lasttag", "Did you mean 'last_tag'"),
        (int, "int"),
    ],
)
def test_one_that_cannot_be_called_is_refused_at_once(grader: Any, message: str) -> None:
    with pytest.raises(EnvError, match=message):
        Tagged(ROWS, grader=grader)


def test_a_coroutine_function_is_refused() -> None:
    async def later(response: str) -> float:
        return 1.0

    with pytest.raises(EnvError, match="coroutine function"):
        Tagged(ROWS, grader=later)  # pyright: ignore[reportArgumentType]


def test_objects_and_partial_functions_grade() -> None:
    assert step(Units(0.5), "so: 7 m")[0] == 0.5
    assert step(partial(ends_with, reference="8"), "so: 8")[0] == 1.0


def test_a_row_needs_only_what_the_grader_wants() -> None:
    assert (
        step(lambda question, response: response in question, "3 + 4", rows=[{"question": "What is 3 + 4?"}])[0] == 1.0
    )
    assert (
        step(lambda reference: len(reference["steps"]), ":7", rows=[{"question": "?", "answer": {"steps": [1, 2]}}])[0]
        == 2
    )
    with pytest.raises(EnvError, match="there is no column 'answer'"):
        step(ends_with, ":7", rows=[{"question": "?"}])


def test_it_comes_back_with_the_state() -> None:
    env = Tagged(ROWS, grader=ends_with)
    env.reset(seed=0)
    state = pickle.loads(pickle.dumps(env.get_state()))
    env.step("It is 8")
    env.set_state(state)
    assert env.step("It is 7")[1] == 1.0


def test_records_name_it_as_the_argument_takes_it() -> None:
    assert recorded({"grader": ends_with}) == {"grader": f"{__name__}:ends_with"}
    assert recorded(Units(0.5)) == f"{__name__}:Units"


def test_it_travels_to_the_processes_that_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_graders.py").write_text(
        "def grade(response, reference):\n    return float(response == reference)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    graders = {"graded:Text-v0": "my_graders:grade", "graded:Local-v0": lambda response: float(response == "7")}
    kwargs = {name: {"dataset": ROWS, "grader": grader} for name, grader in graders.items()}
    for name in kwargs:
        gem_core.register(name, Tagged)
    with gem_core.make_vec([*kwargs], num_envs=2, seed=0, backend="process", workers=1, env_kwargs=kwargs) as vec:
        vec.reset()
        assert vec.step(["7", "7"])[1].tolist() == [1.0, 1.0]
        assert vec.step(["8", "7"])[1].tolist() == [0.0, 1.0]


def test_an_error_in_it_is_the_episodes_and_says_so() -> None:
    gem_core.register("graded:Broken-v0", Tagged)
    kwargs = {"dataset": ROWS, "grader": lambda response: 1 / len(response)}
    with gem_core.make_vec("graded:Broken-v0", num_envs=1, seed=0, env_kwargs=kwargs) as vec:
        vec.reset()
        infos = vec.step([""])[4]
    assert "ZeroDivisionError" in str(infos[0].get("error") or infos[0]["final_info"]["error"])
