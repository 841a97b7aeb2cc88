"""Our vectors and those of gem-llm 0.1.0: waiting, stragglers, cheap games, costly resets, Ray.

    python benchmarks/vector.py [--upstream PYTHON] [--only cheap resets] [--quick] [--json out.json]

`--upstream` is a Python with gem-llm 0.1.0. Each measurement runs in a separate process with a time limit, ours and
upstream's alternately, and the median of `--repeat` runs counts. A ratio is the factor by which ours is better.
"Others" is the number of cores that other work kept busy: figures with a high value are unreliable.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

Name = Literal["blocking", "straggler", "cheap", "resets", "ray"]
HERE = Path(__file__).parent
LIMIT_SECONDS = 180.0


@dataclass(frozen=True)
class Figure:
    """A line of the table."""

    measure: str
    backend: str
    ours: str
    """The key of our figure."""
    upstream: str = ""
    """The key of upstream's figure."""
    target: float | None = None
    less: bool = False
    """Less is better."""


FIGURES: dict[Name, tuple[Figure, ...]] = {
    "blocking": (
        Figure("256 calls of 50 ms: share of ideal, step", "thread", "step_efficiency", "step_efficiency", 0.95),
        Figure("  send and recv", "thread", "pipelined_efficiency", "step_efficiency", 0.95),
        Figure("  one reset of all, s", "thread", "reset_s", "reset_s", 0.1, less=True),
        Figure("  CPU ms per step of all", "thread", "step_cpu_ms", "step_cpu_ms", less=True),
        Figure("  the same with send and recv", "thread", "pipelined_cpu_ms", "step_cpu_ms", less=True),
        Figure("  share of ideal, threads and queues alone", "bare", "bare_step_efficiency"),
        Figure("  CPU ms per step of all", "bare", "bare_step_cpu_ms", less=True),
        Figure("  share of ideal, threads that only sleep", "bare", "bare_free_efficiency"),
    ),
    "straggler": (
        Figure("63 of 25 ms, one of 1 s: share of ideal", "thread", "share", "share", 0.95),
        Figure("  CPU ms per turn", "thread", "cpu_ms_per_turn", "cpu_ms_per_turn", less=True),
    ),
    "cheap": (
        Figure("256 cheap games: turns per CPU second", "sync", "sync_per_cpu_s", "sync_per_cpu_s"),
        *(
            Figure("", f"{backend}, {workers}", f"{backend}_{workers}_per_cpu_s", "async_per_cpu_s")
            for backend in ("thread", "process")
            for workers in (1, 2)
        ),
        Figure("  best parallel over sync", "", "best_parallel_per_cpu_s", "async_over_sync_per_cpu_s", 1.0),
        Figure("  turns per second", "sync", "sync_per_s", "sync_per_s"),
        *(
            Figure("", f"{backend}, {workers}", f"{backend}_{workers}_per_s", "async_per_s")
            for backend in ("thread", "process")
            for workers in (1, 2)
        ),
        Figure("  best parallel over sync", "", "best_parallel_per_s", "async_over_sync_per_s", 1.0),
    ),
    "resets": (
        Figure("64 resets that compute: speed-up over sync", "process, 2", "speed_up", "speed_up", 1.8),
        Figure("  of two processes and nothing else", "bare", "bare_speed_up"),
        Figure("  speed over theirs", "process, 2", "share_of_bare"),
        Figure("  CPU over that of sync", "process, 2", "cpu_ratio", less=True),
        Figure("  of two processes and nothing else", "bare", "bare_cpu_ratio", less=True),
        Figure("  ms per reset", "sync", "reset_ms", less=True),
    ),
    "ray": (
        Figure("32 of 10 ms on 2 workers: share of ideal", "process, 2", "process_efficiency"),
        Figure("", "ray, 2", "ray_efficiency"),
        Figure("  process over ray", "", "ray_slower", target=1.3, less=True),
        Figure("  CPU ms per turn", "process, 2", "process_cpu_ms", less=True),
        Figure("", "ray, 2", "ray_cpu_ms", less=True),
    ),
}
UPSTREAM_HAS: tuple[Name, ...] = ("blocking", "straggler", "cheap", "resets")


@dataclass
class Options:
    upstream: str | None = None
    """A Python with gem-llm 0.1.0."""
    only: tuple[Name, ...] = tuple(FIGURES)
    """Measurements to take."""
    quick: bool = False
    """Short runs, once each, to check that it works."""
    repeat: int = 3
    """Runs of each measurement; the median counts."""
    json: Path | None = None
    """File for the figures."""


@dataclass
class Line:
    """A line of the table, filled in."""

    measure: str
    backend: str
    ours: float | None
    upstream: float | None
    ratio: float | None
    """The factor by which ours is better."""
    target: float | None
    reached: bool | None
    problem: str = ""


def main(options: Options) -> None:
    console = Console(width=150 if not sys.stdout.isatty() else None)
    machine = _machine(options.upstream)
    console.print(" ".join(f"{key}={value}" for key, value in machine.items()))
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    lines: list[Line] = []
    table = Table("measure", "backend", "ours", "upstream", "ratio", "target", "others")
    for name in options.only:
        with console.status(f"measuring {name}"):
            runs[name] = _alternately(name, options)
        found = [
            _line(figure, *(_median(runs[name][side]) for side in ("ours", "upstream"))) for figure in FIGURES[name]
        ]
        _show(table, found, _others(runs[name]["ours"] + runs[name]["upstream"]))
        lines += found
    console.print(table)
    machine["load at the end"] = [round(load, 2) for load in os.getloadavg()]
    if options.json:
        report = {"machine": machine, "figures": [asdict(line) for line in lines], "runs": runs}
        options.json.write_text(json.dumps(report, indent=1))


# -- runs ----------------------------------------------------------------------------------------------------------


def _alternately(name: Name, options: Options) -> dict[str, list[dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "upstream": []}
    quick = ["quick"] if options.quick else []
    for _ in range(1 if options.quick else options.repeat):
        runs["ours"].append(_run([sys.executable, str(HERE / "vector_ours.py"), name, *quick]))
        if options.upstream and name in UPSTREAM_HAS:
            runs["upstream"].append(_run([options.upstream, str(HERE / "vector_upstream.py"), name, *quick]))
    return runs


def _run(command: list[str]) -> dict[str, Any]:
    """Figures of one process, or the error, and the other load of the machine."""
    begin, busy, own = time.perf_counter(), _busy_seconds(), _children_seconds()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = child.communicate(timeout=LIMIT_SECONDS)
        good = child.returncode == 0 and out
        figures = json.loads(out.splitlines()[-1]) if good else {"error": f"{command[1]}: {_last_line(err)}"}
    except subprocess.TimeoutExpired:
        figures = {"error": f"{command[1]}: no end within {LIMIT_SECONDS:g} s"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    wall = time.perf_counter() - begin
    others = max(0.0, _busy_seconds() - busy - (_children_seconds() - own))
    return {**figures, "others": others, "wall": wall}


def _others(runs: list[dict[str, Any]]) -> float:
    """Number of cores that were busy with other work."""
    return sum(run["others"] for run in runs) / sum(run["wall"] for run in runs)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no message")[:200]


def _busy_seconds() -> float:
    """CPU seconds that this machine has spent in total, including those that its host took."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _machine(upstream: str | None) -> dict[str, Any]:
    model = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model[0] if model else platform.machine(),
        "python": platform.python_version(),
        "gem_core": version("gem-core"),
        "gem_llm": _upstream_version(upstream) if upstream else "not measured",
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _upstream_version(python: str) -> str:
    ask = "from importlib.metadata import version; print(version('gem-llm'))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip() or "not found"


# -- the table -----------------------------------------------------------------------------------------------------


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure; an error where every run had one."""
    good = [run for run in runs if "error" not in run]
    if not good:
        return {"error": runs[0]["error"]} if runs else {}
    return {key: statistics.median(run[key] for run in good) for key in good[0]}


def _line(figure: Figure, ours: dict[str, Any], upstream: dict[str, Any]) -> Line:
    mine, theirs = ours.get(figure.ours), upstream.get(figure.upstream)
    ratio = reached = None
    if mine and theirs:
        ratio = theirs / mine if figure.less else mine / theirs
    if mine is not None and figure.target is not None:
        reached = mine <= figure.target if figure.less else mine >= figure.target
    problem = ours.get("error", "") or (figure.upstream and upstream.get("error", ""))
    return Line(figure.measure, figure.backend, mine, theirs, ratio, figure.target, reached, problem)


def _show(table: Table, lines: list[Line], others: float) -> None:
    problems: list[str] = []
    for number, line in enumerate(lines):
        goal = "" if line.target is None else f"{line.target:g}"
        verdict = {True: " [green]reached[/]", False: " [red]missed[/]", None: ""}[line.reached]
        table.add_row(
            line.measure,
            line.backend,
            _text(line.ours),
            _text(line.upstream),
            "" if line.ratio is None else f"{line.ratio:.3g}x",
            goal + verdict,
            "" if number else f"{others:.2f}",
        )
        if line.problem and line.problem not in problems:
            problems.append(line.problem)
    for problem in problems:
        table.add_row(Text(problem, "red"))
    table.add_section()


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main(tyro.cli(Options))
