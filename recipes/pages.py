"""Parts that the pages of all studies share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from recipes.results import Result
from recipes.statistics import mean
from recipes.study import Run

MIN_RUNS = 3
"""Runs that a cell needs for an interval."""
WRITTEN = "<!-- Written by `python -m recipes.{name} --write-page` from recipes/{name}/results. -->"


def beginning(name: str, title: str, introduction: str, runs: Sequence[Run], results: Sequence[Result]) -> list[str]:
    """The parts of a page before its results: what it is about, and what has been run."""
    return [
        f"{WRITTEN.format(name=name)}\n\n# {title}",
        introduction,
        "## What has been run\n\n" + coverage(runs, results),
    ]


def shown(numbers: Sequence[float]) -> str:
    """The mean of some runs; with its interval if they are enough for one."""
    return str(mean({"": numbers})) if len(numbers) >= MIN_RUNS else f"{np.mean(numbers):.2f}"


def commands(name: str, repeated: str) -> str:
    """How the study is run again."""
    return f"""## Run it again

```bash
python -m recipes.{name}  # the runs without a result, one by one; it may be stopped at any time
python -m recipes.{name} --ray auto  # the same over a Ray cluster
python -m recipes.{name} --repeat {repeated}  # one cell with a new seed, compared with the runs of this page
python -m recipes.{name} --profile gpu --list  # with the paper's models and its Table 3
python -m recipes.{name} --write-page  # this page and its figures, from the results
```

On 8 GPUs, `torchrun --nproc_per_node 8 -m recipes.{name} --profile gpu` plays them; this has not been run.
[Recipes](index.md) explains the parts.
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def coverage(runs: Sequence[Run], results: Sequence[Result]) -> str:
    """A sentence on how many of the declared runs have results, and a table of all cells."""
    declared = Counter((run.task, run.cell) for run in runs if run.phase == "main")
    there = Counter((one.task, one.cell) for one in results)
    tasks = list(dict.fromkeys(task for task, _ in declared))
    cells = list(dict.fromkeys(cell for _, cell in declared))
    total, played = sum(declared.values()), sum(min(there[key], number) for key, number in declared.items())
    rows = [
        [task, *(f"{there[task, cell]} of {declared[task, cell]}" if declared[task, cell] else "-" for cell in cells)]
        for task in tasks
    ]
    spent = sum(one.cpu_seconds for one in results)
    begun = f"All {total}" if played == total else f"**{played} of {total}**"
    if not played:
        return f"**None of the {total} declared runs has been played**, so this page shows no result.\n"
    return (
        f"{begun} declared runs have been played. Those on this page took {spent / 60:.0f} CPU minutes without "
        f"warm starts, on commit {', '.join(sorted({one.commit for one in results})) or '-'}. Runs of each cell:\n\n"
        + table(["task", *cells], rows)
    )
