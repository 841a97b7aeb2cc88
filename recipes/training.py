"""Plays one run in TRL."""

from __future__ import annotations

import importlib.metadata
import math
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from transformers import TrainerCallback

from gem_train.settings import RunSettings
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer
from recipes.measures import MEASURES
from recipes.meter import Meter
from recipes.policies import policy
from recipes.results import Result, curve, declared
from recipes.source import commit
from recipes.study import Run, WarmStart

KEPT = (
    "episode/success",
    "episode/return",
    "episode/turns",
    "turn/invalid",
    "rollout/turns",
    "entropy",
    "critic/explained_variance",
)
"""Metrics whose curves a result has, besides those of the run's measure and of its environments."""
SUMMED = ("rollout/turns", "rollout/episodes")
DISTRIBUTIONS = ("gem-core", "peft", "torch", "transformers", "trl")


def play(run: Run, cache: Path) -> Result:
    """Train as declared.

    Args:
        run: what to train.
        cache: folder of warm-started weights, which runs share.

    Raises:
        RecipeError: the warm start would teach answers.
        GemError: settings that cannot work.
    """
    model, tokenizer, random_success = run.model, None, None
    settings = dict(run.settings)
    RunSettings(modules=list(settings.get("modules", []))).import_modules()
    if isinstance(run.model, WarmStart):
        model, tokenizer, random_success = policy(run.model, run.seed, cache)
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    measure = settings.pop("measure", "none")
    with tempfile.TemporaryDirectory(prefix="recipe") as folder, Meter(MEASURES[measure]) as meter:
        progress = ProgressCallback(run.name)
        more = _MeterCallback(meter)
        args = TurnGRPOConfig(folder, seed=run.seed, **_QUIET, **settings)
        trainer = TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress, more], peft_config=_adapters(run))
        if run.evaluate:
            before = _numbers(trainer.evaluate())
            meter.take()
        started = time.process_time()
        trainer.train()
        spent = time.process_time() - started
        if run.evaluate:
            after = _numbers(trainer.evaluate())
    # Only the first process of a group has a report.
    lines = progress.report.history if progress.report is not None else []
    history = [line for line in lines if "episode/return" in line]
    return _result(run, history, more.means, spent, random_success, before, after)


_QUIET: Mapping[str, Any] = {
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
}


class _MeterCallback(TrainerCallback):
    """Reads the meter after each update."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.means: list[dict[str, float]] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        # Of several updates on one batch, only the first one has played.
        if means := self._meter.take():
            self.means.append(means)


def _result(
    run: Run,
    history: list[dict[str, float]],
    means: list[dict[str, float]],
    spent: float,
    random_success: float | None,
    before: dict[str, float],
    after: dict[str, float],
) -> Result:
    names = [name for name in KEPT if any(name in line for line in history)]
    names += sorted({name for line in history for name in line if name.startswith("env/") and name.count("/") > 1})
    curves = {name: curve([line.get(name, math.nan) for line in history]) for name in names}
    for name in sorted({name for line in means for name in line}):
        curves[name] = curve([line.get(name, math.nan) for line in means])
    return Result(
        name=run.name,
        phase=run.phase,
        task=run.task,
        cell=run.cell,
        seed=run.seed,
        run=declared(run),
        updates=len(history),
        curves=curves,
        totals={name: sum(line[name] for line in history) for name in SUMMED},
        cpu_seconds=round(spent, 1),
        commit=commit(),
        versions={name: importlib.metadata.version(name) for name in DISTRIBUTIONS},
        random_success=random_success,
        before=before,
        after=after,
    )


def _adapters(run: Run) -> LoraConfig | None:
    return LoraConfig(r=run.lora, lora_alpha=2 * run.lora, target_modules="all-linear") if run.lora else None


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    kept = ("/success", "/return", "/turns", "tool/calls", "/invalid")
    return {name: round(float(value), 4) for name, value in metrics.items() if name.endswith(kept)}


def prepare() -> None:
    """Settings of a process that plays runs."""
    commit()  # now, before anybody edits a file that this process has loaded
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_num_threads(1)
