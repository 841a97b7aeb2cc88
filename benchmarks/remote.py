"""What a step costs over a WebSocket: CPU of client and server, and time.

    python benchmarks/remote.py [--episodes 400]

A game whose own step takes microseconds is played here and through `gem-core serve`: by one environment, and by 64 in
the threads of a vector.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

from gem_core import Env, make, make_vec

GAME = "game:GuessTheNumber-v0-hard-no-max-turn"
TURNS = 8
SESSIONS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=400, help="per measurement")
    episodes: int = parser.parse_args().episodes
    command = [sys.executable, "-m", "gem_core", "serve", GAME, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    kwargs = {"url": server.stdout.readline().split()[-1]}
    try:
        with make(GAME) as env:
            measure("here, one environment", lambda: play(env, episodes), server.pid)
        with make(f"remote:{GAME}", **kwargs) as env:
            measure("served, one session", lambda: play(env, episodes), server.pid)
        vector = make_vec(f"remote:{GAME}", num_envs=SESSIONS, seed=1, backend="thread", env_kwargs=kwargs)
        vector.reset()
        measure(f"served, {SESSIONS} sessions", lambda: step(vector.step, episodes * TURNS // SESSIONS), server.pid)
        vector.close()
    finally:
        server.kill()


def play(env: Env, episodes: int) -> int:
    """Play, and return the number of calls."""
    calls = 0
    for seed in range(episodes):
        env.reset(seed=seed)
        calls += 1
        for turn in range(1, TURNS):
            calls += 1
            if any(env.step(f"\\boxed{{{turn}}}")[2:4]):
                break
    return calls


def step(call: Callable[[list[str]], object], rounds: int) -> int:
    """Step all slots, and return the number of calls."""
    for turn in range(rounds):
        call([f"\\boxed{{{turn % 50 + 1}}}"] * SESSIONS)
    return rounds * SESSIONS


def measure(what: str, played: Callable[[], int], server: int) -> None:
    """Print what a call costs."""
    client, elsewhere, wall = time.process_time(), cpu_of(server), time.perf_counter()
    calls = played()
    client, elsewhere = time.process_time() - client, cpu_of(server) - elsewhere
    times = [1e3 * seconds / calls for seconds in (client, elsewhere, time.perf_counter() - wall)]
    print("{:22} {:6} calls; ms a call: client {:.3f}, server {:.3f}, wall {:.3f}".format(what, calls, *times))


def cpu_of(process: int) -> float:
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
