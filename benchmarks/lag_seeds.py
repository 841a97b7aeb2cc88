"""Learning while sampling runs ahead in TRL, with and without a correction, beside the synchronous run.

    python benchmarks/lag_seeds.py [--tasks corridor guess] [--seeds 3] [--lags 1 4] [--correction tis]

Settings are those of `benchmarks/curves.py`; all runs of a task start from the same warm-started weights. How old the
tokens are depends on how fast sampler and trainer are, up to the bound, so the mean staleness is printed, too.
Prints a line for each run as it ends: success, mean of all updates and of the last ten.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
from dataclasses import dataclass
from typing import Any

import torch
import tyro
from curves import SHARED, TASKS
from curves_trl import train

from gem_tiny import tiny_policy


@dataclass(frozen=True)
class Options:
    """What to compare."""

    tasks: tuple[str, ...] = tuple(TASKS)
    seeds: int = 3
    lags: tuple[int, ...] = (1, 4)
    correction: str = "tis"


def main(options: Options) -> None:
    torch.set_num_threads(1)
    ways = [(0, "none"), *((lag, one) for lag in options.lags for one in ("none", options.correction))]
    print("| task | seed | bound | correction | mean staleness | success, all updates | last ten |", flush=True)
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for task in options.tasks:
        game: dict[str, Any] = TASKS[task]
        model, tokenizer = tiny_policy(game["env"], warm_start_steps=game["warm_start_steps"], seed=0)
        for seed in range(options.seeds):
            for lag, correction in ways:
                with tempfile.TemporaryDirectory() as folder:
                    settings = {**SHARED, **game, "folder": folder, "seed": seed}
                    more = {"max_staleness": lag, "correction": correction, "disable_tqdm": True}
                    lines = train(copy.deepcopy(model), tokenizer, settings, **more)
                success = [line["episode/success"] for line in lines]
                age = statistics.fmean(line["staleness/mean"] for line in lines)
                print(
                    f"| {task} | {seed} | {lag} | {correction} | {age:.2f} | {statistics.fmean(success):.3f} | "
                    f"{statistics.fmean(success[-10:]):.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
