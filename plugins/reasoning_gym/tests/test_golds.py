"""Answers, checked by solvers of our own: few entries of each data set; gold_audit.py checks fifty."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("reasoning_gym")

sys.path.insert(0, str(Path(__file__).parents[1]))

import gem_core
import gold_audit
from gem_reasoning_gym._entries import Definition, entry
from gem_reasoning_gym._golds import CORRECTED, corrected
from gem_reasoning_gym._names import names
from gold_solvers import SOLVERS, UNCHECKED

pytestmark = pytest.mark.long

SLOW = {"futoshiki", "puzzle24", "sokoban", "modulo_grid", "knight_swap", "sudoku", "intermediate_integration"}
"""Data sets of which an entry takes long to make or to check."""


def told(name: str, number: int, data_seed: int = 42) -> dict[str, Any]:
    return entry(Definition.of(name, {}), data_seed, number)


def played(env_id: str, number: int, answer: str) -> float:
    with gem_core.make(env_id) as env:
        env.reset(row=number)
        return env.step(f"\\boxed{{\n{answer} }}" if not env_id.endswith("-v0") else f"\\boxed{{{answer}}}")[1]


def first_wrong(name: str) -> int:
    """The first entry that reasoning-gym has wrong."""
    return next(number for number in range(400) if not SOLVERS[name].is_right(told(name, number)))


def test_every_data_set_has_a_solver_or_a_reason() -> None:
    assert {*SOLVERS}.isdisjoint(UNCHECKED)
    assert {*SOLVERS, *UNCHECKED} == {*names()}


def test_the_page_has_every_solver_and_no_wrong_answer() -> None:
    rows = [
        line.split(" | ") for line in gold_audit.PAGE.read_text(encoding="utf-8").split("\n") if line.startswith("| `")
    ]
    checked = {row[0].strip("| `"): row for row in rows if len(row) == 4}
    assert {*checked} == {*SOLVERS}
    assert {row[1] for row in checked.values()} == {one.how for one in SOLVERS.values()}
    assert {row[3].strip(" |") for row in checked.values()} == {str(gold_audit.ENTRIES)}
    assert {name for name, row in checked.items() if row[2] != str(gold_audit.ENTRIES)} <= {*CORRECTED}


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_answers_are_right(name: str) -> None:
    assert gold_audit.audited(name, 2 if name in SLOW else 6, data_seed=7).ours == []


@pytest.mark.parametrize(
    "name", sorted({*SOLVERS} - {"needle_haystack", "intermediate_integration", "simple_integration"})
)
def test_a_solver_refuses_the_answer_of_another_entry(name: str) -> None:
    """Not all of them: another entry may have the same answer."""
    refused = 0
    for number in range(1, 4):
        try:
            refused += not SOLVERS[name].is_right(
                {**told(name, 0), "answer": corrected(name, told(name, number))["answer"]}
            )
        except Exception:  # of another shape
            refused += 1
    assert refused or name in ("isomorphic_strings", "ransom_note", "game_of_life_halting", "course_schedule")


@pytest.mark.parametrize("name", sorted(CORRECTED))
def test_what_is_right_is_paid_and_the_published_answer_under_its_own_id(name: str) -> None:
    number = first_wrong(name)
    theirs = told(name, number)
    right = corrected(name, theirs)["answer"]
    assert right != theirs["answer"]
    assert played(f"rg:{name}", number, right) == 1.0
    assert played(f"rg:{name}", number, theirs["answer"]) < 1.0
    assert played(f"rg:{name}-v0", number, theirs["answer"]) == 1.0


def test_a_lock_toggles_its_light_at_every_press() -> None:
    number = first_wrong("quantum_lock")
    right = corrected("quantum_lock", told("quantum_lock", number))["answer"].split(" \u2192 ")
    assert played("rg:quantum_lock", number, ", ".join(right)) == 1.0
    assert played("rg:quantum_lock", number, " \u2192 ".join(right[:-1])) == 0.0
    assert played("rg:quantum_lock", number, "press nothing") == 0.0
