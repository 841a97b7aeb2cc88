"""The study `smollm2`: every framework, budget and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recipes.frameworks.declared import FRAMEWORKS
from recipes.study import Run, Study, WarmStart

TASK = "plain-guess"
MODEL = WarmStart(("game:PlainGuess-v0",), 6, 1 - (4 / 5) ** 3, base="smollm2")
SEEDS = (0, 1, 2)
SETTINGS: Mapping[str, Any] = {
    "env": "game:PlainGuess-v0",
    "eval_env": "game:PlainGuess-v0-test",  # other numbers than those of the training
    "eval_episodes": 72,
    "system_prompt": "You guess numbers.",
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
