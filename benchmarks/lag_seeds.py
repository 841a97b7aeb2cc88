"""Learning while sampling runs ahead in TRL, with and without a correction, beside the synchronous run.

    python benchmarks/lag_seeds.py [--tasks corridor guess] [--seeds 3] [--lags 1 4] [--correction tis] \\
        [--learning-rate 3e-4] [--updates 80] [--output runs/lag_seeds] [--minutes 9]

Other settings are those of `benchmarks/curves.py`; all runs of a task start from the same warm-started weights. How old
the tokens are depends on how fast sampler and trainer are, up to the bound, so the mean staleness is printed, too.

Settings of these runs are kept in the output folder, and a series does not continue with others.
Each run that ends adds a line to `runs.jsonl` in the output folder, and runs that have one are not repeated. After
`minutes`, no further run begins; the same command continues. At the end it prints a table: success, mean of all updates
and of the last ten, for each seed.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from curves import SHARED, TASKS
from curves_trl import train
from kept_options import keep
from transformers import AutoModelForCausalLM, AutoTokenizer

from gem_tiny import tiny_policy


@dataclass(frozen=True)
class Options:
    """What to compare."""

    tasks: tuple[str, ...] = tuple(TASKS)
    seeds: int = 3
    lags: tuple[int, ...] = (1, 4)
    correction: str = "tis"
    learning_rate: float = 3e-4
    updates: int = 80
    output: Path = Path("runs/lag_seeds")
    minutes: float = 9.0


def main(options: Options) -> None:
    keep(options.output, settings(options))
    torch.set_num_threads(1)
    ends = time.monotonic() + 60 * options.minutes
    ways = [(0, "none"), *((lag, one) for lag in options.lags for one in ("none", options.correction))]
    done = finished(options.output)
    # Seed by seed, so that an unfinished series compares as many seeds of each way.
    for task, seed, (lag, correction) in itertools.product(options.tasks, range(options.seeds), ways):
        if (task, seed, lag, correction) in done:
            continue
        if time.monotonic() > ends:
            break
        line = {"task": task, "seed": seed, "lag": lag, "correction": correction}
        line |= measure(options, warm_model(options.output, task), task, seed, lag, correction)
        with (options.output / "runs.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
    report(options, ways, finished(options.output))


def settings(options: Options) -> dict[str, Any]:
    """What every run of a task is made with, by `task.name`. All else is in the lines of the results."""
    return {f"{task}.{name}": value for task in TASKS for name, value in task_settings(options, task).items()}


def task_settings(options: Options, task: str) -> dict[str, Any]:
    """The settings of `benchmarks/curves.py` with the learning rate and the updates of these runs."""
    return {**SHARED, **TASKS[task], "learning_rate": options.learning_rate, "updates": options.updates}


def finished(folder: Path) -> dict[tuple[str, int, int, str], dict[str, Any]]:
    """The lines of finished runs, by task, seed, lag and correction."""
    path = folder / "runs.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(one["task"], one["seed"], one["lag"], one["correction"]): one for one in lines}


def warm_model(output: Path, task: str) -> Path:
    """The folder of the weights that all runs of a task start from."""
    folder = output / f"model-{task}"
    if not (folder / "complete").exists():
        game: dict[str, Any] = TASKS[task]
        for part in tiny_policy(game["env"], warm_start_steps=game["warm_start_steps"], seed=0):
            part.save_pretrained(folder)
        (folder / "complete").touch()
    return folder


def measure(options: Options, start: Path, task: str, seed: int, lag: int, correction: str) -> dict[str, float]:
    """One run: mean staleness, success of all updates and of the last ten, and CPU seconds."""
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    used = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        own = {**task_settings(options, task), "folder": folder, "seed": seed}
        more = {"max_staleness": lag, "correction": correction, "disable_tqdm": True}
        lines = train(model, AutoTokenizer.from_pretrained(start), own, **more)
    success = [line["episode/success"] for line in lines]
    return {
        "staleness": statistics.fmean(line["staleness/mean"] for line in lines),
        "success": statistics.fmean(success),
        "last_ten": statistics.fmean(success[-10:]),
        "cpu": time.process_time() - used,
    }


def report(
    options: Options, ways: list[tuple[int, str]], done: dict[tuple[str, int, int, str], dict[str, Any]]
) -> None:
    """Print a line for each task and way."""
    print("| task | bound | correction | mean staleness | success, all updates | mean | last ten | mean |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for task, (lag, correction) in itertools.product(options.tasks, ways):
        keys = [(task, seed, lag, correction) for seed in range(options.seeds)]
        if runs := [done[key] for key in keys if key in done]:
            age = statistics.fmean(one["staleness"] for one in runs)
            columns = [column(runs, name) for name in ("success", "last_ten")]
            print(f"| {task} | {lag} | {correction} | {age:.2f} | {' | '.join(columns)} |")


def column(runs: list[dict[str, Any]], name: str) -> str:
    """The numbers of all runs and their mean."""
    return f"{', '.join(f'{one[name]:.3f}' for one in runs)} | {statistics.fmean(one[name] for one in runs):.3f}"


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
