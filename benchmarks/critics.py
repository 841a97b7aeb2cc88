"""Does the critic of each framework learn? Explained variance of the returns, with `gae`.

    python benchmarks/critics.py --python verl=PYTHON --python openrlhf=PYTHON --python oat=PYTHON [--seeds 0 1]

Minesweeper pays for each open cell, so what is still to come depends on the board. In the corridor (`--task corridor`)
it depends on the position, and a policy that has learned visits all positions with the same returns.

Each framework runs in its own virtual environment, one run after another, from the same weights on disk. Prints for
each run `critic/explained_variance`, which is measured before the critic learns from the batch: of the first update,
and the mean over the last five; and the return over the last five. ROLL has no critic here.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from pathlib import Path
from typing import Any

from curves import follow_orphans, metrics, model, oldest, run

SHARED = {"warm_start_steps": 100, "advantage": "gae", "gamma": 0.9, "episodes": 64, "clip": 0.5}
TASKS: dict[str, dict[str, Any]] = {
    "minesweeper": {
        "env": "game:Minesweeper-v0-easy",
        "response_tokens": 10,
        "updates": 25,
        "learning_rate": 1e-3,
        "critic_learning_rate": 1e-3,
    },
    "corridor": {
        "env": "game:Corridor-v0",
        "response_tokens": 4,
        "updates": 60,
        "learning_rate": 2e-4,
        "critic_learning_rate": 1e-3,
    },
}
OWN = ("updates", "learning_rate", "critic_learning_rate")
"""Settings of a task that an option may change."""
EXPLAINED = "critic/explained_variance"


def main() -> None:
    options = _options()
    pythons = dict(pair.split("=", 1) for pair in options.python)
    output = Path(options.output).resolve()
    changed = {name: value for name in OWN if (value := getattr(options, name)) is not None}
    settings: dict[str, Any] = {**SHARED, **TASKS[options.task], **changed}
    seeds: list[int] = options.seeds
    builder = oldest(pythons.values())
    follow_orphans()
    for framework, seed in itertools.product(pythons, seeds):
        folder = output / f"{options.task}-{framework}-{seed}"
        if not (folder / "metrics.jsonl").exists():
            weights = model(output / f"model-{options.task}-{seed}", settings, seed, builder)
            run(pythons[framework], framework, {**settings, "seed": seed, "model": str(weights)}, folder)
        lines = metrics(folder)
        explained = [line[EXPLAINED] for line in lines if EXPLAINED in line]
        score = statistics.fmean(line["episode/return"] for line in lines[-5:])
        print(
            f"{framework:8s} seed {seed}: explained variance {explained[0]:.2f} at first, "
            f"{statistics.fmean(explained[-5:]):.2f} at the end ({len(explained)} updates); return {score:.2f}",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, metavar="FRAMEWORK=PYTHON")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--task", choices=TASKS, default="minesweeper")
    parser.add_argument("--updates", type=int, help="default: those of the task")
    parser.add_argument("--learning-rate", type=float, help="default: the task's")
    parser.add_argument("--critic-learning-rate", type=float, help="default: the task's")
    parser.add_argument("--output", default="runs/critics", help="existing runs are not repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
