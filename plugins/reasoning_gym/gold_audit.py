"""Checks reasoning-gym's answers with solvers of our own (`gold_solvers`), and writes docs/rg_answers.md.

python plugins/reasoning_gym/gold_audit.py                  # check all, write, and fail where an answer here is wrong
python plugins/reasoning_gym/gold_audit.py maze sudoku      # check these only, print the rows, and write nothing
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from gem_reasoning_gym._entries import Definition, entry
from gem_reasoning_gym._golds import CORRECTED, corrected
from gem_reasoning_gym._names import names
from gold_solvers import SOLVERS, UNCHECKED

PAGE = Path(__file__).parents[2] / "docs" / "rg_answers.md"
ENTRIES = 50
DATA_SEED = 42
WORKERS = 2


class Audit(NamedTuple):
    """What a solver says of the answers of a data set."""

    name: str
    theirs: int
    """Right answers of reasoning-gym."""
    ours: list[int]
    """Entries whose answer is wrong here."""
    entries: int


def audited(name: str, entries: int = ENTRIES, data_seed: int = DATA_SEED) -> Audit:
    """Check the first entries of a data set."""
    definition, theirs, wrong = Definition.of(name, {}), 0, list[int]()
    for number in range(entries):
        told = entry(definition, data_seed, number)
        right = SOLVERS[name].is_right(told)
        theirs += right
        if not (SOLVERS[name].is_right(corrected(name, told)) if name in CORRECTED else right):
            wrong.append(number)
    return Audit(name, theirs, wrong, entries)


def row(audit: Audit) -> str:
    """A line of the table."""
    ours = audit.entries - len(audit.ours)
    return f"| `{audit.name}` | {SOLVERS[audit.name].how} | {audit.theirs} | {ours} |"


def page(audits: list[Audit]) -> str:
    """The page, as Markdown."""
    return "\n".join([
        "# Answers of reasoning-gym",
        "",
        "<!-- Written by plugins/reasoning_gym/gold_audit.py. -->",
        "",
        f"Are the answers of `rg:` right? Solvers of our own read the first {ENTRIES} questions of {len(audits)} of",
        f"the {len(names())} data sets. They compute the answer, or check it against the rules where several are",
        "right. Where reasoning-gym has wrong answers, `rg:<name>` has others, by what the question says, and",
        "`rg:<name>-v0` keeps them.",
        "",
        f"| data set | checked by | right in reasoning-gym, of {ENTRIES} | right in `rg:` |",
        "| --- | --- | --- | --- |",
        *map(row, audits),
        "",
        "Not checked:",
        "",
        "| data set | why |",
        "| --- | --- |",
        *(f"| `{name}` | {UNCHECKED[name]} |" for name in sorted(UNCHECKED)),
        "",
    ])  # fmt: skip


def main(chosen: list[str]) -> None:
    """Audit these data sets, or all and write the page."""
    with ProcessPoolExecutor(WORKERS) as pool:
        audits = [*_shown(pool.map(audited, chosen or sorted(SOLVERS)))]
    if not chosen:
        PAGE.write_text(page(audits), encoding="utf-8")
    if wrong := [f"rg:{audit.name}: entries {audit.ours}" for audit in audits if audit.ours]:
        sys.exit("wrong answers:\n" + "\n".join(wrong))


def _shown(audits: Iterator[Audit]) -> Iterator[Audit]:
    for audit in audits:
        print(row(audit), flush=True)
        yield audit


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="data sets")
    main([*parser.parse_args().names])
