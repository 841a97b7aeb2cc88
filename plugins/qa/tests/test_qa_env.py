"""Questions that a few words answer: what is accepted, in which format, and what is shown."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import gem_core
import gem_qa
from gem_core.env import Env, StepResult
from gem_support.distinct_ids import distinct
from gem_testing import EnvConformance, check_env

SAMPLE = [json.loads(line) for line in Path(gem_qa.__file__).with_name("sample.jsonl").read_text().splitlines()]
PROBLEM = [f"qa:{name}{version}" for name in ("NaturalQuestions", "HotpotQA") for version in ("", "-v0")]
QUESTION = [
    *(f"logic:RuleTaker-d{depth}{version}" for depth in (0, 1, 2, 3, 5) for version in ("", "-v0")),
    *(
        f"eval:{name}{version}"
        for version in ("", "-v1")
        for name in (
            "QaOpen",
            "2Wiki",
            "PopQA",
            "TriviaQA",
            "HotpotQA",
            "Bamboogle",
            "NaturalQuestions",
            "Musique",
        )
    ),
]


def asked(tmp_path: Path, answer: Any, **kwargs: Any) -> Env:
    """An environment that asks for this answer."""
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "Who?", "answer": answer}))
    env = gem_core.make("qa:Dataset", dataset=str(tmp_path / "q.jsonl"), **kwargs)
    env.reset(seed=0)
    return env


def answered(env: Env, action: str) -> StepResult:
    """The same question again, and this answer to it."""
    env.reset(seed=0)
    return env.step(action)


def tagged(answer: str) -> str:
    return f"<think>Hm.</think> <answer>{answer}</answer>"


def test_every_accepted_answer_of_the_sample_is_right_and_others_are_wrong() -> None:
    env = gem_core.make("qa:Sample")
    for index, row in enumerate(SAMPLE):
        assert row["question"] in env.reset(row=index)[0]
        for answer in row["answer"]:
            env.reset(row=index)
            assert env.step(tagged(answer))[1:] == (1.0, True, True, {"success": True, "correct": True})
        env.reset(row=index)
        assert env.step(tagged("Timbuktu"))[1:] == (0.0, True, True, {"success": False, "correct": False})


@pytest.mark.parametrize(
    "answer", ["Nile", "the Nile", "NILE", " nile.\n", "The  Nile!", '"Nile"', "a Nile", "N.i.l.e", "the the Nile"]
)
def test_case_articles_punctuation_and_space_do_not_matter(tmp_path: Path, answer: str) -> None:
    assert asked(tmp_path, ["The Nile"]).step(tagged(answer))[1] == 1.0


@pytest.mark.parametrize("answer", ["Niles", "Ni le", "Nile river", "", "theNile", "Níle"])
def test_other_words_are_wrong(tmp_path: Path, answer: str) -> None:
    assert asked(tmp_path, ["The Nile"]).step(tagged(answer))[1] == 0.0


@pytest.mark.parametrize("gold", ["1969", 1969, ["1968", "1969"], [1969], [True, 1969.0, "1969"]])
def test_golds_are_texts_numbers_or_lists_of_them(tmp_path: Path, gold: Any) -> None:
    assert asked(tmp_path, gold).step(tagged("1969"))[1] == 1.0
    assert asked(tmp_path, gold).step(tagged("1970"))[1] == 0.0


def test_the_last_answer_counts(tmp_path: Path) -> None:
    env = asked(tmp_path, "b")
    assert answered(env, tagged("x") + tagged("b"))[1] == 1.0
    assert answered(env, tagged("b") + tagged("x"))[1] == 0.0


def test_without_an_answer_nothing_is_paid_and_the_action_is_invalid(tmp_path: Path) -> None:
    env = asked(tmp_path, "b")
    for action in ("b", "", "\\boxed{b}", "<answer>b"):
        assert answered(env, action)[1:] == (
            0.0,
            True,
            True,
            {"success": False, "correct": False, "invalid_action": True},
        )
    assert asked(tmp_path, "b", format_reward=-0.5).step("b")[1] == -0.5


def test_the_format_that_is_asked_for_is_the_one_that_is_graded(tmp_path: Path) -> None:
    for boxed, form in {False: "<answer>", True: "\\boxed{"}.items():
        env = asked(tmp_path, "b", boxed=boxed)
        observation, info = env.reset(seed=0)
        assert observation == "Who?"
        assert form in info["suffix"]
        assert "invalid_action" not in env.step(info["suffix"])[4]  # the example in it is an answer
        assert answered(env, "\\boxed{b}" if boxed else tagged("b"))[1] == 1.0


def test_the_instruction_can_be_left_out(tmp_path: Path) -> None:
    assert asked(tmp_path, "b", instruction=False).reset(seed=0) == ("Who?", {})


@pytest.mark.parametrize(
    "action",
    [
        "<answer>" * 20_000,
        "<answer>" * 10_000 + "</answer>" * 10_000,
        tagged("x" * 1_000_000),
        tagged("the " * 250_000),
        tagged("\0"),
        tagged("\ud800"),
        tagged("__import__('os').system('true')"),
        tagged("(" * 5000 + ")" * 5000),
        tagged("9**9**9**9"),
        tagged("a" + "\u0301\u0327" * 100_000),
    ],
    ids=range(10),
)
def test_a_hostile_answer_costs_itself_and_no_time(tmp_path: Path, action: str) -> None:
    env = asked(tmp_path, "b")
    start = time.process_time()
    assert env.step(action)[1] == 0.0
    assert time.process_time() - start < 2.0
    env.reset(seed=0)
    assert env.step(tagged("b"))[1] == 1.0


class TestSample(EnvConformance):
    env_id = "qa:Sample"


@pytest.mark.parametrize("env_id", [*PROBLEM, *QUESTION])
def test_hub_ids_keep_the_contract_on_a_file_of_their_columns(env_id: str, tmp_path: Path) -> None:
    column = "problem" if env_id in PROBLEM else "question"
    rows = [{column: f"Is {n} odd?", "answer": [str(n % 2 == 1)]} for n in range(50)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if env_id in distinct(PROBLEM, "dataset", "split") + distinct(QUESTION, "dataset", "split"):
        check_env(env_id, dataset=str(tmp_path / "q.jsonl"), split=None)
    env = gem_core.make(env_id, dataset=str(tmp_path / "q.jsonl"), split=None)
    assert "odd?" in env.reset(seed=0)[0]
    assert env.step("I do not know.")[1:4] == (0.0, True, True)


@pytest.mark.parametrize("env_id", [*PROBLEM, *QUESTION])
def test_training_has_our_verdict_and_evaluation_the_published_one(env_id: str, tmp_path: Path) -> None:
    column = "problem" if env_id in PROBLEM else "question"
    (tmp_path / "q.jsonl").write_text(json.dumps({column: "?", "answer": ["C++"]}))
    env = gem_core.make(env_id, dataset=str(tmp_path / "q.jsonl"), split=None)
    env.reset(data_index=0)
    forgives = env_id.endswith("-v0") or (env_id.startswith("eval:") and not env_id.endswith("-v1"))
    assert env.step("\\boxed{C}" if env_id.startswith("logic:") else tagged("C"))[1] == float(forgives)


def test_rules_are_answered_in_a_box(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Is it?", "answer": "True"}')
    env = gem_core.make("logic:RuleTaker-d3", dataset=str(tmp_path / "q.jsonl"))
    assert "\\boxed{True}" in env.reset(data_index=0)[1]["suffix"]
    assert env.step("\\boxed{true}")[1] == 1.0
    env.reset(data_index=0)
    assert env.step("<answer>True</answer>")[4]["invalid_action"] is True
