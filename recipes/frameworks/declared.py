"""The study `frameworks`: every task, framework, budget and seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipes.frameworks.corridor import DENSE
from recipes.study import Run, Study, WarmStart

SEEDS = (0, 1, 2, 3, 4)
FRAMEWORKS = ("trl", "verl", "openrlhf", "oat", "roll")
SHARED: Mapping[str, Any] = {
    "advantage": "rebn",
    "episodes": 64,
    "response_tokens": 4,
    "clip": 0.5,
    "modules": ["recipes.frameworks.corridor"],
}
"""Settings of the programs `benchmarks/curves_*.py`."""
TASKS: Mapping[str, Mapping[str, Any]] = {
    "dense-corridor": {"env": DENSE, "gamma": 0.7, "learning_rate": 5e-4, "updates": 25},
    "guess": {"env": "game:GuessTheNumber-v0-easy", "gamma": 0.95, "learning_rate": 1e-3, "updates": 120},
}
MODELS: Mapping[str, WarmStart] = {
    "dense-corridor": WarmStart((DENSE,), 100, 0.6),
    "guess": WarmStart(("game:GuessTheNumber-v0-easy",), 800, 0.4),
}


def _run(task: str, framework: str, seed: int) -> Run:
    return Run(framework, task, seed, {**SHARED, **TASKS[task]}, MODELS[task])


def _runs(profile: str) -> list[Run]:
    # The frameworks' own examples have the settings for GPUs, one framework at a time.
    if profile != "cpu":
        return []
    return [_run(task, framework, seed) for task in TASKS for seed in SEEDS for framework in FRAMEWORKS]


def _short() -> Run:
    settings = {**SHARED, **TASKS["dense-corridor"], "episodes": 16, "updates": 2}
    return Run("trl", "dense-corridor", 0, settings, WarmStart((DENSE,), 5, 0.6), "short")


STUDY = Study("frameworks", _runs, _short(), player="recipes.frameworks.playing")
