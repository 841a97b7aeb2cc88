"""The page of the study, from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import pages
from recipes.figures import draw_curves, grouped
from recipes.language_model import section
from recipes.results import Result, read
from recipes.statistics import difference
from recipes.tools.declared import CELLS, MODEL_CELLS, STUDY

SUCCESS = "eval_episode/success"
CALLS = "tool/calls"
INTRODUCTION = """
Does reinforcement learning with a tool end above reinforcement learning without it, as in Table 1 of
[GEM](https://arxiv.org/abs/2510.01051)? Here a tiny model calculates with two numbers of two digits (`47 times 58`,
24,300 questions). Each digit is a token. The tool is the real Python tool, in the sandbox, at most twice in an episode.
All cells of a seed begin with the same weights, which have seen how programs and answers are written: programs with
random operators, and answers that copy what a program printed (`recipes/tools/format.py`). `paid-tool` pays 0.1 for
each program that ends well, besides the 1 for the right answer. `recipes/tools/declared.py` says everything else.

Without the tool, these weights are never right: a program is an invalid action there, and a copied number of the
question is not the answer. So training without it has nothing to strengthen, and must find answers by chance.
"""

MODEL_READING = ""
"""By hand, of the complete results with SmolLM2."""


def page(results: Path, figures: Path) -> str:
    """Draw the figures, and return the page."""
    there = read(results)
    by_task = grouped(there, [*CELLS])
    parts = pages.beginning("tools", "Tools", INTRODUCTION, STUDY.runs("cpu"), there)
    if by_task:
        draw_curves(by_task, "episode/success", figures / "tools_curves.png", label="success in training")
        draw_curves(by_task, CALLS, figures / "tools_calls.png", label="programs of an episode")
        cells = by_task["calculation"]
        parts.append("![Success in training over updates](../img/recipes/tools_curves.png)\n")
        parts.append(f"## Right answers before and after training\n\n{_table(cells)}\n{_sentences(cells)}\n")
        parts.append("![Programs of an episode over updates](../img/recipes/tools_calls.png)\n")
    parts.append(
        section(
            STUDY,
            MODEL_CELLS,
            figures,
            MODEL_READING,
            {"programs of an episode, last fifth": lambda run: run.end(CALLS)},
        )
    )
    parts.append(pages.commands("tools", "calculation/tool"))
    return "\n".join(parts)


def _table(cells: Mapping[str, Sequence[Result]]) -> str:
    head = ["", "runs", "before", "after", "programs of an episode, first updates", "last updates", "CPU s"]
    return pages.table(head, [[cell, str(len(runs)), *_row(runs)] for cell, runs in cells.items()])


def _row(runs: Sequence[Result]) -> list[str]:
    return [
        pages.shown([run.before[SUCCESS] for run in runs]),
        pages.shown(_after(runs)),
        f"{np.mean([run.start(CALLS) for run in runs]):.2f}",
        f"{np.mean([run.end(CALLS) for run in runs]):.2f}",
        f"{np.mean([run.cpu_seconds for run in runs]):.0f}",
    ]


def _after(runs: Sequence[Result]) -> list[float]:
    return [run.after[SUCCESS] for run in runs]


def _sentences(cells: Mapping[str, Sequence[Result]]) -> str:
    """What the tool brings, and what its reward adds."""
    pairs = {"the tool": ("tool", "no-tool"), "the reward for programs": ("paid-tool", "tool")}
    return "\n".join(f"- {_sentence(what, cells, *pair)}" for what, pair in pairs.items())


def _sentence(what: str, cells: Mapping[str, Sequence[Result]], one: str, other: str) -> str:
    runs = [cells.get(name, []) for name in (one, other)]
    if min(map(len, runs)) < pages.MIN_RUNS:
        return f"Too few runs for a statement on {what}."
    gap = difference(_gains(runs[0]), _gains(runs[1]))
    verdict = "raises" if gap.low > 0 else "lowers" if gap.high < 0 else "does not demonstrably change"
    return (
        f"{what[0].upper()}{what[1:]} {verdict} what training adds to the share of right answers: {gap.value:+.2f} "
        f"[{gap.low:+.2f}, {gap.high:+.2f}] for `{one}` against `{other}`, by Welch's interval of the difference."
    )


def _gains(runs: Sequence[Result]) -> list[float]:
    return [after - run.before[SUCCESS] for after, run in zip(_after(runs), runs, strict=True)]
