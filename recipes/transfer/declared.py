"""The study `transfer`: every environment, mixture, budget and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recipes.study import PAPER, TINY, Run, Study, WarmStart
from recipes.transfer.environments import PLAYED, TRAINED, corridor

SEEDS = (0, 1, 2, 3, 4)
CELLS: Mapping[str, tuple[int, ...]] = {f"length-{length}": (length,) for length in TRAINED} | {"mixed": TRAINED}
"""What is trained on. The mixture has the same number of episodes and updates, so a third of each length."""
EVERY = [corridor(length) for length in PLAYED]
RECIPE: Mapping[str, Any] = {
    **TINY,
    "advantage": "rebn",
    "gamma": 0.7,
    "learning_rate": 5e-4,
    "max_steps": 25,
    "modules": ["recipes.transfer.environments"],
    "eval_env": EVERY,
    "eval_episodes": 512,
    "per_device_eval_batch_size": 64,
}
# All lengths in every warm start, so that no run meets a row of cells or a position for the first time when it is
# evaluated.
MODEL = WarmStart(env=tuple(EVERY), steps=150, chance=0.6)


def _run(cell: str, seed: int) -> Run:
    settings = {**RECIPE, "env": [corridor(length) for length in CELLS[cell]]}
    return Run(cell, "corridors", seed, settings, MODEL, evaluate=True)


PAPER_CELLS: Mapping[str, list[str]] = {
    "hotpotqa": ["qa:HotpotQA"],
    "mixed": ["qa:HotpotQA", "qa:NaturalQuestions"],
}
"""Single and mixed training of the paper's Table 2."""


def _on_gpus() -> Iterator[Run]:
    for seed in SEEDS:
        for cell, env in PAPER_CELLS.items():
            played = ["eval:NaturalQuestions", "eval:HotpotQA"]
            settings = {**PAPER, "env": env, "advantage": "rebn", "max_completion_length": 500, "eval_env": played}
            yield Run(cell, "qa", seed, settings, "Qwen/Qwen3-4B", evaluate=True)


def _on_a_cpu() -> Iterator[Run]:
    return (_run(cell, seed) for seed in SEEDS for cell in CELLS)


def _runs(profile: str) -> list[Run]:
    return [*{"cpu": _on_a_cpu, "gpu": _on_gpus}.get(profile, tuple)()]


def _short() -> Run:
    settings = {**RECIPE, "env": [corridor(5)], "eval_env": [corridor(5), corridor(7)]}
    settings |= {
        "max_steps": 2,
        "per_device_train_batch_size": 16,
        "eval_episodes": 16,
        "per_device_eval_batch_size": 16,
    }
    return Run(
        "length-5", "corridors", 0, settings, WarmStart((corridor(5), corridor(7)), 5, 0.6), "short", evaluate=True
    )


STUDY = Study("transfer", _runs, _short())
