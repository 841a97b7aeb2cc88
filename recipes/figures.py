"""Figures of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recipes.results import Result
from recipes.statistics import Interval, Scores, profile

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown", "tab:pink")

Grouped = Mapping[str, Mapping[str, Sequence[Result]]]
"""The results of each cell, by task."""


def grouped(results: Sequence[Result], cells: Sequence[str]) -> dict[str, dict[str, list[Result]]]:
    """Results by task and cell; cells in the given order, and only those that have results."""
    found: dict[str, dict[str, list[Result]]] = {}
    for result in sorted(results, key=lambda one: cells.index(one.cell) if one.cell in cells else len(cells)):
        found.setdefault(result.task, {}).setdefault(result.cell, []).append(result)
    return found


def draw_curves(results: Grouped, metric: str, path: Path, *, label: str, optimum: float | None = None) -> None:
    """A curve for each run, thin, and their mean; one panel for each task.

    Args:
        results: what to draw.
        metric: of the vertical axis.
        path: of the image.
        label: of the vertical axis.
        optimum: a dashed line.
    """
    figure = Figure(figsize=(5.2 * len(results), 3.8), layout="constrained")
    panels = figure.subplots(1, len(results), squeeze=False)[0]
    for axes, (task, cells) in zip(panels, results.items(), strict=True):
        for color, (cell, runs) in zip(COLORS, cells.items(), strict=False):
            _curves(axes, runs, metric, color, f"{cell} ({len(runs)})")
        if optimum is not None:
            axes.axhline(optimum, color="black", linestyle="--", linewidth=1)
        axes.set(title=task, xlabel="update", ylabel=label)
        axes.legend(title="runs in brackets", fontsize=8)
        axes.grid(alpha=0.3)
    _save(figure, path)


def draw_intervals(rows: Mapping[str, Interval], path: Path, *, label: str) -> None:
    """One interval for each row, from the top down."""
    figure = Figure(figsize=(6, 1 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for at, (color, interval) in enumerate(zip(COLORS * len(rows), rows.values(), strict=False)):
        axes.plot([interval.low, interval.high], [at, at], color=color, linewidth=6, alpha=0.4)
        axes.plot(interval.value, at, "|", color=color, markersize=16, markeredgewidth=2)
    axes.set(xlabel=label, yticks=range(len(rows)), yticklabels=list(rows))
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    _save(figure, path)


def draw_profiles(cells: Mapping[str, Scores], path: Path, *, label: str) -> None:
    """The share of runs above each score."""
    limits = np.linspace(0, 1, 101)
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for color, (cell, scores) in zip(COLORS, cells.items(), strict=False):
        axes.step(limits, profile(scores, limits), color=color, label=cell, where="post")
    axes.set(xlabel=label, ylabel="share of runs above", ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    _save(figure, path)


def _curves(axes: Axes, runs: Sequence[Result], metric: str, color: str, label: str) -> None:
    points = [np.linspace(run.updates / len(run.curves[metric]), run.updates, len(run.curves[metric])) for run in runs]
    for x, run in zip(points, runs, strict=True):
        axes.plot(x, run.curves[metric], color=color, alpha=0.25, linewidth=0.8)
    shared = points[min(range(len(runs)), key=lambda at: len(points[at]))]
    means = [np.interp(shared, x, run.curves[metric]) for x, run in zip(points, runs, strict=True)]
    axes.plot(shared, np.nanmean(means, axis=0), color=color, linewidth=2.2, label=label)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without the version of matplotlib, the same results give the same file.
    figure.savefig(path, dpi=100, metadata={"Software": None})
