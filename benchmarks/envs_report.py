"""What the measurements of the environments look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

TITLES = {"steps": "steps per CPU-second", "resets": "CPU ms per reset", "math": "grading", "memory": "memory"}


@dataclass
class Line:
    """A line of a table."""

    measure: str
    ours: float
    upstream: float | None = None
    ratio: float | None = None
    """How many times better ours is."""
    target: str = ""
    met: bool | None = None
    note: str = ""


def with_ratio(line: Line) -> Line:
    """For figures of which less is better."""
    line.ratio = None if line.upstream is None else line.upstream / line.ours
    return line


def table(name: str, lines: Sequence[Line]) -> Table:
    """A measurement's lines."""
    rows = Table("measure", "ours", "upstream", "ratio", "target", "note", title=TITLES[name])
    for line in lines:
        verdict = {True: " [green]met[/]", False: " [red]missed[/]", None: ""}[line.met]
        ratio = "" if line.ratio is None else f"{line.ratio:.3g}x"
        rows.add_row(line.measure, _text(line.ours), _text(line.upstream), ratio, line.target + verdict, line.note)
    return rows


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
