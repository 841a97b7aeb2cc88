"""The result of a run: a small JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recipes.study import Run


class RecipeError(Exception):
    """A run that cannot be played or a result that cannot be read; the message says what to do next."""


@dataclass(frozen=True)
class Result:
    """What a run left."""

    name: str
    phase: str
    task: str
    cell: str
    seed: int
    run: dict[str, Any]
    """All settings of the run, as they were declared."""
    updates: int
    curves: dict[str, list[float]]
    """A number of each update, by metric. NaN where an update has none."""
    totals: dict[str, float]
    """Sums over all updates: turns and episodes played."""
    cpu_seconds: float
    """Of the process during the training, without imports and warm start."""
    commit: str
    versions: dict[str, str]
    random_success: float | None = None
    """The success of the play that the warm start read; `None` for other models."""
    before: dict[str, float] = field(default_factory=dict[str, float])
    """The evaluation before training, where there is one."""
    after: dict[str, float] = field(default_factory=dict[str, float])
    """The evaluation after training."""

    def end(self, metric: str) -> float:
        """The mean of a metric over the last fifth of the training."""
        curve = self.curves[metric]
        return float(np.nanmean(curve[-max(1, len(curve) // 5) :]))

    def start(self, metric: str) -> float:
        """The mean of a metric over the first tenth of the training."""
        curve = self.curves[metric]
        return float(np.nanmean(curve[: max(1, len(curve) // 10)]))

    def area(self, metric: str) -> float:
        """The mean of a metric over all updates."""
        return float(np.nanmean(self.curves[metric]))


def curve(values: Sequence[float]) -> list[float]:
    """A metric of each update, to four digits. A missing one is NaN."""
    return [round(float(value), 4) for value in values]


def declared(run: Run) -> dict[str, Any]:
    """A run as JSON. What a run leaves open is left out, so that older results stay those of their runs."""
    settings = json.loads(json.dumps(asdict(run)))
    if isinstance(settings["model"], dict):
        for name in ("episodes", "system_prompt", "base"):
            if settings["model"][name] is None:
                del settings["model"][name]
    if not settings["lora"]:
        del settings["lora"]
    return settings


def write(folder: Path, result: Result) -> Path:
    """Store a result at once or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    draft = path.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(json.dumps(asdict(result), indent=None, separators=(",", ":")) + "\n")
    draft.replace(path)
    return path


def read(folder: Path, *, phase: str = "main") -> list[Result]:
    """The results of a folder, in the order of their names.

    Raises:
        RecipeError: a file is no result.
    """
    results: list[Result] = []
    for path in sorted(folder.glob("*.json")):
        try:
            result = Result(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise RecipeError(
                f"{path} is no result of a run ({error}). Next: remove it, and run its cell again"
            ) from error
        if result.phase == phase:
            results.append(result)
    return results


def is_of(path: Path, run: Run) -> bool:
    """Whether a file is the result of exactly this run. A run whose settings changed has none."""
    if not path.exists():
        return False
    try:
        return json.loads(path.read_text()).get("run") == declared(run)
    except ValueError:
        return False
