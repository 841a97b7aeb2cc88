"""The study `gamma`: every environment, model, discount, lever, budget and seed.

A number from 1 to 50, and 20 guesses. The optimum is bisection, 243/50 = 4.86 guesses on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recipes import guessing
from recipes.study import HELD_OUT, PAPER, SMOLLM2, TINY, Run, Study, WarmStart

SEEDS = (0, 1, 2, 3, 4)
GAMMAS = (0.9, 0.5, 1.0, 0.99, 0.8, 0.95, 0.999)
"""In the order in which their runs are worth their time."""
CHOSEN_GAMMA = 0.9
"""The discount of the runs that compare levers, and of the long ones."""
LIMIT = 20
"""Guesses of an episode. Bisection needs at most 6, so the limit bites only who has not learned."""

PAID_FOR_NEARNESS = "game:GuessTheNumber-v0-hard"
ENV = "game:GuessTheNumber-v1-hard"
"""Without a reward for a near last guess."""
BOUNDS = "recipes.gamma.bounds:Bounds"
SOME_POSSIBLE = "recipes.gamma.bounds:SomePossible"
MINIBATCHES = 4
"""Updates on each batch, with an equal share of its turns each."""

RECIPE: Mapping[str, Any] = {
    **TINY,
    "env": [ENV],
    "env_kwargs": {"max_turns": LIMIT},
    "wrappers": [BOUNDS],
    "history": 1,
    "row": "turn",
    "advantage": "rebn",
    "per_device_train_batch_size": 64 // MINIBATCHES,
    "steps_per_generation": MINIBATCHES,
    "max_completion_length": 5,
    "learning_rate": 5e-4,
    "entropy_coef": 0.002,
    "max_steps": 100 * MINIBATCHES,
    "measure": "guesses",
}
LEVERS: Mapping[str, Mapping[str, Any]] = {
    "nearness-pays": {"env": [PAID_FOR_NEARNESS]},
    "blind-warm-start": {},
    "one-update": {"per_device_train_batch_size": 64, "steps_per_generation": 1, "max_steps": 100},
    "numbers-are-tokens": {},
}
"""What differs from the recipe in the runs that compare levers."""
LONG_BATCHES = 600
"""Of the long runs, whose learning rate falls to zero."""
LONG: Mapping[str, Mapping[str, Any]] = {
    f"gamma-{CHOSEN_GAMMA:g}": {},
    "256-episodes": {"per_device_train_batch_size": 256 // MINIBATCHES, "entropy_coef": 0.0},
}
"""What differs from the recipe in the long runs. Trials with seed 0 led to the first, with seed 10 to the second."""
WARM_START_STEPS = 300
BLIND_CHANCE = LIMIT / 50
"""Of finding the number with `LIMIT` different guesses."""
CHANCE = 0.95
"""The same where a third of the guesses are possible ones."""


def _model(settings: Mapping[str, Any], *, digits: bool = True, blind: bool = False) -> WarmStart:
    return WarmStart(
        env=tuple(settings["env"]),
        steps=WARM_START_STEPS,
        chance=BLIND_CHANCE if blind else CHANCE,
        env_kwargs=settings["env_kwargs"],
        wrappers=(BOUNDS if blind else SOME_POSSIBLE,),
        digits=digits,
    )


def _discounted(gamma: float, seed: int) -> Run:
    settings = {**RECIPE, "gamma": gamma}
    return Run(f"gamma-{gamma:g}", "guess50", seed, settings, _model(settings))


def _long(cell: str, seed: int) -> Run:
    run = _discounted(CHOSEN_GAMMA, seed)
    longer = {"max_steps": LONG_BATCHES * MINIBATCHES, "lr_scheduler_type": "linear"}
    return replace(run, task="long", cell=cell, settings={**run.settings, **longer, **LONG[cell]})


def _changed(lever: str, seed: int) -> Run:
    settings = {**RECIPE, "gamma": CHOSEN_GAMMA, **LEVERS[lever]}
    model = _model(settings, digits=lever != "numbers-are-tokens", blind=lever == "blind-warm-start")
    return Run(lever, "levers", seed, settings, model)


def _on_a_cpu() -> Iterator[Run]:
    for seed in SEEDS:
        yield from (_discounted(gamma, seed) for gamma in GAMMAS)
    for seed in SEEDS:
        yield from (_changed(lever, seed) for lever in LEVERS)
    for seed in SEEDS:
        yield from (_long(cell, seed) for cell in LONG)


MODEL_SEEDS = (0, 1, 2)
MODEL_GAMMAS = (0.5, 0.9, 1.0)
MODEL_RECIPE: Mapping[str, Any] = {
    **SMOLLM2,
    **HELD_OUT,
    **guessing.SETTINGS,
    "advantage": "rebn",
    "max_completion_length": 6,
    "measure": "plain-guesses",
}


def _on_smollm2() -> Iterator[Run]:
    for seed in MODEL_SEEDS:
        for gamma in MODEL_GAMMAS:
            settings = {**MODEL_RECIPE, "gamma": gamma}
            yield Run(f"gamma-{gamma:g}", guessing.TASK, seed, settings, guessing.MODEL, evaluate=True, lora=16)


def _on_gpus() -> Iterator[Run]:
    for seed in SEEDS:
        for gamma in GAMMAS:
            own = {"env": ["game:GuessTheNumber-v0-hard-no-max-turn"], "advantage": "rebn", "measure": "guesses"}
            yield Run(f"gamma-{gamma:g}", "guess50", seed, {**PAPER, **own, "gamma": gamma}, "Qwen/Qwen3-1.7B-Base")


def _runs(profile: str) -> list[Run]:
    return [*{"cpu": _on_a_cpu, "smollm2": _on_smollm2, "gpu": _on_gpus}.get(profile, tuple)()]


def _short() -> Run:
    batch = {"per_device_train_batch_size": 8, "steps_per_generation": 2, "max_steps": 4}
    settings = {**RECIPE, **batch, "gamma": CHOSEN_GAMMA, "env_kwargs": {"max_turns": 4}}
    model = WarmStart((ENV,), 20, 0.2, settings["env_kwargs"], (SOME_POSSIBLE,), digits=True)
    return Run("gamma-0.9", "guess50", 0, settings, model, "short")


STUDY = Study("gamma", _runs, _short(), metric="guesses/all")
