"""The study `tools`: every environment, reward, budget and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recipes.study import HELD_OUT, PAPER, SMOLLM2, TINY, Run, Study, WarmStart
from recipes.tools.calculation import CALCULATION

SEEDS = (0, 1, 2, 3, 4)
MODULE = "recipes.tools.calculation"
CELLS: Mapping[str, list[str]] = {
    "no-tool": [],
    "tool": [f"{MODULE}:with_python"],
    "paid-tool": [f"{MODULE}:with_paid_python"],
}
"""The wrappers of each cell. Each is evaluated before and after its training."""
RECIPE: Mapping[str, Any] = {
    **TINY,
    "modules": [MODULE],
    "env": [CALCULATION],
    "advantage": "rebn",
    "gamma": 0.9,
    "per_device_train_batch_size": 64,
    "max_completion_length": 18,
    "learning_rate": 1e-3,
    "max_steps": 120,
    "measure": "tools",
    "eval_env": [CALCULATION],
    "eval_episodes": 256,
    "per_device_eval_batch_size": 64,
}
CHANCE = 1 / 6
"""Half of the episodes begin with a program. They answer with what their last one printed, which is right if its
operator was, a third of the time."""
# The same weights in every cell, also without the tool: only what a cell offers and pays differs.
MODEL = WarmStart(
    env=(CALCULATION,),
    steps=400,
    episodes=1000,  # a program takes 10 ms
    chance=CHANCE,
    wrappers=(f"{MODULE}:with_python", "recipes.tools.format:Format"),
    digits=True,
)


def _run(cell: str, seed: int) -> Run:
    return Run(cell, "calculation", seed, {**RECIPE, "wrappers": CELLS[cell]}, MODEL, evaluate=True)


MODEL_SEEDS = (0, 1, 2)
CALCULATOR = "You calculate."
MODEL_CELLS = ("no-tool", "tool")
MODEL_RECIPE: Mapping[str, Any] = {
    **SMOLLM2,
    **HELD_OUT,
    "modules": [MODULE],
    "env": [CALCULATION],
    "eval_env": [CALCULATION],
    "system_prompt": CALCULATOR,
    "advantage": "rebn",
    "gamma": 0.9,
    "max_completion_length": 24,
    "measure": "tools",
}
LANGUAGE_MODEL = replace(MODEL, base="smollm2", system_prompt=CALCULATOR, steps=12, episodes=None, digits=False)
"""SmolLM2 after a few steps on the same random play."""


def _on_smollm2() -> Iterator[Run]:
    for seed in MODEL_SEEDS:
        for cell in MODEL_CELLS:
            settings = {**MODEL_RECIPE, "wrappers": CELLS[cell]}
            yield Run(cell, "calculation", seed, settings, LANGUAGE_MODEL, evaluate=True, lora=16)


PAPER_CELLS: Mapping[str, list[str]] = {"no-tool": [], "tool": [f"{MODULE}:with_explained_python"]}


def _on_gpus() -> Iterator[Run]:
    for seed in SEEDS:
        for cell, wrappers in PAPER_CELLS.items():
            own = {"env": ["math:Orz57K"], "advantage": "rebn", "gamma": 1.0, "eval_env": ["eval:MATH500"]}
            settings = {**PAPER, **own, "modules": [MODULE], "wrappers": wrappers, "measure": "tools"}
            yield Run(cell, "math", seed, settings, "Qwen/Qwen3-4B-Base", evaluate=True)


def _on_a_cpu() -> Iterator[Run]:
    return (_run(cell, seed) for seed in SEEDS for cell in CELLS)


def _runs(profile: str) -> list[Run]:
    return [*{"cpu": _on_a_cpu, "smollm2": _on_smollm2, "gpu": _on_gpus}.get(profile, tuple)()]


def _short() -> Run:
    batch = {"per_device_train_batch_size": 16, "eval_episodes": 16, "per_device_eval_batch_size": 16}
    settings = {**RECIPE, **batch, "wrappers": CELLS["tool"], "max_steps": 2}
    model = replace(MODEL, steps=5, episodes=100)
    return Run("tool", "calculation", 0, settings, model, "short", evaluate=True)


STUDY = Study("tools", _runs, _short())
