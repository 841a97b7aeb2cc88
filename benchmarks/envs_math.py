"""Grading mathematics, and what many environments for it take; part of envs.py.

    python benchmarks/envs_math.py ours|upstream

prints the memory of one side, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from report import Line, with_ratio

HERE = Path(__file__).resolve().parent
ENVIRONMENTS, ROWS = 64, 1000
STUDIED_MEMORY = {"uss_mb": 454.0, "processes": 64.0}
"""Of upstream, in our study of it."""


def grading(folder: Path, quick: bool) -> list[Line]:
    """Milliseconds until the verdict on an answer: plain ones, and such as need math-verify."""
    import gem_math
    from gem_math import exact

    sample = Path(gem_math.__file__).parent / "sample.jsonl"
    golds = [json.loads(line)["answer"] for line in sample.read_text().splitlines()]
    answers = [(gold, gold) for gold in golds] + list(zip(golds[1:] + golds[:1], golds, strict=True))
    plain = [pair for pair in answers if exact.equal(*pair) is not None]
    rest = [pair for pair in _tested_pairs() if pair[0].strip() and exact.equal(*pair) is None]
    note = f"{len(plain)} of the {len(answers)} answers, right and wrong, to math:Sample are plain"
    isolated = "ours: a process per answer; upstream's: in this one"
    upstream = _upstream_grader()
    lines: list[Line] = []
    for name, pairs, rounds, why in (("plain", plain, 5, note), ("math-verify", rest, 1, isolated)):
        times = _graded(folder / f"{name}.jsonl", pairs[:: 4 if quick else 1] * rounds, upstream)
        for at, place in (("p50", 0.5), ("p95", 0.95)):
            mine, theirs = (sorted(side)[int(place * len(side))] if side else None for side in times)
            assert mine is not None, "ours grades every answer"
            line = Line(f"{name}, {at} of {len(times[0])} verdicts, ms", mine, theirs)
            if at == "p50":
                line.note = why
                if name == "plain":
                    line.target, line.met = "<= 1", mine <= 1
            lines.append(with_ratio(line))
    return lines


def _tested_pairs() -> Sequence[tuple[str, str]]:
    """Answers and accepted ones of the parity tests, which are skipped where upstream's grader lacks a module."""
    sys.path[:0] = [str(HERE.parent / "tests" / "parity")]
    with patch.dict(sys.modules, {"gem.utils.math_grader": ModuleType("gem.utils.math_grader")}):
        return importlib.import_module("test_math").PAIRS


def _upstream_grader() -> Callable[..., Any] | None:
    """`None` where pylatexenc is missing, which it needs and does not require."""
    try:
        from gem.utils.math_grader import boxed_reward_fn
    except ModuleNotFoundError:
        return None
    return boxed_reward_fn


def _graded(
    data: Path, pairs: Sequence[tuple[str, str]], upstream: Callable[..., Any] | None
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
        times[0].append(_milliseconds(env.step, action))
        if upstream is not None:
            times[1].append(_milliseconds(upstream, action, gold, False, 1.0, 0.0))
    return times[0][1:], times[1][1:]


def _milliseconds(call: Callable[..., Any], *arguments: Any) -> float:
    begin = time.perf_counter()
    call(*arguments)
    return 1000 * (time.perf_counter() - begin)


def memory(folder: Path, quick: bool) -> list[Line]:
    """Megabytes of a process with 64 environments and of its children, after an answer for math-verify in each."""
    ours, upstream = (_measured(side) for side in ("ours", "upstream"))
    theirs = upstream or STUDIED_MEMORY
    note = f"{ours['accepted']:g} right answers accepted; upstream's "
    note += f"accepted {upstream['accepted']:g}" if upstream else "figures are the study's"
    named = f"{ENVIRONMENTS} math environments: "
    lines = [
        Line(f"{named}PSS, MB", ours["pss_mb"], theirs.get("pss_mb"), None, "< 150", ours["pss_mb"] < 150, note),
        Line(f"{named}USS, MB", ours["uss_mb"], theirs["uss_mb"]),
        Line(f"{named}processes", ours["processes"], theirs["processes"]),
    ]
    return [with_ratio(line) for line in lines]


def _measured(side: str) -> dict[str, float]:
    """Figures of a process of its own; none where upstream's lacks a module."""
    command = [sys.executable, str(Path(__file__).resolve()), side]
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
    import pyarrow  # pyright: ignore[reportMissingImports]
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from gem.envs.math_env import MathEnv

    data = Dataset(pyarrow.Table.from_pylist(_rows()), fingerprint="rows")
    return _after_an_answer([MathEnv(dataset=data, seed=seed) for seed in range(ENVIRONMENTS)])


def _after_an_answer(envs: Sequence[Any]) -> dict[str, float]:
    accepted = 0.0
    for env in envs:
        question = env.reset()[0]
        accepted += env.step(f"\\boxed{{{question.split()[2]}/\\sqrt{{2}}}}")[1]
    return {**_usage(), "accepted": accepted}


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


if __name__ == "__main__":
    print(json.dumps({"ours": _our_memory, "upstream": _upstream_memory}[sys.argv[1]]()))
