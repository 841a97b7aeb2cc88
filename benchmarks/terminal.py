"""What a terminal costs: 64 episodes at once, from the start of each to its tests.

    python benchmarks/terminal.py [--episodes 64] [--commands 5] [--backend bubblewrap]

CPU seconds are those of all processes that took part, the server's start left out. Wall times say what this machine did
beside its other work.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gem_core
from gem_core.env import Env

COMMAND = "<bash>ls -l | wc -l; X=$((X + 1))</bash>"
FINISH = "<finish></finish>"


def main() -> None:
    """Play, and print what it cost."""
    options = argparse.ArgumentParser()
    options.add_argument("--episodes", type=int, default=64)
    options.add_argument("--commands", type=int, default=5)
    options.add_argument("--backend", default="auto")
    given = options.parse_args()
    first = gem_core.make("terminal:Tasks-v0", backend=given.backend)
    first.reset(data_index=0)  # starts the server, which all environments of this process share
    envs = [gem_core.make("terminal:Tasks-v0", backend=given.backend) for _ in range(given.episodes)]
    with ThreadPoolExecutor(given.episodes) as pool:

        def each(what: str, act: Callable[[int, Env], object]) -> None:
            cpu, wall = _cpu(), time.perf_counter()
            list(pool.map(act, range(len(envs)), envs))
            cpu, wall = _cpu() - cpu, time.perf_counter() - wall
            print(f"{what:<24}{cpu / len(envs) * 1e3:8.1f} ms CPU each   {wall:6.2f} s for all")

        each("start", lambda number, env: env.reset(data_index=number))
        each(f"{given.commands} commands", lambda _, env: [env.step(COMMAND) for _ in range(given.commands)])
        print(f"{'memory':<24}{_memory() / len(envs) / 2**20:8.2f} MiB each, all processes")
        each("end, tests", lambda _, env: env.step(FINISH))
        each("start again", lambda number, env: env.reset(data_index=number))
        each("close", lambda _, env: env.close())
    first.close()
    print(f"{'processes left':<24}{len(_below()):8d}")


def _below() -> list[int]:
    """Ids of all processes below this one."""
    found, new = list[int](), [os.getpid()]
    while new:
        pid = new.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children = [*map(int, task.read_text().split())]
            except OSError:
                continue
            found += children
            new += children
    return found


def _cpu() -> float:
    """CPU seconds of this process and of all below it, with those that they have waited for."""
    total = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    ticks = os.sysconf("SC_CLK_TCK")
    for pid in _below():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / ticks
    return total


def _memory() -> int:
    """Bytes of all processes below this one; what several share counts in part."""
    total = 0
    for pid in _below():
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


if __name__ == "__main__":
    main()
