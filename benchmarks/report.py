"""Tables of measurements of ours and upstream's, for the programs in this folder."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass
class Line:
    """A line of a table."""

    measure: str
    ours: float
    upstream: float | None = None
    ratio: float | None = None
    """The factor by which ours is better."""
    target: str = ""
    met: bool | None = None
    note: str = ""


def with_ratio(line: Line) -> Line:
    """The line with its ratio, for figures where less is better."""
    line.ratio = None if line.upstream is None else line.upstream / line.ours
    return line


def report(measures: Mapping[str, Callable[[], list[Line]]], file: Path | None) -> None:
    """Measure and print one table after the other.

    Args:
        measures: the measurements, by the titles of their tables.
        file: file to write the figures to as JSON, too.
    """
    console = Console(width=None if sys.stdout.isatty() else 132)
    machine = _machine()
    console.print(" ".join(f"{key}={value}" for key, value in machine.items()))
    lines: dict[str, list[Line]] = {}
    for title, measure in measures.items():
        lines[title] = measure()
        console.print(_table(title, lines[title]))
    everything = [line for group in lines.values() for line in group]
    missed = [line.measure for line in everything if line.met is False]
    console.print(f"{sum(line.met is True for line in everything)} targets met, missed: {', '.join(missed) or 'none'}")
    machine["load at the end"] = os.getloadavg()
    if file:
        figures = {title: [asdict(line) for line in group] for title, group in lines.items()}
        file.write_text(json.dumps({"machine": machine, **figures}, indent=1))


def _machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":")[1].strip() for line in cpuinfo if "model name" in line]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": models[0] if models else platform.machine(),
        "python": platform.python_version(),
        "gem_llm": version("gem-llm"),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _table(title: str, lines: Sequence[Line]) -> Table:
    rows = Table("measure", "ours", "upstream", "ratio", "target", "note", title=title)
    for line in lines:
        verdict = {True: " [green]met[/]", False: " [red]missed[/]", None: ""}[line.met]
        ratio = "" if line.ratio is None else f"{line.ratio:.3g}x"
        rows.add_row(line.measure, _text(line.ours), _text(line.upstream), ratio, line.target + verdict, line.note)
    return rows


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
