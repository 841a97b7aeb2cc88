"""What a verdict of `gem_grading` costs: verdicts per CPU second, and the time until one is there.

    python benchmarks/grading.py [--before CHECKOUT] [--rounds 5] [--verdicts 300]

`--before` is another checkout of this repository, measured in turn with this one: a busy machine weighs on both. CPU
seconds are those of the caller, the server and the grading processes. The median round counts.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

HERE = Path(__file__).resolve().parents[1]
CALLS: dict[str, tuple[Any, ...]] = {
    "cheap": ("operator:eq", "7", "7"),
    "math-verify": ("gem_math.verification:any_equal", "\\frac{\\sqrt{8}}{2}", ["\\sqrt{2}"]),
}


@dataclass
class Options:
    before: Path | None = None
    """A checkout to compare with."""
    rounds: int = 5
    verdicts: int = 300
    """Of each kind in a round; of math-verify a tenth."""


def main(options: Options) -> None:
    sides = {"now": HERE, **({"before": options.before.resolve()} if options.before else {})}
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for name in CALLS:
            verdicts = options.verdicts if name == "cheap" else options.verdicts // 10
            for side, folder in sides.items():
                found.setdefault((name, side), []).append(_round(folder, name, verdicts))
    print(f"{'':24} {'per CPU second':>15} {'p50 ms':>8} {'p95 ms':>8}")
    for (name, side), rounds in found.items():
        rate, p50, p95 = (statistics.median(each[key] for each in rounds) for key in ("rate", "p50", "p95"))
        print(f"{name + ', ' + side:24} {rate:15.0f} {p50:8.2f} {p95:8.2f}")


def _round(checkout: Path, name: str, verdicts: int) -> dict[str, float]:
    path = os.pathsep.join([*map(str, [checkout, *_plugins(checkout)]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(Path(__file__).resolve()), name, str(verdicts)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _plugins(checkout: Path) -> Iterator[Path]:
    return (folder for folder in (checkout / "plugins").iterdir() if folder.is_dir())


def _measure(name: str, verdicts: int) -> dict[str, float]:
    """In a process of its own: after a first verdict, which starts the server."""
    from gem_grading import close_server, grade

    function, *arguments = CALLS[name]

    def verdict() -> float:
        begin = time.perf_counter()
        assert grade(function, *arguments, timeout=600).value is True
        return 1000 * (time.perf_counter() - begin)

    # What starting takes is told by a server that grades nothing more.
    verdict()
    close_server()
    started = _cpu()
    verdict()
    times = sorted(verdict() for _ in range(verdicts))
    close_server()
    begun = started - _CPU_AT_FIRST
    used = _cpu() - started - begun
    return {"rate": verdicts / used, "p50": times[verdicts // 2], "p95": times[int(0.95 * verdicts)]}


def _cpu() -> float:
    """Seconds of this process and of those that it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


_CPU_AT_FIRST = _cpu()

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CALLS:
        print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main(tyro.cli(Options))
