"""The upstream half of `vector.py`, for a Python with gem-llm 0.1.0 and without this project.

    python benchmarks/vector_upstream.py MEASURE [quick]

Prints the figures as one line of JSON.
"""

from __future__ import annotations

import json
import logging
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import gem
from gem.core import Env
from gem.envs.registration import register

TURNS = 1_000_000


class Waiting(Env):
    """Blocks in every call, like a tool or a service."""

    def __init__(self, seconds: float, **_: Any) -> None:
        super().__init__()
        self.seconds = seconds

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Wait."""
        super().reset(seed)
        time.sleep(self.seconds)
        return "ready", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait."""
        time.sleep(self.seconds)
        return "done", 0.0, False, False, {}


def main(measure: str, quick: bool) -> None:
    logging.disable(logging.INFO)
    register("bench:Fast-v0", Waiting, seconds=0.025)
    register("bench:Middle-v0", Waiting, seconds=0.05)
    register("bench:Slow-v0", Waiting, seconds=1.0)
    measures: dict[str, Callable[[bool], dict[str, float]]] = {
        "blocking": blocking,
        "straggler": straggler,
        "cheap": cheap,
        "resets": resets,
    }
    print(json.dumps(measures[measure](quick)))


def blocking(quick: bool) -> dict[str, float]:
    """256 environments whose calls block 50 ms."""
    vec = gem.make_vec(["bench:Middle-v0"] * 256, async_mode=True)
    begin = time.perf_counter()
    vec.reset()
    reset = time.perf_counter() - begin
    vec.step(["go"] * 256)  # starts the threads
    steps = 10 if quick else 40
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        vec.step(["go"] * 256)
    mean = (time.perf_counter() - begin) / steps
    cpu_ms = 1000 * (time.process_time() - cpu) / steps
    return {"reset_s": reset, "step_efficiency": 0.05 / mean, "step_cpu_ms": cpu_ms}


def straggler(quick: bool) -> dict[str, float]:
    """63 environments of 25 ms and one of 1 s."""
    vec = gem.make_vec(["bench:Fast-v0"] * 63 + ["bench:Slow-v0"], async_mode=True)
    vec.reset()
    steps = 2 if quick else 4
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        vec.step(["go"] * 64)
    rate = 64 * steps / (time.perf_counter() - begin)
    cpu_ms = 1000 * (time.process_time() - cpu) / (64 * steps)
    return {"share": rate / (63 / 0.025 + 1), "cpu_ms_per_turn": cpu_ms}


def cheap(quick: bool) -> dict[str, float]:
    """256 games that take microseconds."""
    dice = random.Random(0)
    guesses = [[f"I guess \\boxed{{{dice.randint(1, 50)}}}" for _ in range(256)] for _ in range(32)]
    names = {"sync": False, "async": True}
    vecs = {name: gem.make_vec(["game:GuessTheNumber-v0-hard"] * 256, async_mode=mode) for name, mode in names.items()}
    rates: dict[str, list[float]] = {}
    for vec in vecs.values():
        vec.reset(seed=0)
        vec.step(guesses[0])
    for _ in range(2 if quick else 5):
        for name, vec in vecs.items():
            begin, cpu, steps = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() - begin < 0.5:
                vec.step(guesses[steps % 32])
                steps += 1
            rates.setdefault(f"{name}_per_cpu_s", []).append(256 * steps / (time.process_time() - cpu))
            rates.setdefault(f"{name}_per_s", []).append(256 * steps / (time.perf_counter() - begin))
    figures = {name: statistics.median(values) for name, values in rates.items()}
    for unit in ("per_cpu_s", "per_s"):
        figures[f"async_over_sync_{unit}"] = _ratio(rates[f"async_{unit}"], rates[f"sync_{unit}"])
    return figures


def resets(quick: bool) -> dict[str, float]:
    """64 resets that compute."""
    walls: dict[bool, list[float]] = {False: [], True: []}
    vecs = {mode: gem.make_vec(["game:Sokoban-v0-easy"] * 64, async_mode=mode) for mode in walls}
    for number in range(1 if quick else 3):
        for mode, vec in vecs.items():
            begin = time.perf_counter()
            vec.reset(seed=1000 * number)
            walls[mode].append(time.perf_counter() - begin)
    return {"speed_up": _ratio(walls[False], walls[True])}


def _ratio(above: list[float], below: list[float]) -> float:
    """The median over rounds, as the machine is not the same in each."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


if __name__ == "__main__":
    main(sys.argv[1], "quick" in sys.argv[2:])
