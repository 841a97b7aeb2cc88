"""The study `gamma`: every environment, model, discount, lever, budget and seed.

A number from 1 to 50, and 50 guesses. The optimum is bisection, 243/50 = 4.86 guesses on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recipes.gamma.page import page
from recipes.study import PAPER, TINY, Run, Study, WarmStart

SEEDS = (0, 1, 2, 3, 4)
GAMMAS = (0.9, 0.5, 1.0, 0.99, 0.8, 0.95, 0.999)
"""In the order in which their runs are worth their time."""
CHOSEN_GAMMA = 0.9
"""The discount of the runs that compare levers."""
NUMBERS = 50
LIMIT = 50

PAID_FOR_NEARNESS = "game:GuessTheNumber-v0-hard"
ENV = "game:GuessTheNumber-v1-hard"
"""Without a reward for a near last guess."""
BOUNDS = "recipes.gamma.bounds:Bounds"

RECIPE: Mapping[str, Any] = {
    **TINY,
    "env": [ENV],
    "env_kwargs": {"max_turns": LIMIT},
    "wrappers": [BOUNDS],
    "history": 1,
    "row": "turn",
    "advantage": "rebn",
    "per_device_train_batch_size": 128,
    "max_completion_length": 5,
    "learning_rate": 1e-3,
    "entropy_coef": 0.01,
    "max_steps": 150,
    "measure": "guesses",
}
LEVERS: Mapping[str, Mapping[str, Any]] = {
    "nearness-pays": {"env": [PAID_FOR_NEARNESS]},
    "limit-of-12": {"env_kwargs": {"max_turns": 12}},
    "batches-of-32": {"per_device_train_batch_size": 32},
    "numbers-are-tokens": {},
    "full-history": {"wrappers": [], "history": None, "row": "episode", "max_steps": 50},
}
"""What differs from the recipe in the runs that compare levers."""
WARM_START_STEPS = 400
CHANCE = 0.8
"""Of finding the number among 50 with 40 different guesses at random, after which play is given up."""


def _model(settings: Mapping[str, Any], digits: bool) -> WarmStart:
    return WarmStart(
        env=tuple(settings["env"]),
        steps=WARM_START_STEPS,
        chance=CHANCE,
        env_kwargs=settings["env_kwargs"],
        wrappers=tuple(settings["wrappers"]),
        digits=digits,
    )


def _discounted(gamma: float, seed: int) -> Run:
    settings = {**RECIPE, "gamma": gamma}
    return Run(f"gamma-{gamma:g}", "guess50", seed, settings, _model(settings, True))


def _changed(lever: str, seed: int) -> Run:
    settings = {**RECIPE, "gamma": CHOSEN_GAMMA, **LEVERS[lever]}
    return Run(lever, "levers", seed, settings, _model(settings, lever != "numbers-are-tokens"))


def _on_a_cpu() -> Iterator[Run]:
    for seed in SEEDS:
        yield from (_discounted(gamma, seed) for gamma in GAMMAS)
    for seed in SEEDS:
        yield from (_changed(lever, seed) for lever in LEVERS)


def _on_gpus() -> Iterator[Run]:
    for seed in SEEDS:
        for gamma in GAMMAS:
            own = {"env": ["game:GuessTheNumber-v0-hard-no-max-turn"], "advantage": "rebn", "measure": "guesses"}
            yield Run(f"gamma-{gamma:g}", "guess50", seed, {**PAPER, **own, "gamma": gamma}, "Qwen/Qwen3-1.7B-Base")


def _runs(profile: str) -> list[Run]:
    return [*(_on_a_cpu() if profile == "cpu" else _on_gpus())]


def _short() -> Run:
    settings = {
        **RECIPE,
        "gamma": CHOSEN_GAMMA,
        "env_kwargs": {"max_turns": 4},
        "max_steps": 2,
        "per_device_train_batch_size": 16,
    }
    model = WarmStart((ENV,), 20, 0.1, settings["env_kwargs"], (BOUNDS,), digits=True)
    return Run("gamma-0.9", "guess50", 0, settings, model, "short")


STUDY = Study("gamma", _runs, _short(), page, metric="guesses/all")
