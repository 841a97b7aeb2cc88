"""Plays one run in the framework that its cell names."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from packaging.version import Version

from recipes.frameworks.held_out import evaluation
from recipes.frameworks.programs import ROOT, answer, python_of, run
from recipes.results import RecipeError, Result, curve, declared
from recipes.source import commit
from recipes.study import Run, WarmStart

DISTRIBUTIONS = {"trl": "trl", "verl": "verl", "openrlhf": "openrlhf", "oat": "oat-llm", "roll": "roll"}
KEPT = ("episode/success", "episode/return", "episode/turns", "turn/invalid", "rollout/turns")
SUMMED = ("rollout/turns", "rollout/episodes")
_VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def prepare() -> None:
    """Remember the commit before anybody edits a file."""
    commit()


def play(run_: Run, cache: Path) -> Result:
    """Train in the framework, with the program `benchmarks/curves_<framework>.py`.

    Args:
        run_: what to train; its cell is the framework.
        cache: folder of warm-started weights, which all frameworks share, and of logs.

    Raises:
        RecipeError: an environment is missing, the training failed, or the warm start would teach answers.
        GemError: the environment of the evaluation cannot be built.
    """
    python = python_of(run_.cell)
    model, success = _weights(run_, cache)
    cache.mkdir(parents=True, exist_ok=True)
    before = evaluation(model, run_.settings) if run_.evaluate else {}
    with tempfile.TemporaryDirectory(prefix="recipe") as folder:
        settings = {
            **run_.settings,
            "seed": run_.seed,
            "model": str(model),
            "folder": folder,
            "save": run_.evaluate,
        }
        log = Path(cache, f"{run_.name}.log").absolute()
        spent = run(python, [str(ROOT / f"benchmarks/curves_{run_.cell}.py"), json.dumps(settings)], log)
        history = _history(Path(folder, "metrics.jsonl"), run_.settings["updates"], log)
        after = evaluation(_learned(Path(folder), log), run_.settings) if run_.evaluate else {}
    names = [name for name in KEPT if any(name in line for line in history)]
    return Result(
        name=run_.name,
        phase=run_.phase,
        task=run_.task,
        cell=run_.cell,
        seed=run_.seed,
        run=declared(run_),
        updates=len(history),
        curves={name: curve([line.get(name, math.nan) for line in history]) for name in names},
        totals={name: sum(line.get(name, 0.0) for line in history) for name in SUMMED},
        cpu_seconds=round(spent, 1),
        commit=commit(),
        versions=_versions(python, "gem-core", "torch", "transformers", DISTRIBUTIONS[run_.cell]),
        random_success=success,
        before=before,
        after=after,
    )


def _history(path: Path, updates: int, log: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    history = [line for line in lines if "episode/return" in line]
    if len(history) != updates:
        raise RecipeError(f"the training reported {len(history)} updates of {updates}. Next: read {log}")
    return history


def _learned(folder: Path, log: Path) -> Path:
    """Where below a folder a framework has saved its model, as transformers does."""
    files = [file for file in folder.rglob("*.safetensors") if (file.parent / "config.json").exists()]
    if not files:
        raise RecipeError(f"the training left no model. Next: read {log}")
    return max(files, key=lambda file: file.stat().st_mtime).parent


def _weights(run_: Run, cache: Path) -> tuple[Path, float]:
    """The weights that all frameworks start from, made with the oldest transformers here, which all others read."""
    assert isinstance(run_.model, WarmStart)
    pythons: dict[str, Path] = {}
    for framework in DISTRIBUTIONS:
        try:
            pythons[framework] = python_of(framework)
        except RecipeError:
            if framework == run_.cell:
                raise
    builder = min(pythons.values(), key=lambda one: Version(_versions(one, "transformers")["transformers"]))
    told = json.dumps([asdict(run_.model), run_.settings["modules"], run_.seed, str(cache.absolute() / "shared")])
    made = json.loads(answer(builder, "-m", "recipes.frameworks.weights", told))
    return Path(made["folder"]), made["success"]


def _versions(python: Path, *names: str) -> dict[str, str]:
    return json.loads(answer(python, "-c", _VERSIONS, *names))
