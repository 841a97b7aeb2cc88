"""The study `smollm2`: every framework, budget and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recipes import guessing
from recipes.frameworks.declared import FRAMEWORKS
from recipes.guessing import MODEL, TASK
from recipes.study import Run, Study

SEEDS = (0, 1, 2)
SETTINGS: Mapping[str, Any] = {
    **guessing.SETTINGS,
    "eval_episodes": 72,
    "advantage": "rebn",
    "gamma": 0.9,
    "episodes": 24,
    "updates": 12,
    "response_tokens": 6,
    "context": 96,
    "learning_rate": 2e-5,  # of all weights: OpenRLHF's engines cannot load LoRA
    "clip": 0.5,
    "modules": [],
}
"""Settings of the programs `benchmarks/curves_*.py`, and of the evaluations."""


def _runs(profile: str) -> list[Run]:
    if profile != "cpu":
        return []
    return [Run(framework, TASK, seed, SETTINGS, MODEL, evaluate=True) for seed in SEEDS for framework in FRAMEWORKS]


def _short() -> Run:
    settings = {**SETTINGS, "updates": 2, "episodes": 8, "eval_episodes": 8}
    return Run("trl", TASK, 0, settings, replace(MODEL, steps=1), "short", evaluate=True)


STUDY = Study("smollm2", _runs, _short(), player="recipes.frameworks.playing")
