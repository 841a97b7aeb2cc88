"""The command of every study: `python -m recipes.NAME`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from recipes.results import RecipeError, read
from recipes.running import CACHE, missing, play_all, play_over_ray
from recipes.statistics import prediction_interval
from recipes.study import PROFILES, Run, Study

DOCS = Path(__file__).parent.parent / "docs"
CHECK_SEED = 1000
"""The first seed of repeated cells, which no study declares."""


def main(study: Study, page: Callable[[Path, Path], str], words: Sequence[str] | None = None) -> None:
    """Run the command of a study.

    Args:
        study: the declared runs.
        page: draws the figures from a folder of results into a folder, and returns the page.
        words: the arguments; by default those of this process.
    """
    options = parser(study).parse_args(words)
    try:
        _dispatch(study, page, options)
    except RecipeError as error:
        sys.exit(f"Error: {error}")


def _dispatch(study: Study, page: Callable[[Path, Path], str], options: argparse.Namespace) -> None:
    folder = Path(options.results) if options.results else study.results(options.profile)
    if options.write_page:
        (DOCS / "recipes").mkdir(exist_ok=True)
        (DOCS / "recipes" / f"{study.name}.md").write_text(page(folder, DOCS / "img/recipes"))
        print(f"Wrote docs/recipes/{study.name}.md")
    elif options.short:
        play_all(study, [study.short], folder)
    elif options.repeat:
        _repeat(study, options, folder)
    else:
        _play(study, options, folder)


def _play(study: Study, options: argparse.Namespace, folder: Path) -> None:
    runs = study.runs(options.profile)
    if not runs:
        raise RecipeError(f"{study.name} has no runs for the profile {options.profile}. Next: leave --profile out")
    chosen = _chosen(runs, options)
    left = missing(chosen, folder)
    print(f"{len(chosen)} runs, {len(chosen) - len(left)} of them have results in {folder}")
    if options.list:
        for run in chosen:
            print(f"{'missing' if run in left else 'there  '}  {run.name}")
    elif options.ray:
        if options.profile == "gpu":
            raise RecipeError(
                "a run on GPUs needs a group of processes. Next: torchrun instead of --ray, as the page says"
            )
        play_over_ray(study, left, folder, address=options.ray)
    else:
        play_all(study, left[: options.at_most], folder)


def _chosen(runs: Sequence[Run], options: argparse.Namespace) -> list[Run]:
    wanted = {"task": options.task, "cell": options.cell, "seed": options.seed, "phase": options.phase}
    chosen = [run for run in runs if all(not values or getattr(run, name) in values for name, values in wanted.items())]
    if not chosen:
        tasks, cells = (sorted({getattr(run, name) for run in runs}) for name in ("task", "cell"))
        raise RecipeError(
            f"no run has {', '.join(f'{name} {values}' for name, values in wanted.items() if values)}. "
            f"Tasks: {', '.join(tasks)}. Cells: {', '.join(cells)}. Next: --list shows all runs"
        )
    return chosen


def _repeat(study: Study, options: argparse.Namespace, folder: Path) -> None:
    """Play a cell with new seeds, and compare it with the committed runs."""
    spelled: str = options.repeat
    task, _, cell = spelled.partition("/")
    runs = [run for run in study.runs(options.profile) if (run.task, run.cell, run.phase) == (task, cell, "main")]
    known = [one.end(study.metric) for one in read(folder) if (one.task, one.cell) == (task, cell)]
    if not runs or len(known) < 3:
        names = sorted({f"{one.task}/{one.cell}" for one in read(folder)})
        raise RecipeError(
            f"{spelled!r} has {len(known)} results in {folder}, and an interval needs three. Cells with results: "
            f"{', '.join(names)}"
        )
    low, high = prediction_interval(known)
    print(f"{len(known)} runs: a new one is expected between {low:.3f} and {high:.3f} (95 %)", flush=True)
    for seed in options.seed or [CHECK_SEED]:
        (result,) = play_all(study, [replace(runs[0], seed=seed)], CACHE.parent / f"{study.name}-repeated")
        value = result.end(study.metric)
        print(f"seed {seed}: {value:.3f}, {'inside' if low <= value <= high else 'OUTSIDE'}")


def parser(study: Study) -> argparse.ArgumentParser:
    """The options of a study."""
    options = argparse.ArgumentParser(
        prog=f"python -m recipes.{study.name}", description="Play the runs that have no result yet."
    )
    options.add_argument(
        "--profile", choices=PROFILES, default="cpu", help="tiny models, SmolLM2 on a CPU, or the paper's on GPUs"
    )
    options.add_argument("--task", nargs="+", help="only runs of these tasks")
    options.add_argument("--cell", nargs="+", help="only runs of these cells")
    options.add_argument("--seed", nargs="+", type=int, help="only runs of these seeds")
    options.add_argument("--phase", nargs="+", choices=["tuning", "main"], help="only runs of this phase")
    options.add_argument("--at-most", type=int, metavar="N", help="play N runs, and leave the others")
    options.add_argument("--ray", metavar="ADDRESS", help="play over a Ray cluster; `local` starts one here")
    options.add_argument("--results", metavar="FOLDER", help="another folder of results")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="show the runs, and play none")
    what.add_argument("--repeat", metavar="TASK/CELL", help="play a cell with another seed, and compare")
    what.add_argument("--short", action="store_true", help="play the run of a minute that CI plays")
    what.add_argument("--write-page", action="store_true", help="write the page and the figures from the results")
    return options
