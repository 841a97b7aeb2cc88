"""Grading mathematics, and the memory of many mathematics environments; part of envs.py.

    python benchmarks/envs_math.py ours|upstream

Prints the memory of one side, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import random
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
"""Figures of upstream, from our study of it."""


def grading(folder: Path, quick: bool) -> list[Line]:
    """Milliseconds until the verdict on an answer: plain answers, answers that need math-verify, answers made by rule.

    `published` is our verdict of `published=True`, which asks math-verify.
    """
    import gem_math
    from gem_math import _exact as exact
    from gem_math.verdicts import is_right

    sample = Path(gem_math.__file__).parent / "sample.jsonl"
    golds = [json.loads(line)["answer"] for line in sample.read_text().splitlines()]
    answers = [(gold, gold) for gold in golds] + list(zip(golds[1:] + golds[:1], golds, strict=True))
    plain = [pair for pair in answers if exact.equal(*pair) is not None]
    rest = [pair for pair in _tested_pairs() if pair[0].strip() and exact.equal(*pair) is None]
    right, wrong = made_pairs(100, right=True), made_pairs(100, right=False)
    made = [*right, *wrong]
    judged = sum(is_right(*pair) for pair in right) + sum(not is_right(*pair) for pair in wrong)
    notes = {
        "plain": f"{len(plain)} of the {len(answers)} answers, right and wrong, to math:Sample are plain",
        "math-verify": "published: a process per answer where values leave it open; upstream's: in this one",
        "made by rule": f"no grader was tuned on them; {judged} of our {len(made)} verdicts are right",
    }
    upstream = _upstream_grader()
    lines: list[Line] = []
    for (name, note), pairs, rounds in zip(notes.items(), (plain, rest, made), (5, 1, 1), strict=True):
        times = _graded(folder / f"{name}.jsonl", pairs[:: 4 if quick else 1] * rounds, upstream)
        for at, place in (("p50", 0.5), ("p95", 0.95)):
            mine, published, theirs = (sorted(side)[int(place * len(side))] if side else None for side in times)
            assert mine is not None, "ours grades every answer"
            assert published is not None, "so does the published one"
            line = Line(f"{name}, {at} of {len(times[0])} verdicts, ms", mine, theirs)
            if at == "p50":
                line.note = note
                line.target, line.met = ("<= 1", mine <= 1) if name == "plain" else ("<= 24", mine <= 24)
            lines += [with_ratio(line), with_ratio(Line(f"{name}, {at}, published", published, theirs))]
    return lines


def made_pairs(count: int, right: bool) -> list[tuple[str, str]]:
    """Answers and accepted ones, all right or all wrong, made by rules that know of no grader."""
    dice = random.Random(20)
    return [_FORMS[number % len(_FORMS)](dice, right=right) for number in range(count)]


def _quadratic(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(2, 20), dice.randrange(2, 20)
    return f"(x+{a})(x-{b})", f"x^2{a - b:+d}x-{a * b + (not right)}"


def _surd(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(2, 12), dice.choice((2, 3, 5, 7))
    return f"{a}\\sqrt{{{b}}}", f"\\sqrt{{{a * a * b + (not right)}}}"


def _rationalized(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(2, 30), dice.choice((2, 3, 5, 7))
    return f"\\frac{{{a}}}{{\\sqrt{{{b}}}}}", f"\\frac{{{a + (not right)}\\sqrt{{{b}}}}}{{{b}}}"


def _angle(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(1, 12), dice.randrange(2, 12)
    return f"\\frac{{{2 * a}\\pi}}{{{2 * b}}}", f"\\frac{{{a}}}{{{b + (not right)}}}\\pi"


def _logarithm(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(2, 9), dice.randrange(2, 5)
    return f"{b}\\ln {a} + x", f"x+\\ln {a**b + (not right)}"


def _double_angle(dice: random.Random, right: bool) -> tuple[str, str]:
    a = dice.randrange(2, 9)
    return f"{2 * a}\\sin x\\cos x", f"{a}\\{'sin' if right else 'cos'}(2x)"


def _union(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(1, 9), dice.randrange(10, 20)
    return f"({b},\\infty)\\cup(-\\infty,-{a}]", f"(-\\infty,-{a + (not right)}]\\cup({b},\\infty)"


def _solutions(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(1, 9), dice.choice((2, 3, 5))
    return f"{a}\\pm\\sqrt{{{b}}}", f"{a}-\\sqrt{{{b}}}, {a}+\\sqrt{{{b + (not right)}}}"


def _matrix(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b, c, d = (dice.randrange(-9, 9) for _ in range(4))
    return (
        f"\\begin{{pmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{pmatrix}}",
        f"\\begin{{pmatrix}}{a}&{b}\\\\{c}&{d + (not right)}\\end{{pmatrix}}",
    )


def _line(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(2, 9), dice.randrange(1, 9)
    return f"y - {a}x = {b}", f"y = {a}x + {b + (not right)}"


def _point(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(1, 9), dice.choice((3, 7, 9, 11))
    factor = 2 if right else 3
    return f"\\left( \\frac{{{a}}}{{{b}}}, \\sqrt{{8}} \\right)", f"({2 * a}/{2 * b}, {factor}\\sqrt2)"


def _complex(dice: random.Random, right: bool) -> tuple[str, str]:
    a, b = dice.randrange(1, 9), dice.randrange(1, 9)
    return f"({a}+{b}i)^2", f"{a * a - b * b}{2 * a * b + (not right):+d}i"


_FORMS = (
    *(_quadratic, _surd, _rationalized, _angle, _logarithm, _double_angle, _union, _solutions, _matrix, _line),
    *(_point, _complex),
)


def _tested_pairs() -> Sequence[tuple[str, str]]:
    """Answers and accepted answers of the parity tests, which are skipped if upstream's grader lacks a module."""
    sys.path[:0] = [str(HERE.parent / "tests" / "parity")]
    with patch.dict(sys.modules, {"gem.utils.math_grader": ModuleType("gem.utils.math_grader")}):
        return importlib.import_module("test_math").PAIRS


def _upstream_grader() -> Callable[..., Any] | None:
    """Upstream's grader; `None` if pylatexenc is missing, which it needs but does not declare."""
    try:
        from gem.utils.math_grader import boxed_reward_fn
    except ModuleNotFoundError:
        return None
    return boxed_reward_fn


def _graded(
    data: Path, pairs: Sequence[tuple[str, str]], upstream: Callable[..., Any] | None
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of our verdict, the published one and upstream's grader for each answer. An unmeasured answer first
    starts the processes."""
    from gem_math.env import MathEnv

    first = ("\\frac{\\sqrt{8}}{2}", "\\sqrt{2}")
    data.write_text("".join(json.dumps({"problem": "?", "answer": gold}) + "\n" for _, gold in (first, *pairs)))
    envs = MathEnv(str(data)), MathEnv(str(data), published=True)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for index, (answer, gold) in enumerate((first, *pairs)):
        action = f"\\boxed{{{answer}}}"
        for env, taken in zip(envs, times, strict=False):
            env.reset(row=index)
            taken.append(_milliseconds(env.step, action))
        if upstream is not None:
            times[2].append(_milliseconds(upstream, action, gold, False, 1.0, 0.0))
    return times[0][1:], times[1][1:], times[2][1:]


def _milliseconds(call: Callable[..., Any], *arguments: Any) -> float:
    begin = time.perf_counter()
    call(*arguments)
    return 1000 * (time.perf_counter() - begin)


def memory(folder: Path, quick: bool) -> list[Line]:
    """Megabytes of a process with 64 environments and its children, after an answer for math-verify in each."""
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
    """Figures from a separate process; none if upstream lacks a module."""
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
    """Memory of this process and its descendants."""
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
