"""Mathematical questions: what is paid for which answer, and that no answer is evaluated where training runs."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import gem_core
import gem_math
from gem_core.env import Env, StepResult
from gem_core.errors import EnvError, MissingExtraError
from gem_core.installation import install_line
from gem_core.responses import last_box
from gem_grading import Grade
from gem_math._degenerate import is_degenerate
from gem_support.distinct_ids import distinct
from gem_testing import EnvConformance, check_env

pytest.importorskip("math_verify")

SAMPLE = [json.loads(line) for line in Path(gem_math.__file__).with_name("sample.jsonl").read_text().splitlines()]
HUB = ["ASDiv2K", "GSM8K", "Math12K", "Math8K-3to5", "Orz57K", "DeepScaleR40K"]
EVAL = ["MATH500", "AMC", "OlympiadBench", "Minerva", "AIME24"]


def asked(tmp_path: Path, answer: Any, **kwargs: Any) -> Env:
    """An environment that asks for this answer."""
    (tmp_path / "q.jsonl").write_text(json.dumps({"problem": "?", "answer": answer}))
    env = gem_core.make("math:Dataset", dataset=str(tmp_path / "q.jsonl"), **kwargs)
    env.reset(seed=0)
    return env


def answered(env: Env, action: str) -> StepResult:
    """The same question again, and this answer to it."""
    env.reset(seed=0)
    return env.step(action)


def boxed(content: str) -> str:
    return f"So it is $\\boxed{{{content}}}$."


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_the_answers_of_the_sample_are_right_and_those_of_others_wrong() -> None:
    env = gem_core.make("math:Sample")
    for index, row in enumerate(SAMPLE):
        assert env.reset(row=index)[0] == row["problem"]
        assert env.step(boxed(row["answer"]))[1:] == (1.0, True, True, {"success": True, "correct": True})
        if row["kind"] in ("integer", "fraction", "decimal", "unit", "percent"):
            env.reset(row=index)
            assert env.step(boxed(str(10**9 + index)))[1:] == (0.0, True, True, {"success": False, "correct": False})


@pytest.mark.parametrize(("index", "answer"), [(20, "x^2 + 2x - 15"), (30, "(-\\infty, 5]"), (34, "2"), (35, "(4, 3)")])
def test_another_expression_is_wrong(index: int, answer: str) -> None:
    env = gem_core.make("math:Sample")
    env.reset(row=index)
    assert env.step(boxed(answer))[1:] == (0.0, True, True, {"success": False, "correct": False})


@pytest.mark.parametrize(
    ("index", "answer"),
    [(20, "-15 + x^2 - 2x"), (21, "(3b + 2a)(2a - 3b)"), (22, "\\sqrt{32}"), (25, "\\frac{n^2+n}{2}"), (34, "3, 2")],
)
def test_another_way_to_write_an_expression_is_right_too(index: int, answer: str) -> None:
    env = gem_core.make("math:Sample")
    env.reset(row=index)
    assert env.step(boxed(answer))[1] == 1.0


def test_without_a_box_nothing_is_paid_and_the_action_is_invalid(tmp_path: Path) -> None:
    env = asked(tmp_path, "5")
    for action in ("5", "", "\\boxed{5", "\\boxed 5"):
        assert answered(env, action)[1:] == (
            0.0,
            True,
            True,
            {"success": False, "correct": False, "invalid_action": True},
        )
    assert asked(tmp_path, "5", format_reward=-0.1).step("5")[1] == -0.1


def test_the_last_box_counts(tmp_path: Path) -> None:
    env = asked(tmp_path, "5")
    assert answered(env, "\\boxed{4} no, \\boxed{5}")[1] == 1.0
    assert answered(env, "\\boxed{5} no, \\boxed{4}")[1] == 0.0


@pytest.mark.parametrize("gold", [5, 5.0, "5", "\\boxed{5}", ["4", "5"], [5]])
def test_golds_are_texts_numbers_or_lists_of_them(tmp_path: Path, gold: Any) -> None:
    env = asked(tmp_path, gold)
    assert answered(env, "\\boxed{5}")[1] == 1.0
    assert answered(env, "\\boxed{6}")[1] == 0.0


@pytest.mark.parametrize(("published", "module"), [(False, "mpmath"), (True, "math_verify")])
def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, published: bool, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}.*{re.escape(install_line('math'))}"):
        gem_core.make("math:Sample", published=published)


def test_our_verdict_needs_no_math_verify_and_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    monkeypatch.setattr("gem_math.published.grade", None)
    assert asked(tmp_path, "x^2 - 1").step(boxed("(x-1)(x+1)"))[1] == 1.0


def test_plain_answers_ask_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("this needs no grading process")

    monkeypatch.setattr("gem_math.published.grade", never)
    env = asked(tmp_path, "\\frac{3}{4}", published=True)
    for answer, reward in {"0.75": 1.0, "6/8": 1.0, "\\dfrac34": 1.0, "0.8": 0.0, "3": 0.0, "": 0.0}.items():
        assert answered(env, boxed(answer))[1] == reward
    assert answered(env, boxed("x" * 100_000))[1] == 0.0


# -- hostile answers ---------------------------------------------------------------------------------------------------

HOSTILE = {
    "system": "__import__('os').system('touch {file}')",
    "open": "open('{file}', 'w')",
    "sympify": "exec(\"open('{file}','w')\")",
    "tower": "9**9**9**9",
    "latex tower": "9^{{9^{{9^{{9}}}}}}",
    "factorial": "99999999999!!!",
    "parentheses": "(" * 450 + "1" + ")" * 450,
    "many parentheses": "(" * 5000 + "1" + ")" * 5000,
    "braces": "{{" * 400 + "1" + "}}" * 400,
    "tags": "<answer>" * 20_000,
    "NUL": "1\0",
    "surrogate": "\ud800 + 1",
    "integral": "\\int_0^1 \\frac{{\\sin(x^x)}}{{\\ln(x)^{{99}}}} dx",
    "choices": "(A) " * 240 + "1",
    "repeat": "\\sqrt{{" * 60 + "2" + "}}" * 60,
}


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_costs_itself_and_nothing_else(tmp_path: Path, kind: str, published: bool) -> None:
    canary = tmp_path / "canary"
    env = asked(tmp_path, "x^2 + 1", published=published)
    hostile = HOSTILE[kind].format(file=canary) if "{file}" in HOSTILE[kind] else HOSTILE[kind].replace("{{", "{")
    _, reward, terminated, _, info = env.step(boxed(hostile.replace("}}", "}")))
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert not canary.exists()
    for _ in range(3):  # upstream's next four answers were graded wrong
        env.reset(seed=0)
        assert env.step(boxed("1 + x^2"))[1] == 1.0


def test_an_answer_that_takes_too_long_says_so(tmp_path: Path) -> None:
    info = asked(tmp_path, "x^2 + 1", published=True, timeout=0.3).step(boxed("99999999999! + x"))[4]
    assert "time" in info["grading_error"] or "memory" in info["grading_error"]


@pytest.mark.parametrize(
    "answer",
    ["(1", "x^{2", "]5", "(" * 41 + "1" + ")" * 41, "5!!!!", "5! ! ! !", "9^{9^{9^9}} x", "9**9**9**9", "9^(9^(9^9))"],
)
def test_a_degenerate_answer_is_wrong_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr("gem_math.published.grade", None)
    assert is_degenerate(answer)
    if last_box(boxed(answer)) == answer:
        assert asked(tmp_path, "x^2 + 1", published=True).step(boxed(answer))[1:4] == (0.0, True, True)


@pytest.mark.parametrize(
    "answer",
    [
        "[0, 1)",
        "]0, 1[",
        "x^2y^3z^4",
        "a^{2}b^{3}c^{4}",
        "2^{3^{4}}",
        "3!!!",
        "\\!\\!\\!\\!5",
        "\\left\\{ \\begin{array}{c} 1 \\end{array} \\right.",
        *(row["answer"] for row in SAMPLE),
    ],
)
def test_an_ordinary_answer_is_not_degenerate(answer: str) -> None:
    assert not is_degenerate(answer)


@pytest.mark.parametrize("piece", ["^{", "^9", "**", "! ", "(", "^ ", "9.", "\\left."])
def test_a_degenerate_answer_is_found_in_one_pass(piece: str) -> None:
    start = time.process_time()
    is_degenerate(piece * (1_000_000 // len(piece)))
    assert time.process_time() - start < 1.0


def test_an_answer_that_is_repeated_is_graded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def counting(*arguments: Any, **limits: Any) -> Grade:
        calls.append(arguments)
        return Grade(None, "time limit") if len(calls) == 1 else Grade(True, None)

    monkeypatch.setattr("gem_math.published.grade", counting)
    env = asked(tmp_path, "\\sin(q) + 17", published=True)
    infos = [answered(env, boxed("17 + \\sin(q)"))[4] for _ in range(5)]
    assert [info["success"] for info in infos] == [False, True, True, True, True]  # a failure is not remembered
    assert len(calls) == 2


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 3601, "3", None, True])
def test_a_time_limit_that_cannot_be_is_refused(tmp_path: Path, timeout: Any) -> None:
    with pytest.raises(EnvError, match="timeout"):
        asked(tmp_path, "5", timeout=timeout)


# -- ids ---------------------------------------------------------------------------------------------------------------


class TestSample(EnvConformance):
    env_id = "math:Sample"


HUB_IDS = [f"math:{name}{version}" for name in HUB for version in ("", "-v0")]
EVAL_IDS = [f"eval:{name}{version}" for name in EVAL for version in ("", "-v1")]


@pytest.mark.parametrize("env_id", distinct([*HUB_IDS, *EVAL_IDS], "dataset", "split"))
def test_hub_ids_keep_the_contract_on_a_file_of_their_columns(env_id: str, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("".join(f'{{"problem": "{n} + 0?", "answer": "{n}"}}\n' for n in range(50)))
    check_env(env_id, dataset=str(tmp_path / "q.jsonl"), split=None)


@pytest.mark.parametrize("env_id", [*HUB_IDS, *EVAL_IDS])
def test_training_has_our_verdict_and_evaluation_the_published_one(env_id: str, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"problem": "?", "answer": "1.6\\times 10^{-19}"}))
    env = gem_core.make(env_id, dataset=str(tmp_path / "q.jsonl"), split=None)
    env.reset(data_index=0)
    forgives = env_id.endswith("-v0") or (env_id.startswith("eval:") and not env_id.endswith("-v1"))
    assert env.step(boxed("0.0"))[1] == float(forgives)


def test_evaluation_goes_through_the_data_in_order(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("".join(f'{{"problem": "{n}?", "answer": "{n}"}}\n' for n in range(50)))
    env = gem_core.make("eval:MATH500", dataset=str(tmp_path / "q.jsonl"), split=None)
    assert [env.reset(data_index=task)[0] for task in range(50)] == [f"{n}?" for n in range(50)]


def test_an_evaluation_split_is_read_from_a_folder_laid_out_like_the_hub(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    (tmp_path / "data").mkdir()
    for split in ("math", "amc"):
        rows = [{"problem": f"{split} {n}?", "answer": str(n)} for n in range(3)]
        datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "data" / f"{split}-00000-of-00001.parquet"))
    env = gem_core.make("eval:AMC", dataset=str(tmp_path))
    assert [env.reset()[0] for _ in range(4)] == ["amc 0?", "amc 1?", "amc 2?", "amc 0?"]


# -- images ----------------------------------------------------------------------------------------------------------


def geometry(tmp_path: Path, images: Any) -> Env:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list([{"problem": "<image> Find x.", "answer": "3", "images": images}])
    table.to_parquet(str(tmp_path / "q.parquet"))
    return gem_core.make("math:Geometry3K", dataset=str(tmp_path / "q.parquet"))


def test_images_are_in_the_info_and_the_text_in_the_observation(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    env = geometry(tmp_path, [image.new("RGB", (3, 2), (255, 0, 0)), image.new("L", (5, 5))])
    observation, info = env.reset(data_index=0)
    assert observation == "<image> Find x."
    assert len(info["images"]) == 2
    start, _, data = info["images"][0].partition(",")
    assert start == "data:image/png;base64"
    import io

    shown = image.open(io.BytesIO(base64.b64decode(data)))
    assert (shown.format, shown.size, shown.getpixel((0, 0))) == ("PNG", (3, 2), (255, 0, 0))
    assert env.step("\\boxed{3}")[1] == 1.0
    json.dumps(info)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"datasets\.Image"):
        geometry(tmp_path, ["image.png"]).reset()
