"""Plays the runs that have no result yet, one by one or over Ray."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path

from recipes.results import Result, is_of, write
from recipes.study import Run, Study

CACHE = Path("runs/recipes/models")
"""Warm-started weights. Removing the folder costs only time."""


def missing(runs: Sequence[Run], folder: Path) -> list[Run]:
    """The runs that have no result in a folder, or one of other settings."""
    return [run for run in runs if not is_of(folder / f"{run.name}.json", run)]


def play_all(study: Study, runs: Sequence[Run], folder: Path, *, cache: Path = CACHE) -> list[Result]:
    """Play runs one by one in this process; each result is stored when its run ends.

    In a process that `torchrun` started, all processes of its group play each run together. The first one stores it.
    """
    results: list[Result] = []
    for run in runs:
        result = _train(study.player, run, cache)
        if os.environ.get("RANK", "0") == "0":
            write(folder, result)
            results.append(_told(result, study.metric))
    return results


def play_over_ray(study: Study, runs: Sequence[Run], folder: Path, *, address: str) -> list[Result]:
    """Play runs on the machines of a Ray cluster, and store each result here when its run ends.

    Each machine has this repository at the same path, and the environment of `nox -s trl`.

    Args:
        study: of the runs.
        runs: what to play.
        folder: of the results, on this machine.
        address: of the cluster; `local` starts one on this machine.

    Raises:
        RayTaskError: a run failed. Results of the others that ended are stored.
    """
    import ray  # pyright: ignore[reportMissingImports]

    path = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    ray.init(address=address, runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}})
    try:
        remote = ray.remote(num_cpus=1)(_train)
        waiting = [remote.remote(study.player, run, CACHE) for run in runs]
        results: list[Result] = []
        while waiting:
            (ended,), waiting = ray.wait(waiting)
            result = ray.get(ended)
            write(folder, result)
            results.append(_told(result, study.metric))
    finally:
        ray.shutdown()
    return results


def _train(player: str, run: Run, cache: Path) -> Result:
    # Frameworks are imported by the process that trains, never for a list or a page.
    module = importlib.import_module(player)
    module.prepare()
    return module.play(run, cache)


def _told(result: Result, metric: str) -> Result:
    learned = f"{metric} {result.start(metric):.3f} -> {result.end(metric):.3f}"
    print(f"{result.name}: {learned}, {result.cpu_seconds:.0f} s of CPU", flush=True)
    return result
