"""The same learning in every framework: one configuration, several seeds, all curves in one image.

    python benchmarks/curves.py --python trl=PYTHON --python verl=PYTHON --python openrlhf=PYTHON --python oat=PYTHON \\
        --python roll=PYTHON [--seeds 0 1 2]

Each framework runs in its own virtual environment, one run after another, from the same weights on disk. Model,
estimator, episodes per batch, updates per batch, optimizer and learning rate are the same; the games differ. Prints the
mean success of each run, whether frameworks differ by more than their seeds do, and the cost of the runs: wall time,
and the CPU time of all processes, from the start of the framework to its end.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from matplotlib.figure import Figure
from packaging.version import Version

HERE = Path(__file__).parent
TASKS = {
    "corridor": {"env": "game:Corridor-v0", "episodes": 24, "updates": 25, "warm_start_steps": 100},
    "guess": {"env": "game:GuessTheNumber-v0-easy", "episodes": 64, "updates": 25, "warm_start_steps": 800},
}
SHARED = {"advantage": "rebn", "gamma": 0.95, "response_tokens": 4, "learning_rate": 1e-3, "clip": 0.5}
BUILD_MODEL = """
import sys, torch
from gem_tiny import tiny_policy
torch.set_num_threads(1)
env, steps, seed, folder = sys.argv[1:]
for part in tiny_policy(env, warm_start_steps=int(steps), seed=int(seed)):
    part.save_pretrained(folder)
"""
COLOURS = ["tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple"]

PR_SET_CHILD_SUBREAPER = 36
"""Constant of Linux's prctl."""

Curve = list[float]


def main() -> None:
    options = _options()
    pythons = dict(pair.split("=", 1) for pair in options.python)
    output = Path(options.output).resolve()
    builder = oldest(pythons.values())
    curves: dict[str, dict[str, dict[int, Curve]]] = {}
    follow_orphans()
    for task, (framework, python), seed in itertools.product(options.tasks, pythons.items(), options.seeds):
        folder = output / f"{task}-{framework}-{seed}"
        if not (folder / "metrics.jsonl").exists():
            settings: dict[str, Any] = {**TASKS[task], **SHARED, "seed": seed}
            weights = model(output / f"model-{task}-{seed}", settings, seed, builder)
            run(python, framework, {**settings, "model": str(weights)}, folder)
        curve = [line["episode/success"] for line in metrics(folder)]
        curves.setdefault(task, {}).setdefault(framework, {})[seed] = curve
    _report(curves)
    _report_costs(output, options.tasks, [*pythons], options.seeds)
    _draw(curves, output / "curves.png")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, metavar="FRAMEWORK=PYTHON")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--output", default="runs/curves", help="existing runs are not repeated")
    return parser.parse_args()


def follow_orphans() -> None:
    """Make orphans of later runs, for example Ray's, our children, so that their costs are counted."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def oldest(pythons: Iterable[str]) -> str:
    """The one with the oldest transformers: all releases read what it writes."""
    return min(pythons, key=_transformers)


def model(folder: Path, settings: Mapping[str, Any], seed: int, python: str) -> Path:
    """The weights that all frameworks start from."""
    if not folder.exists():
        arguments = [str(settings["env"]), str(settings["warm_start_steps"]), str(seed), str(folder)]
        subprocess.run([python, "-c", BUILD_MODEL, *arguments], check=True, env=_environment(python))
    return folder


def _transformers(python: str) -> Version:
    code = "from importlib.metadata import version; print(version('transformers'))"
    return Version(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)


def run(python: str, framework: str, settings: Mapping[str, Any], folder: Path) -> None:
    """Train in a framework. The metrics, the log and the cost are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    script = [python, str(HERE / f"curves_{framework}.py"), json.dumps({**settings, "folder": str(folder)})]
    with (folder / "log.txt").open("wb") as log:
        cost = _cost(psutil.Popen(script, env=_environment(python), stdout=log, stderr=subprocess.STDOUT))
    (folder / "cost.json").write_text(json.dumps(cost))
    print(f"{folder.name}: {cost['wall']:.0f} s, {cost['cpu']:.0f} s of CPU", flush=True)


def _cost(program: psutil.Popen, patience: float = 60) -> dict[str, float]:
    """Wall seconds of a program, and CPU seconds of all its processes, read twice a second.

    Not from the kernel's sums over children, because Ray's daemon makes the kernel drop them.
    """
    started = time.perf_counter()
    used: dict[psutil.Process, float] = {}
    while program.poll() is None:
        _read_cpu(used)
        time.sleep(0.5)
    wall = time.perf_counter() - started
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, program.args)
    deadline = time.monotonic() + patience
    while _read_cpu(used):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{patience:.0f} s after its end, a run still has processes")
        time.sleep(0.5)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # orphans that have ended
            pass
    return {"wall": wall, "cpu": sum(used.values())}


def _read_cpu(used: dict[psutil.Process, float]) -> bool:
    """Record the CPU time of each descendant; returns whether any is alive."""
    alive = False
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used[process] = times.user + times.system
            alive |= process.status() != psutil.STATUS_ZOMBIE
    return alive


def metrics(folder: Path) -> list[dict[str, float]]:
    """Each update's metrics."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def _environment(python: str) -> dict[str, str]:
    # Launchpad calls the `python` on the path.
    path = f"{Path(python).absolute().parent}{os.pathsep}{os.environ['PATH']}"
    # Oat's environment has an incomplete TensorFlow, which transformers would import.
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "USE_TF": "0", "PATH": path}


def _report(curves: Mapping[str, Mapping[str, Mapping[int, Curve]]]) -> None:
    for task, frameworks in curves.items():
        print(f"\n{task}: success, mean over all updates / over the last ten")
        means: dict[str, list[float]] = {}
        for framework, runs in frameworks.items():
            means[framework] = [statistics.fmean(curve) for curve in runs.values()]
            ends = [statistics.fmean(curve[-10:]) for curve in runs.values()]
            shown = "  ".join(f"{mean:.3f}/{end:.3f}" for mean, end in zip(means[framework], ends, strict=True))
            print(f"  {framework:8s} {shown}   mean {statistics.fmean(means[framework]):.3f}")
        if any(len(runs) < 2 for runs in frameworks.values()):
            continue  # one run shows no spread between seeds
        for one, other in itertools.combinations(means, 2):
            apart = abs(statistics.fmean(means[one]) - statistics.fmean(means[other]))
            spread = max(max(means[name]) - min(means[name]) for name in (one, other))
            verdict = "within" if apart <= spread else "BEYOND"
            print(f"  {one} and {other} are {apart:.3f} apart, {verdict} the spread between seeds of {spread:.3f}")


def _report_costs(output: Path, tasks: Sequence[str], frameworks: Sequence[str], seeds: Sequence[int]) -> None:
    """The cost of a run, the mean over its seeds."""
    for task in tasks:
        print(f"\n{task}: updates, turns, wall seconds, CPU seconds of a run")
        for framework in frameworks:
            folders = [output / f"{task}-{framework}-{seed}" for seed in seeds]
            updates = statistics.fmean(len(metrics(folder)) for folder in folders)
            turns = statistics.fmean(sum(line["rollout/turns"] for line in metrics(folder)) for folder in folders)
            costs = [json.loads((folder / "cost.json").read_text()) for folder in folders]
            wall, cpu = (statistics.fmean(cost[key] for cost in costs) for key in ("wall", "cpu"))
            print(f"  {framework:8s} {updates:.0f} {turns:7.0f} {wall:7.0f} {cpu:7.0f}")


def _draw(curves: Mapping[str, Mapping[str, Mapping[int, Curve]]], path: Path) -> None:
    figure = Figure(figsize=(5.5 * len(curves), 4), layout="constrained")
    for axes, (task, frameworks) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        for colour, (framework, runs) in zip(COLOURS, frameworks.items(), strict=False):
            for curve in runs.values():
                axes.plot(range(1, len(curve) + 1), _smooth(curve), color=colour, alpha=0.35, linewidth=1)
            mean = [statistics.fmean(numbers) for numbers in zip(*runs.values(), strict=True)]
            axes.plot(range(1, len(mean) + 1), _smooth(mean), color=colour, linewidth=2.5, label=framework)
        axes.set(title=TASKS[task]["env"], xlabel="update", ylabel="success (mean of 5 updates)", ylim=(0, 1.02))
        axes.legend(loc="lower right")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    print(f"\nWrote {path}")


def _smooth(curve: Curve) -> Curve:
    return [statistics.fmean(curve[max(0, at - 4) : at + 1]) for at in range(len(curve))]


if __name__ == "__main__":
    main()
