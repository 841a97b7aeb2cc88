"""Our environments and those of gem-llm 0.1.0, in one run: steps, resets, grading of mathematics, memory.

    python benchmarks/envs.py [--only steps resets math memory] [--quick] [--json out.json]

Run it in the environment of `nox -s parity`. Steps and resets are CPU time, in alternating blocks of ours and
upstream's, so that changes of the host's speed affect both. Figures are medians, and ratios are taken within a pair of
blocks. Grading is the time until the verdict, most of it in another process. A ratio is the factor by which ours is
better. A random player makes the moves; states are the same on both sides (see envs_pairs.py).
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import envs_math
import envs_pairs
from report import Line, report, with_ratio

TITLES = {"steps": "steps per CPU-second", "resets": "CPU ms per reset", "math": "grading", "memory": "memory"}
STUDIED = {
    "game:Sokoban-v0-hard": 1580.0,
    "game:Sokoban-v0-random": 1870.0,
    "game:Sudoku-v0-hard": 57.0,
    "game:WordSearch-v0-hard": 23.7,
}
"""CPU ms of upstream's resets in our study of it (Sokoban-random: the median)."""
SLOW = "game:Sokoban-v0-random"
"""Upstream took up to 60 s to build one, so the study's figure is used."""
BROKEN = "game:FifteenPuzzle-v0-random"
"""Upstream's cannot be built."""
NAMED = (  # game, statistic of its resets, limit in CPU ms
    ("Sokoban-v0-hard", "mean", 20.0),
    ("Sokoban-v1-hard", "mean", 20.0),
    ("Sudoku-v0-hard", "mean", 5.0),
    ("Sudoku-v1-hard", "mean", 5.0),
    ("WordSearch-v0-hard", "mean", 1.0),
    ("WordSearch-v1-hard", "mean", 1.0),
    ("Sokoban-v0-random", "max", 100.0),
    ("Sokoban-v1-random", "max", 100.0),
)


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        chosen = {TITLES[name]: partial(MEASURES[name], Path(folder), options.quick) for name in options.only}
        report(chosen, options.json)


# -- steps and resets ----------------------------------------------------------------------------------------------


def steps(folder: Path, quick: bool) -> list[Line]:
    """Steps per CPU-second, resets excluded."""
    envs_pairs.give_words(folder)
    blocks, size = (3, 500) if quick else (7, 3000)
    gc.collect()
    gc.freeze()  # otherwise every block would begin with a pass over the word lists
    lines: list[Line] = []
    for name in envs_pairs.IDS:
        pairs = envs_pairs.pairs(name, 5 if quick else 20)
        turns = sum(len(pair.actions) for pair in pairs)
        copies = math.ceil(size / turns)
        mine, theirs = _by_turns(
            lambda pairs=pairs, copies=copies: _played([(pair.ours, pair.actions) for pair in pairs] * copies),
            lambda pairs=pairs, copies=copies: _played([(pair.theirs, pair.actions) for pair in pairs] * copies),
            blocks,
        )
        ratio = statistics.median(their / my for my, their in zip(mine, theirs, strict=True))
        rates = [turns * copies / statistics.median(seconds) for seconds in (mine, theirs)]
        lines.append(Line(name, rates[0], rates[1], ratio, ">= 1x", ratio >= 1))
    return lines


def resets(folder: Path, quick: bool) -> list[Line]:
    """CPU ms per reset; then the resets in `NAMED`, over many seeds."""
    envs_pairs.give_words(folder)
    lines = [_reset(name, 3 if quick else 7) for name in envs_pairs.IDS]
    known = {line.measure: line.upstream for line in lines}
    return lines + [_named(game, what, most, 20 if quick else 200, known) for game, what, most in NAMED]


def _reset(name: str, blocks: int) -> Line:
    mine = envs_pairs.ours(name)
    if name in (SLOW, BROKEN):
        ours, _ = _by_turns(_repeated(mine.reset), lambda: 0.0, blocks)
        note = "upstream's cannot be made" if name == BROKEN else "upstream's is the study's"
        return with_ratio(Line(name, 1000 * statistics.median(ours), STUDIED.get(name), note=note))
    ours, theirs = _by_turns(_repeated(mine.reset), _repeated(envs_pairs.upstreams(name).reset), blocks)
    ratio = statistics.median(their / my for my, their in zip(ours, theirs, strict=True))
    return Line(name, 1000 * statistics.median(ours), 1000 * statistics.median(theirs), ratio)


def _named(game: str, what: str, target: float, seeds: int, known: dict[str, float | None]) -> Line:
    env = envs_pairs.ours(f"game:{game}")
    env.reset(seed=seeds)  # reads word lists and fills caches
    taken: list[float] = []
    for seed in range(seeds):
        begin = time.process_time()
        env.reset(seed=seed)
        taken.append(1000 * (time.process_time() - begin))
        if game.startswith("Sudoku"):
            assert _solutions([*env.cells], env.scale) == 1, f"{game}, seed {seed}: more than one solution"
    mean, most = statistics.fmean(taken), max(taken)
    value = mean if what == "mean" else most
    theirs = f"game:{game}".replace("-v1-", "-v0-")
    note = f"mean {mean:.2f}, max {most:.1f} of {seeds} seeds; upstream in the study: {STUDIED[theirs]:g}"
    note += "; one solution each" if game.startswith("Sudoku") else ""
    line = Line(f"{game}: {what}", value, known[theirs], None, f"<= {target:g}", value <= target, note)
    return with_ratio(line) if what == "mean" else line


def _by_turns(mine: Callable[[], float], theirs: Callable[[], float], blocks: int) -> tuple[list[float], list[float]]:
    """CPU seconds of both sides, block by block, after an unmeasured block each."""
    seconds = [(mine(), theirs()) for _ in range(blocks + 1)][1:]
    return [pair[0] for pair in seconds], [pair[1] for pair in seconds]


def _played(games: Sequence[tuple[Any, list[str]]]) -> float:
    """CPU seconds to play these games from their current states."""
    fresh = [(copy.deepcopy(env).step, actions) for env, actions in games]
    gc.collect()
    gc.disable()
    begin = time.process_time()
    for step, actions in fresh:
        for action in actions:
            step(action)
    seconds = time.process_time() - begin
    gc.enable()
    return seconds


def _repeated(call: Callable[[], Any], at_least: float = 0.01) -> Callable[[], float]:
    """CPU seconds of a call, on average over a block."""

    def block() -> float:
        begin, calls = time.process_time(), 0
        while (seconds := time.process_time() - begin) < at_least:
            call()
            calls += 1
        return seconds / calls

    return block


def _solutions(cells: list[int], scale: int, most: int = 2) -> int:
    """The number of solutions of a Sudoku, counted up to `most`, independent of the generator."""
    side = round(scale**0.5)
    open_cells: list[tuple[int, set[int]]] = []
    for cell in (cell for cell, digit in enumerate(cells) if not digit):
        row, column = divmod(cell, scale)
        at = row // side * side * scale + column // side * side
        block = {cells[at + down * scale + right] for down in range(side) for right in range(side)}
        seen = {*cells[row * scale : (row + 1) * scale], *cells[column::scale], *block}
        open_cells.append((cell, {*range(1, scale + 1)} - seen))
    if not open_cells:
        return 1
    cell, fitting = min(open_cells, key=lambda each: len(each[1]))
    found = 0
    for digit in fitting:
        cells[cell] = digit
        found += _solutions(cells, scale, most - found)
        if found >= most:
            break
    cells[cell] = 0
    return found


# -- the command line -----------------------------------------------------------------------------------------------


MEASURES: dict[str, Callable[[Path, bool], list[Line]]] = {
    "steps": steps,
    "resets": resets,
    "math": envs_math.grading,
    "memory": envs_math.memory,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=[*MEASURES], help="measurements to take")
    parser.add_argument("--quick", action="store_true", help="short runs, to check that it works")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
