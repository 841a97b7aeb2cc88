"""The study `algorithms`: every environment, model, estimator, budget and seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recipes import guessing
from recipes.study import HELD_OUT, PAPER, SMOLLM2, TINY, Run, Study, WarmStart
from recipes.sums import HELD_OUT_SUM, SUM
from recipes.tools.declared import CALCULATOR, LANGUAGE_MODEL, MODEL_RECIPE
from recipes.tools.declared import CELLS as TOOLS

SEEDS = (0, 1, 2, 3, 4)
TUNING_SEEDS = (100, 101)

OTHER_ANSWERS = "recipes.actions:OtherAnswers"


@dataclass(frozen=True)
class Task:
    """An environment, its budget, and what its tiny model reads before training."""

    env: str
    updates: int
    chance: float
    """The success of play without knowledge."""
    warm_start: int
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: bool = False
    """Whether random actions of the environment are right too often, so that the warm start reads others."""

    def model(self) -> WarmStart:
        """The tiny model."""
        return WarmStart(
            env=(self.env,),
            steps=self.warm_start,
            chance=self.chance,
            env_kwargs=self.settings.get("env_kwargs", {}),
            wrappers=(OTHER_ANSWERS,) if self.answers else (),
        )


def _questions(env: str, updates: int, **env_kwargs: Any) -> Task:
    # Without the instruction: the warm start shows the form, and the results are of these prompts.
    settings = {"gamma": 1.0, "max_completion_length": 8, "env_kwargs": {"instruction": False, **env_kwargs}}
    return Task(env, updates, 0.1, 150, settings, answers=True)


TASKS: Mapping[str, Task] = {
    # Many turns, a sparse reward.
    "corridor": Task("game:Corridor-v0", 25, 0.6, 100, {"gamma": 0.7}),
    # One turn, 18 questions.
    "coin_flip": _questions("rg:coin_flip", 60, min_trials=3, max_trials=4),
    # Few turns; the last one pays for being near.
    "guess": Task("game:GuessTheNumber-v0-easy", 60, 0.4, 300, {"gamma": 0.95}),
    # One turn of arithmetic, some hundred questions.
    "leg_counting": _questions("rg:leg_counting", 100, min_animals=1, max_animals=1, max_instances=4),
    # Many turns, a dense reward.
    "minesweeper": Task("game:Minesweeper-v0-easy", 25, 0.02, 100, {"gamma": 0.9, "max_completion_length": 10}),
    # Many turns, a sparse reward.
    "hanoi": Task(
        "game:TowerofHanoi-v0-easy",
        30,
        0.3,
        100,
        {"gamma": 0.9, "max_completion_length": 6, "env_kwargs": {"num_disks": 2, "max_turns": 8}},
    ),
    "fifteen": Task("game:FifteenPuzzle-v0-easy", 40, 0.25, 100, {"gamma": 0.9}),
    # Many turns, a dense reward for progress.
    "mastermind": Task("game:Mastermind-v0-easy", 40, 0.3, 150, {"gamma": 0.95, "max_completion_length": 8}),
}
CELLS = ("reinforce", "rebn", "grpo", "gae", "rloo", "gigpo")
FIRST_CELLS = CELLS[:4]
"""The estimators of the paper."""

RATES = (5e-4, 1e-3, 2e-3)
"""Learning rates that are compared on `TUNED_ON`, with seeds that no figure shows."""
TUNED_ON = ("corridor",)
CHOSEN: Mapping[str, float] = {
    "reinforce": 1e-3,
    "rebn": 1e-3,
    "grpo": 5e-4,
    "gae": 1e-3,
    "rloo": 1e-3,
    "gigpo": 1e-3,
}
"""The learning rate of each estimator: that of the largest mean score of its tuning runs."""

GROUP = 8
"""Episodes of one task, for the estimators that compare them."""


def _run(name: str, cell: str, seed: int, rate: float, phase: str = "main") -> Run:
    task = TASKS[name]
    own = {"critic_learning_rate": rate} if cell == "gae" else {}
    settings = {
        **TINY,
        **task.settings,
        **own,
        "env": [task.env],
        "advantage": cell,
        "num_generations": GROUP,
        "max_steps": task.updates,
        "learning_rate": rate,
    }
    suffix = f"@{rate:g}" if phase == "tuning" else ""
    return Run(f"{cell}{suffix}", name, seed, settings, task.model(), phase)


def _on_a_cpu() -> Iterator[Run]:
    for task, seed, rate, cell in itertools.product(TUNED_ON, TUNING_SEEDS, RATES, CELLS):
        yield _run(task, cell, seed, rate, "tuning")
    for cells in (FIRST_CELLS, CELLS[len(FIRST_CELLS) :]):
        for tasks in (tuple(TASKS)[:2], tuple(TASKS)[2:]):
            for seed in SEEDS:
                yield from (_run(task, cell, seed, CHOSEN[cell]) for task in tasks for cell in cells)


MODEL_SEEDS = (0, 1, 2)
MODEL_GROUP = 4
"""Episodes of one task with SmolLM2."""
MODEL_TASKS: Mapping[str, tuple[WarmStart | str, Mapping[str, Any]]] = {
    # One turn.
    "sums": (
        "smollm2",
        {
            "modules": ["recipes.sums"],
            "env": SUM,
            "eval_env": HELD_OUT_SUM,
            "system_prompt": CALCULATOR,
            "gamma": 1.0,
            "max_completion_length": 8,
            "max_steps": 24,
        },
    ),
    # Several turns; held out are other numbers.
    guessing.TASK: (guessing.MODEL, {**guessing.SETTINGS, "gamma": 0.9, "max_completion_length": 6}),
    # Several turns with the Python tool.
    "calculation": (LANGUAGE_MODEL, {**MODEL_RECIPE, "wrappers": TOOLS["tool"]}),
}


def _on_smollm2() -> Iterator[Run]:
    for seed, (task, (model, settings)), cell in itertools.product(MODEL_SEEDS, MODEL_TASKS.items(), FIRST_CELLS):
        own = {"critic_learning_rate": SMOLLM2["learning_rate"]} if cell == "gae" else {}
        every = {**SMOLLM2, **HELD_OUT, **settings, **own, "advantage": cell, "num_generations": MODEL_GROUP}
        yield Run(cell, task, seed, every, model, evaluate=True, lora=16)


PAPER_MODEL = "Qwen/Qwen3-1.7B-Base"
PAPER_TASKS: Mapping[str, Mapping[str, Any]] = {
    "guess": {"env": ["game:GuessTheNumber-v0-hard"]},
    "minesweeper": {"env": ["game:Minesweeper-v0-easy"]},
    "sudoku": {"env": ["game:Sudoku-v0-easy"]},
    "sudoku_hard": {"env": ["game:Sudoku-v0-hard"]},
    "coin_flip": {"env": ["rg:coin_flip"], "gamma": 1.0},
    "chain_sum": {"env": ["rg:chain_sum"], "gamma": 1.0},
    "hotpotqa": {"env": ["qa:HotpotQA"], "max_completion_length": 500},
    "orz57k": {"env": ["math:Orz57K"], "gamma": 1.0},
}
"""The paper shows three data sets of reasoning-gym without their names, so two are ours."""


def _on_gpus() -> Iterator[Run]:
    for seed in SEEDS:
        for name, settings in PAPER_TASKS.items():
            for cell in FIRST_CELLS:
                own = {"critic_learning_rate": 1e-5} if cell == "gae" else {}
                every = {**PAPER, **settings, **own, "advantage": cell, "num_generations": GROUP}
                yield Run(cell, name, seed, every, PAPER_MODEL)


def _runs(profile: str) -> list[Run]:
    return [*{"cpu": _on_a_cpu, "smollm2": _on_smollm2, "gpu": _on_gpus}.get(profile, tuple)()]


def _short() -> Run:
    run = _run("corridor", "rebn", 0, 1e-3)
    settings = {**run.settings, "max_steps": 3, "per_device_train_batch_size": 16}
    return Run("rebn", "corridor", 0, settings, WarmStart(("game:Corridor-v0",), 5, 0.6), "short")


STUDY = Study("algorithms", _runs, _short(), "episode/return")
