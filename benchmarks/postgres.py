"""What episodes on databases cost: 64 at once, each with a database and an MCP server of its own.

    python benchmarks/postgres.py [episodes at once] [rounds]

Waiting is the time that `reset` takes: of all at the same moment, and at the end of one after another while all others
are in play, as in a rollout whose episodes end one by one. CPU is that of all processes of the database server, over
all that is done for an episode: its copy, its connections, its queries and its end. That of the MCP servers and of this
process is listed beside it. The first round starts the MCP servers, so it is listed alone.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gem_core
from gem_core.env import Env
from gem_postgres import _host as host

TICK = os.sysconf("SC_CLK_TCK")
FINISH = '<tool_call>{"name": "finish", "arguments": {}}</tool_call>'
TASK = 1


def call(sql: str) -> str:
    """A call that changes something."""
    return f"<tool_call>{json.dumps({'name': 'execute', 'arguments': {'sql': sql}})}</tool_call>"


def below(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            found += [one for child in (task / "children").read_text().split() for one in below(int(child))]
        except OSError:
            continue
    return found


def cpu(processes: list[int]) -> float:
    """CPU seconds of processes and of those that they have waited for."""
    total = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICK


def memory(processes: list[int]) -> float:
    """Proportional size of processes, in MiB."""
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def play(env: Env) -> tuple[float, float, float, float]:
    """An episode; the seconds of its start, of a call, of its end, and its reward."""
    began = time.perf_counter()
    env.reset(data_index=TASK)
    opened = time.perf_counter()
    for statement in env.unwrapped.tasks[TASK].solution:  # pyright: ignore[reportAttributeAccessIssue]
        env.step(call(statement))
    called = time.perf_counter()
    _, reward, *_ = env.step(FINISH)
    return opened - began, called - opened, time.perf_counter() - called, reward


def began_again(env: Env, one: host.Host) -> float:
    """The seconds of the start that follows an end, alone and with a copy at hand, while other episodes are in play."""
    env.step(FINISH)
    one.wait()
    began = time.perf_counter()
    env.reset(data_index=TASK)
    seconds = time.perf_counter() - began
    env.step(call("SELECT 1"))
    return seconds


def main(at_once: int = 64, rounds: int = 4) -> None:
    """Play rounds of episodes, all of a round at once."""
    envs = [gem_core.make("postgres:Tasks-v0") for _ in range(at_once)]
    envs[0].reset(data_index=TASK)
    one: host.Host = next(iter(host._shared.values()))[0]  # pyright: ignore[reportPrivateUsage]
    with ThreadPoolExecutor(at_once) as pool:
        for number in range(rounds + 1):
            one.wait()
            servers = [pid for pid in below(os.getpid()) if pid not in (os.getpid(), *below(one.cluster.keeper))]
            before = cpu(below(one.cluster.keeper)), cpu(servers), time.process_time()
            began = time.perf_counter()
            played = [*pool.map(play, envs)]
            wall = time.perf_counter() - began
            one.wait()
            database = cpu(below(one.cluster.keeper)) - before[0]
            own = time.process_time() - before[2]
            now = [pid for pid in below(os.getpid()) if pid not in (os.getpid(), *below(one.cluster.keeper))]
            beside = cpu(now) - before[1]
            assert all(reward == 1.0 for *_, reward in played), "a reference solution was not accepted"
            starts = sorted(start * 1000 for start, *_ in played)
            call_ms, end_ms = (1000 * statistics.median(row[column] for row in played) for column in (1, 2))
            print(
                f"{'first round' if number == 0 else f'round {number}'}: {wall:.1f} s; waiting for a start, ms: median "
                f"{statistics.median(starts):.1f}, most {starts[-1]:.1f}; a call {call_ms:.0f}, the end {end_ms:.0f}; "
                f"CPU ms per episode: PostgreSQL {1000 * database / at_once:.0f}, MCP servers "
                f"{1000 * beside / at_once:.0f}, this process {1000 * own / at_once:.0f}"
            )
        for env in envs:  # now all are in play
            env.reset(data_index=TASK)
            env.step(call("SELECT 1"))
        starts = sorted(1000 * began_again(env, one) for env in envs)
        print(
            f"one start after another, {at_once} in play: waiting, ms: median {statistics.median(starts):.1f}, 95th "
            f"percentile {starts[int(0.95 * at_once)]:.1f}, most {starts[-1]:.1f}"
        )
        processes = [pid for pid in below(os.getpid()) if pid != os.getpid()]
        print(f"memory {memory(processes):.0f} MiB in {len(processes)} processes; load {os.getloadavg()[0]:.0f}")
    folder = one.cluster.folder
    for env in envs:
        env.close()
    left = [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    print(f"left afterwards: {len(left)} processes, the folder {'is there' if folder.exists() else 'is gone'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
