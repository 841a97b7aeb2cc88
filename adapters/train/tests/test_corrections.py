"""Corrections for tokens of another policy, against loops over tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gem_core.errors import SettingsError
from gem_train._corrections import Correction
from gem_train.rows import TurnSpan
from gem_train.settings import RunSettings
from gem_train.turn_table import TurnTable

# Three episodes in two tables of two rows; the first episode has a row for each of its two turns.
SPANS = [[(0, 1, 3)], [(1, 2, 5)], [(0, 0, 2), (1, 3, 4)], [(0, 1, 5)]]
EPISODES = ["a", "a", "b", "c"]
WIDTH = 6


def turn_table() -> TurnTable:
    turns = [[TurnSpan(position, start, end, 0.0, False) for position, start, end in row] for row in SPANS]
    return TurnTable.of(turns, EPISODES, [0, 0, 1, 2])


def units(unit: str) -> list[list[tuple[int, int]]]:
    """The cells (row, column) of each unit."""
    cells: dict[Any, list[tuple[int, int]]] = {}
    for row, turns in enumerate(SPANS):
        for position, start, end in turns:
            for column in range(start, end):
                key = {"token": (row, column), "turn": (row, position), "episode": EPISODES[row]}[unit]
                cells.setdefault(key, []).append((row, column))
    return [*cells.values()]


def expected(kind: str, unit: str, trainer: np.ndarray, sampler: np.ndarray, low: float, high: float) -> np.ndarray:
    weights = np.ones((len(SPANS), WIDTH))
    for cells in units(unit):
        ratio = 1.0
        for cell in cells:
            if not math.isnan(sampler[cell]):
                ratio *= math.exp(trainer[cell]) / math.exp(sampler[cell])
        weight = {"tis": min(ratio, high), "icepop": ratio if low <= ratio <= high else 0.0, "decoupled": ratio}[kind]
        for cell in cells:
            weights[cell] = weight
    return weights


def numbers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(seed)
    trainer, sampler = -dice.random((2, len(SPANS), WIDTH)) * 3
    sampler[0, 2] = math.nan
    return trainer, sampler


def halves(table: np.ndarray) -> list[np.ndarray]:
    return [table[:2].astype(np.float32), table[2:].astype(np.float32)]


@pytest.mark.parametrize("unit", ["token", "turn", "episode"])
@pytest.mark.parametrize("kind", ["tis", "icepop", "decoupled"])
def test_weights_equal_brute_force(kind: Any, unit: Any) -> None:
    seen: set[str] = set()
    for seed in range(20):
        trainer, sampler = numbers(seed)
        correction = Correction(kind, unit, 0.6, 1.7)
        tables, metrics = correction.weights(turn_table(), halves(trainer), halves(sampler))
        want = expected(kind, unit, trainer, sampler, 0.6, 1.7)
        np.testing.assert_allclose(np.concatenate(tables), want, rtol=2e-5)
        own = np.zeros((len(SPANS), WIDTH), dtype=bool)
        for cells in units(unit):
            for cell in cells:
                own[cell] = True
        assert metrics["correction/weight"] == pytest.approx(want[own].mean(), rel=1e-5)
        assert metrics["correction/kl"] == pytest.approx(np.nansum((sampler - trainer)[own]) / own.sum(), abs=1e-6)
        free = expected("decoupled", unit, trainer, sampler, 0, 0)[own]
        limited = {"tis": free > 1.7, "icepop": (free > 1.7) | (free < 0.6), "decoupled": free < 0}[kind]
        assert metrics["correction/limited"] == pytest.approx(limited.mean())
        seen |= {"some" if limited.any() else "none"}
    assert ("some" in seen) == (kind != "decoupled")


@pytest.mark.parametrize("kind", ["tis", "icepop", "decoupled"])
def test_the_same_policy_needs_no_correction(kind: Any) -> None:
    trainer, _ = numbers(0)
    for unit in ("token", "turn", "episode"):
        tables, metrics = Correction(kind, unit).weights(turn_table(), halves(trainer), halves(trainer))
        assert all((table == 1).all() for table in tables)
        assert metrics == {"correction/weight": 1.0, "correction/limited": 0.0, "correction/kl": 0.0}


@pytest.mark.parametrize("kind", ["tis", "icepop", "decoupled"])
def test_weights_stay_finite(kind: Any) -> None:
    trainer, sampler = np.zeros((4, WIDTH)), np.full((4, WIDTH), -1e4)
    for one, other in ((trainer, sampler), (sampler, trainer)):
        tables, metrics = Correction(kind, "episode").weights(turn_table(), halves(one), halves(other))
        assert all(np.isfinite(table).all() for table in tables)
        assert all(map(math.isfinite, metrics.values()))


def test_metrics_are_over_all_processes() -> None:
    trainer, sampler = numbers(1)
    correction, turns = Correction("tis"), turn_table()
    _, alone = correction.weights(turns, halves(trainer), halves(sampler))
    empty = turns.only(np.zeros(len(turns), dtype=np.bool_))
    sums: list[Any] = []
    correction.weights(turns, halves(trainer), halves(sampler), lambda own: sums.append(own) or [own])
    _, idle = correction.weights(empty, halves(trainer), halves(sampler), lambda own: [own, *sums])
    assert idle == alone
    assert correction.weights(empty, halves(trainer), halves(sampler))[1] == {}


def test_settings_make_the_correction() -> None:
    assert RunSettings(env=["a:b"]).off_policy is None
    made = RunSettings(env=["a:b"], correction="icepop", correction_unit="turn", correction_high=5.0)
    assert made.off_policy == Correction("icepop", "turn", 0.5, 5.0)
    RunSettings(env=["a:b"], correction="tis", correction_high=0.25).check()  # which reads no lower bound
    with pytest.raises(SettingsError, match=r"correction_low=3.0 is above correction_high=2.0"):
        RunSettings(env=["a:b"], correction="icepop", correction_low=3).check()
    with pytest.raises(SettingsError, match=r"correction=icepo is not one of.* Did you mean 'icepop'"):
        RunSettings(env=["a:b"], correction="icepo")  # pyright: ignore[reportArgumentType]
