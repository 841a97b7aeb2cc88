"""Does the critic of each framework learn? Explained variance of the returns in the corridor, with `gae`.

    python benchmarks/critics.py --python verl=PYTHON --python openrlhf=PYTHON --python oat=PYTHON [--seeds 0 1]

Each framework runs in its own virtual environment, one run after another, from the same weights on disk. Prints for
each run `critic/explained_variance`, which is measured before the critic learns from the batch: of the first update,
and the mean over the last five; and the success over the last five. ROLL has no critic here.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from pathlib import Path
from typing import Any

from curves import follow_orphans, metrics, model, oldest, run

SETTINGS = {
    "env": "game:Corridor-v0",
    "warm_start_steps": 100,
    "advantage": "gae",
    "gamma": 0.9,
    "episodes": 64,
    "response_tokens": 4,
    "clip": 0.5,
}
EXPLAINED = "critic/explained_variance"


def main() -> None:
    options = _options()
    pythons = dict(pair.split("=", 1) for pair in options.python)
    output = Path(options.output).resolve()
    settings: dict[str, Any] = {
        **SETTINGS,
        "updates": options.updates,
        "learning_rate": options.learning_rate,
        "critic_learning_rate": options.critic_learning_rate,
    }
    seeds: list[int] = options.seeds
    builder = oldest(pythons.values())
    follow_orphans()
    for framework, seed in itertools.product(pythons, seeds):
        folder = output / f"{framework}-{seed}"
        if not (folder / "metrics.jsonl").exists():
            weights = model(output / f"model-{seed}", settings, seed, builder)
            run(pythons[framework], framework, {**settings, "seed": seed, "model": str(weights)}, folder)
        lines = metrics(folder)
        explained = [line[EXPLAINED] for line in lines if EXPLAINED in line]
        success = statistics.fmean(line["episode/success"] for line in lines[-5:])
        print(
            f"{framework:8s} seed {seed}: explained variance {explained[0]:.2f} at first, "
            f"{statistics.fmean(explained[-5:]):.2f} at the end ({len(explained)} updates); success {success:.2f}",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, metavar="FRAMEWORK=PYTHON")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--critic-learning-rate", type=float, default=1e-3)
    parser.add_argument("--output", default="runs/critics", help="existing runs are not repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
