"""Evaluations of data and graders that a program gives as objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gem_evaluation import Entry, EvaluationError, evaluate
from gem_evaluation.regrading import regrade

ROWS = [{"question": f"Say {word}.", "answer": word} for word in ("red", "green", "blue")]


def grade(response: str, reference: str) -> float:
    return 1.0 if reference in response else 0.25


def entry(rows: Any = ROWS) -> Entry:
    return Entry(id="qa:Dataset", env_kwargs={"dataset": rows, "grader": grade})


def says_red(messages: list[dict[str, str]]) -> str:
    return "I say red."


def test_a_function_grades_and_the_run_names_it(tmp_path: Path) -> None:
    results = evaluate(entry(), says_red, output=tmp_path)
    assert results["qa:Dataset"].total_reward.value == pytest.approx(0.5)
    kwargs = json.loads((tmp_path / "run.json").read_text())["identity"]["environments"]["qa:Dataset"]["env_kwargs"]
    assert kwargs == {"dataset": ROWS, "grader": f"{__name__}:grade"}
    assert {one.outcome for one in regrade(tmp_path).episodes} == {"not_built"}
    assert regrade(tmp_path, trust=True).same


def test_other_rows_are_another_evaluation(tmp_path: Path) -> None:
    table = pytest.importorskip("datasets").Dataset.from_list(ROWS)
    evaluate(entry(table), says_red, output=tmp_path)
    evaluate(entry(table), says_red, output=tmp_path)
    name = json.loads((tmp_path / "run.json").read_text())["identity"]["environments"]["qa:Dataset"]["env_kwargs"]
    assert name["dataset"].startswith("given:3 rows, ")
    with pytest.raises(EvaluationError):
        evaluate(entry(table.select([0, 1])), says_red, output=tmp_path)
