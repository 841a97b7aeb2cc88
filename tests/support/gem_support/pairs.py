"""Pairs of an answer and a reference with their verdicts, as they stand in plugins/*/tests/pairs.txt."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """One line: what was given, what is right, and why the verdict is what it is."""

    right: bool
    given: str
    reference: str
    why: str
    question: str
    group: str


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file. Raises `ValueError` for a line that is none."""
    pairs: list[Pair] = []
    group = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif line and not line.startswith("#"):
            verdict, given, reference, why, *question = (field.strip() for field in line.split(" :: "))
            if verdict not in ("right", "wrong") or len(question) > 1 or not why:
                raise ValueError(f"{path.name}: {line!r} is no pair")
            pairs.append(Pair(verdict == "right", given, reference, why, "".join(question), group))
    return pairs
