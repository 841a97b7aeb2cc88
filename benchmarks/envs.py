"""Environments beside those of gem-llm 0.1.0, in one run: steps, resets, grading of mathematics, memory.

    python benchmarks/envs.py [--only steps resets math memory] [--quick] [--json out.json]

It needs what `nox -s parity` installs, and pylatexenc for upstream's grader. Steps and resets are CPU time, in blocks
of ours and upstream's by turns so that a host which changes speed changes both; medians count, and a ratio is that
within a turn. Grading is the time until the verdict, most of which is another process's. A ratio says how many times
better ours is. Moves are those of a random player; states are the same on both sides (envs_pairs.py says how).
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
STUDIED = {
    "game:Sokoban-v0-hard": 1580.0,
    "game:Sokoban-v0-random": 1870.0,
    "game:Sudoku-v0-hard": 57.0,
    "game:WordSearch-v0-hard": 23.7,
}
"""CPU ms of upstream's resets in our study of it (Sokoban-random: the median)."""
SLOW = "game:Sokoban-v0-random"
"""Making upstream's took up to 60 s, so that the study's figure stands for it."""
BROKEN = "game:FifteenPuzzle-v0-random"
"""Upstream's cannot be made."""
NAMED = (  # game, what of its resets, CPU ms at most
    ("Sokoban-v0-hard", "mean", 20.0),
    ("Sokoban-v1-hard", "mean", 20.0),
    ("Sudoku-v0-hard", "mean", 5.0),
    ("Sudoku-v1-hard", "mean", 5.0),
    ("WordSearch-v0-hard", "mean", 1.0),
    ("WordSearch-v1-hard", "mean", 1.0),
    ("Sokoban-v0-random", "max", 100.0),
    ("Sokoban-v1-random", "max", 100.0),
)
ENVIRONMENTS, ROWS = 64, 1000
STUDIED_MEMORY = {"uss_mb": 454.0, "processes": 64.0}


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


def main() -> None:
    options = _options()
    if options.memory_of:
        print(json.dumps({"ours": _our_memory, "upstream": _upstream_memory}[options.memory_of]()))
        return
    console = Console(width=None if sys.stdout.isatty() else 132)
    machine = _machine()
    console.print(" ".join(f"{key}={value}" for key, value in machine.items()))
    lines: dict[str, list[Line]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            lines[name] = MEASURES[name](Path(folder), options.quick)
            console.print(_table(name, lines[name]))
    everything = [line for group in lines.values() for line in group]
    missed = [line.measure for line in everything if line.met is False]
    console.print(f"{sum(line.met is True for line in everything)} targets met, missed: {', '.join(missed) or 'none'}")
    machine["load at the end"] = os.getloadavg()
    if options.json:
        report = {name: [asdict(line) for line in group] for name, group in lines.items()}
        options.json.write_text(json.dumps({"machine": machine, **report}, indent=1))


# -- steps and resets ----------------------------------------------------------------------------------------------


def steps(folder: Path, quick: bool) -> list[Line]:
    """Steps per CPU-second, resets excluded."""
    import envs_pairs

    envs_pairs.give_words(folder)
    blocks, size = (3, 500) if quick else (7, 3000)
    gc.collect()
    gc.freeze()  # the lists of words would be gone through before every block
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
        lines.append(Line(name, *rates, ratio, ">= 1x", ratio >= 1))
    return lines


def resets(folder: Path, quick: bool) -> list[Line]:
    """CPU ms per reset; then those that the issue names, over many seeds."""
    import envs_pairs

    envs_pairs.give_words(folder)
    lines = [_reset(envs_pairs, name, 3 if quick else 7) for name in envs_pairs.IDS]
    known = {line.measure: line.upstream for line in lines}
    return lines + [_named(envs_pairs, *named, 20 if quick else 200, known) for named in NAMED]


def _reset(envs_pairs: Any, name: str, blocks: int) -> Line:
    mine = envs_pairs.ours(name)
    if name in (SLOW, BROKEN):
        ours, _ = _by_turns(_repeated(mine.reset), lambda: 0.0, blocks)
        note = "upstream's cannot be made" if name == BROKEN else "upstream's is the study's"
        return _with_ratio(Line(name, 1000 * statistics.median(ours), STUDIED.get(name), note=note))
    ours, theirs = _by_turns(_repeated(mine.reset), _repeated(envs_pairs.upstreams(name).reset), blocks)
    ratio = statistics.median(their / my for my, their in zip(ours, theirs, strict=True))
    return Line(name, *(1000 * statistics.median(seconds) for seconds in (ours, theirs)), ratio)


def _named(envs_pairs: Any, game: str, what: str, target: float, seeds: int, known: dict[str, float | None]) -> Line:
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
    return _with_ratio(Line(f"{game}: {what}", value, known[theirs], None, f"<= {target:g}", value <= target, note))


def _by_turns(mine: Callable[[], float], theirs: Callable[[], float], blocks: int) -> tuple[list[float], list[float]]:
    """CPU seconds of both sides, block by block; each has one block before that does not count."""
    seconds = [(mine(), theirs()) for _ in range(blocks + 1)][1:]
    return [pair[0] for pair in seconds], [pair[1] for pair in seconds]


def _played(games: Sequence[tuple[Any, list[str]]]) -> float:
    """CPU seconds to play these games from their present states."""
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
    """How many solutions a Sudoku has, `most` at most. Knows nothing of how it was made."""
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


# -- mathematics ---------------------------------------------------------------------------------------------------


def grading(folder: Path, quick: bool) -> list[Line]:
    """Milliseconds until the verdict on an answer: plain ones, and such as need math-verify."""
    sys.path[:0] = [str(HERE.parent / "tests" / "parity")]
    from gem.utils.math_grader import boxed_reward_fn
    from test_math import PAIRS

    import gem_math
    from gem_math import exact

    sample = Path(gem_math.__file__).parent / "sample.jsonl"
    golds = [json.loads(line)["answer"] for line in sample.read_text().splitlines()]
    answers = [(gold, gold) for gold in golds] + list(zip(golds[1:] + golds[:1], golds, strict=True))
    plain = [pair for pair in answers if exact.equal(*pair) is not None]
    rest = [pair for pair in PAIRS if pair[0].strip() and exact.equal(*pair) is None]
    note = f"{len(plain)} of the {len(answers)} answers, right and wrong, to math:Sample are plain"
    isolated = "ours: a process per answer; upstream's: in this one"
    lines: list[Line] = []
    for name, pairs, rounds, why in (("plain", plain, 5, note), ("math-verify", rest, 1, isolated)):
        times = _graded(folder / "pairs.jsonl", pairs[:: 4 if quick else 1] * rounds, boxed_reward_fn)
        for at, place in (("p50", 0.5), ("p95", 0.95)):
            mine, theirs = (sorted(side)[int(place * len(side))] for side in times)
            line = Line(f"{name}, {at} of {len(times[0])} verdicts, ms", mine, theirs)
            if at == "p50":
                line.note = why
                if name == "plain":
                    line.target, line.met = "<= 1", mine <= 1
            lines.append(_with_ratio(line))
    return lines


def _graded(
    data: Path, pairs: Sequence[tuple[str, str]], boxed_reward_fn: Callable[..., Any]
) -> tuple[list[float], list[float]]:
    """Milliseconds of ours and of upstream's grader, each answer by both. One answer before starts processes."""
    from gem_math.env import MathEnv

    first = ("\\frac{\\sqrt{8}}{2}", "\\sqrt{2}")
    data.write_text("".join(json.dumps({"problem": "?", "answer": gold}) + "\n" for _, gold in (first, *pairs)))
    env = MathEnv(str(data))
    times: tuple[list[float], list[float]] = ([], [])
    for index, (answer, gold) in enumerate((first, *pairs)):
        action = f"\\boxed{{{answer}}}"
        env.reset(index=index)
        for side, grade in zip(
            times, (env.step, lambda text: boxed_reward_fn(text, gold, False, 1.0, 0.0)), strict=True
        ):
            begin = time.perf_counter()
            grade(action)
            side.append(1000 * (time.perf_counter() - begin))
    return times[0][1:], times[1][1:]


def memory(folder: Path, quick: bool) -> list[Line]:
    """Megabytes of a process with 64 environments and of its children, after an answer for math-verify in each."""
    ours, upstream = (_measured(side) for side in ("ours", "upstream"))
    note = f"of {upstream['right']:g} right answers upstream's took {upstream['accepted']:g}" if upstream else ""
    theirs, quoted = (upstream, note) if upstream else (STUDIED_MEMORY, "upstream's are the study's")
    assert ours["accepted"] == ours["right"], f"ours accepted {ours['accepted']:g} of {ours['right']:g} right answers"
    named = f"{ENVIRONMENTS} math environments: "
    lines = [
        Line(f"{named}PSS, MB", ours["pss_mb"], theirs.get("pss_mb"), None, "< 150", ours["pss_mb"] < 150, quoted),
        Line(f"{named}USS, MB", ours["uss_mb"], theirs["uss_mb"]),
        Line(f"{named}processes", ours["processes"], theirs["processes"]),
    ]
    return [_with_ratio(line) for line in lines]


def _measured(side: str) -> dict[str, float]:
    """Figures of a process of its own; none where upstream's lacks a module."""
    command = [sys.executable, str(Path(__file__).resolve()), "--memory-of", side]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode and "ModuleNotFoundError" in done.stderr and side == "upstream":
        return {}
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def _rows() -> list[dict[str, str]]:
    return [
        {"problem": f"What is {n} half roots of 2?", "answer": f"\\frac{{{n}\\sqrt{{2}}}}{{2}}"} for n in range(ROWS)
    ]


def _our_memory() -> dict[str, float]:
    from gem_math.env import MathEnv

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "rows.jsonl")
        data.write_text("".join(json.dumps(row) + "\n" for row in _rows()))
        envs = [MathEnv(str(data)) for _ in range(ENVIRONMENTS)]
        return _after_an_answer(envs)


def _upstream_memory() -> dict[str, float]:
    import pyarrow
    from datasets import Dataset
    from gem.envs.math_env import MathEnv

    data = Dataset(pyarrow.Table.from_pylist(_rows()), fingerprint="rows")
    return _after_an_answer([MathEnv(dataset=data, seed=seed) for seed in range(ENVIRONMENTS)])


def _after_an_answer(envs: Sequence[Any]) -> dict[str, float]:
    accepted = 0.0
    for env in envs:
        question = env.reset()[0]
        accepted += env.step(f"\\boxed{{{question.split()[2]}/\\sqrt{{2}}}}")[1]
    return {**_usage(), "accepted": accepted, "right": float(len(envs))}


def _usage() -> dict[str, float]:
    """Of this process and all below it."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    family = [os.getpid()]
    for process in family:
        family += [child for child, parent in parents.items() if parent == process]
    sums = {"Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    for process in family:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
            key, _, value = line.partition(":")
            if key in sums:
                sums[key] += int(value.split()[0])
    own = sums["Private_Clean"] + sums["Private_Dirty"]
    return {"pss_mb": sums["Pss"] / 1024, "uss_mb": own / 1024, "processes": float(len(family))}


# -- the report ----------------------------------------------------------------------------------------------------

MEASURES: dict[str, Callable[[Path, bool], list[Line]]] = {
    "steps": steps,
    "resets": resets,
    "math": grading,
    "memory": memory,
}


def _with_ratio(line: Line) -> Line:
    """For figures of which less is better."""
    line.ratio = None if line.upstream is None else line.upstream / line.ours
    return line


def _table(name: str, lines: Sequence[Line]) -> Table:
    titles = {"steps": "steps per CPU-second", "resets": "CPU ms per reset", "math": "grading", "memory": "memory"}
    table = Table("measure", "ours", "upstream", "ratio", "target", "note", title=titles[name])
    for line in lines:
        verdict = {True: " [green]met[/]", False: " [red]missed[/]", None: ""}[line.met]
        ratio = "" if line.ratio is None else f"{line.ratio:.3g}x"
        table.add_row(line.measure, _text(line.ours), _text(line.upstream), ratio, line.target + verdict, line.note)
    return table


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=[*MEASURES], help="measurements to take")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that it works")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--memory-of", choices=("ours", "upstream"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
