"""Our half of `vector.py`.

    python benchmarks/vector_ours.py MEASURE [quick]

Prints the figures as one line of JSON. CPU seconds include all descendants of this process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import queue
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gem_core
from gem_core.env import Env, ResetResult, StepResult
from gem_core.vector import VectorEnv

Figures = dict[str, float]


# -- environments --------------------------------------------------------------------------------------------------


class Waiting(Env):
    """Blocks in every call, like a tool or a service."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Wait."""
        super().reset(seed=seed)
        time.sleep(self.seconds)
        return "ready", {}

    def step(self, action: str) -> StepResult:
        """Wait."""
        time.sleep(self.seconds)
        return "done", 0.0, False, False, {}

    def sample_random_action(self) -> str:
        """Any."""
        return "go"


class Boxes(Env):
    """A room with boxes to push; all the work is making a solvable room.

    As in Sokoban, the boxes start on their goals, and random pulls move them as far away as possible.
    """

    SIZE = 10
    PULLS = 20_000

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Make a room."""
        super().reset(seed=seed)
        floor = self._carve()
        goals = self.rng.sample(sorted(floor), 3)
        player = self.rng.choice(sorted(floor - set(goals)))
        boxes = self._pull(floor, goals, player)
        rows = [[self._sign((x, y), floor, goals, boxes) for x in range(self.SIZE)] for y in range(self.SIZE)]
        return "\n".join("".join(row) for row in rows), {}

    def step(self, action: str) -> StepResult:
        """Give up."""
        return "", 0.0, True, False, {"success": False}

    def sample_random_action(self) -> str:
        """Any."""
        return "up"

    def _carve(self) -> set[tuple[int, int]]:
        x = y = self.SIZE // 2
        floor = {(x, y)}
        while len(floor) < self.SIZE * self.SIZE // 3:
            dx, dy = self.rng.choice(((0, 1), (0, -1), (1, 0), (-1, 0)))
            x, y = min(max(x + dx, 1), self.SIZE - 2), min(max(y + dy, 1), self.SIZE - 2)
            floor.add((x, y))
        return floor

    def _pull(self, floor: set[tuple[int, int]], goals: list[tuple[int, int]], player: tuple[int, int]) -> list[Any]:
        boxes, best, furthest = list(goals), list(goals), -1
        for _ in range(self.PULLS):
            dx, dy = self.rng.choice(((0, 1), (0, -1), (1, 0), (-1, 0)))
            there, behind = (player[0] + dx, player[1] + dy), (player[0] - dx, player[1] - dy)
            if there not in floor or there in boxes:
                continue
            if behind in boxes:
                boxes[boxes.index(behind)] = player
                way = sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(boxes, goals, strict=True))
                if way > furthest:
                    best, furthest = list(boxes), way
            player = there
        return best

    @staticmethod
    def _sign(place: tuple[int, int], floor: set[tuple[int, int]], goals: list[Any], boxes: list[Any]) -> str:
        if place not in floor:
            return "#"
        return "$" if place in boxes else "." if place in goals else " "


# -- the clock -----------------------------------------------------------------------------------------------------


@dataclass
class Spent:
    """The cost of a piece of work."""

    wall: float = 0.0
    cpu: float = 0.0


@contextlib.contextmanager
def spending() -> Iterator[Spent]:
    """Measure wall and CPU seconds of a block, descendants included."""
    spent = Spent()
    cpu, begin = _cpu(), time.perf_counter()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - begin, _cpu() - cpu


def _cpu() -> float:
    total = 0.0
    for pid in {os.getpid(), *_descendants()}:
        with contextlib.suppress(OSError):  # it ended meanwhile
            total += time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3), which Python lacks
    return total


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, new = set[int](), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new}
        found |= new
    return found


# -- measures ------------------------------------------------------------------------------------------------------


def main(measure: str, quick: bool) -> None:
    for name, seconds in {"Short": 0.01, "Fast": 0.025, "Middle": 0.05, "Slow": 1.0}.items():
        gem_core.register(f"bench:{name}-v0", Waiting, kwargs={"seconds": seconds})
    gem_core.register("bench:Boxes-v0", Boxes)
    measures: dict[str, Callable[[bool], Figures]] = {
        "blocking": blocking,
        "straggler": straggler,
        "cheap": cheap,
        "resets": resets,
        "ray": ray_against_process,
    }
    print(json.dumps(measures[measure](quick)))


def blocking(quick: bool) -> Figures:
    """256 environments whose calls block 50 ms."""
    steps, seconds = (10, 1.0) if quick else (40, 3.0)
    figures = _bare_threads(256, 0.05, steps, seconds)
    with gem_core.make_vec("bench:Middle-v0", 256, backend="thread", seed=0) as vec:
        with spending() as spent:
            vec.reset()
        figures["reset_s"] = spent.wall
        actions = ["go"] * 256
        vec.step(actions)
        with spending() as spent:
            for _ in range(steps):
                vec.step(actions)
        figures["step_efficiency"] = 0.05 * steps / spent.wall
        figures["step_cpu_ms"] = 1000 * spent.cpu / steps
        rate, cpu = _pipelined(vec, seconds)
        figures["pipelined_efficiency"] = rate / (256 / 0.05)
        figures["pipelined_cpu_ms"] = 1000 * 256 * cpu
    return figures


def straggler(quick: bool) -> Figures:
    """63 environments of 25 ms and one of 1 s."""
    with gem_core.make_vec({"bench:Fast-v0": 63, "bench:Slow-v0": 1}, 64, backend="thread", seed=0) as vec:
        vec.reset()
        rate, cpu = _pipelined(vec, 2.0 if quick else 5.0)
    return {"share": rate / (63 / 0.025 + 1), "cpu_ms_per_turn": 1000 * cpu}


def cheap(quick: bool) -> Figures:
    """256 games that take microseconds, alternating between backends."""
    dice = random.Random(0)
    guesses = [[f"I guess \\boxed{{{dice.randint(1, 50)}}}" for _ in range(256)] for _ in range(32)]
    kinds: dict[str, dict[str, Any]] = {
        "sync": {"backend": "sync"},
        "thread_1": {"backend": "thread", "workers": 1},
        "thread_2": {"backend": "thread", "workers": 2},
        "process_1": {"backend": "process", "workers": 1},
        "process_2": {"backend": "process", "workers": 2},
    }
    rates: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        vecs = {
            name: stack.enter_context(gem_core.make_vec("game:GuessTheNumber-v0-hard", 256, seed=0, **kind))
            for name, kind in kinds.items()
        }
        for vec in vecs.values():
            vec.reset()
            vec.step(guesses[0])
        for _ in range(2 if quick else 5):
            for name, vec in vecs.items():
                with spending() as spent:
                    steps = _step_for(vec, guesses, 0.5)
                rates.setdefault(f"{name}_per_cpu_s", []).append(256 * steps / spent.cpu)
                rates.setdefault(f"{name}_per_s", []).append(256 * steps / spent.wall)
    figures = {name: statistics.median(values) for name, values in rates.items()}
    for unit in ("per_cpu_s", "per_s"):
        sync = rates[f"sync_{unit}"]
        figures[f"best_parallel_{unit}"] = max(
            _ratio(rates[f"{name}_{unit}"], sync) for name in kinds if name != "sync"
        )
    return figures


def resets(quick: bool) -> Figures:
    """64 resets that compute, in this process and in two."""
    walls: dict[str, list[float]] = {"sync": [], "process": [], "bare": []}
    cpus: dict[str, list[float]] = {"sync": [], "process": [], "bare": []}
    fork = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(2, mp_context=fork) as bare,
        gem_core.make_vec("bench:Boxes-v0", 64, seed=0) as sync,
        gem_core.make_vec("bench:Boxes-v0", 64, seed=0, backend="process", workers=2) as process,
    ):
        runs: dict[str, Callable[[], Any]] = {
            "sync": sync.reset,
            "process": process.reset,
            "bare": lambda: list(bare.map(_make_rooms, (0, 1))),
        }
        if sync.reset() != process.reset():
            raise RuntimeError("the backends made different rooms")
        runs["bare"]()
        for _ in range(1 if quick else 5):
            for name, run in runs.items():
                with spending() as spent:
                    run()
                walls[name].append(spent.wall)
                cpus[name].append(spent.cpu)
    return {
        "reset_ms": 1000 * statistics.median(walls["sync"]) / 64,
        "speed_up": _ratio(walls["sync"], walls["process"]),
        "bare_speed_up": _ratio(walls["sync"], walls["bare"]),
        "share_of_bare": _ratio(walls["bare"], walls["process"]),
        "cpu_ratio": _ratio(cpus["process"], cpus["sync"]),
        "bare_cpu_ratio": _ratio(cpus["bare"], cpus["sync"]),
    }


def ray_against_process(quick: bool) -> Figures:
    """Turns of 10 ms in two Ray actors and in two processes."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    folder = tempfile.mkdtemp(prefix="gr", dir="/tmp")  # short: Ray makes sockets in it
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder, log_to_driver=False)
    try:
        with (
            gem_core.make_vec("bench:Short-v0", 32, seed=0, backend="process", workers=2) as process,
            gem_core.make_vec("bench:Short-v0", 32, seed=0, backend="ray", workers=2) as remote,
        ):
            vecs = {"process": process, "ray": remote}
            for vec in vecs.values():
                vec.reset()
            rates: dict[str, list[tuple[float, float]]] = {name: [] for name in vecs}
            for _ in range(2 if quick else 4):
                for name, vec in vecs.items():
                    rates[name].append(_pipelined(vec, 1.0))
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    figures = {"ray_slower": _ratio(*([rate for rate, _ in rates[name]] for name in ("process", "ray")))}
    for name, values in rates.items():
        figures[f"{name}_efficiency"] = statistics.median(rate for rate, _ in values) / (2 / 0.01)
        figures[f"{name}_cpu_ms"] = 1000 * statistics.median(cpu for _, cpu in values)
    return figures


# -- parts ---------------------------------------------------------------------------------------------------------


def _ratio(above: list[float], below: list[float]) -> float:
    """The median over rounds, because the machine's speed differs between rounds."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def _step_for(vec: VectorEnv, actions: list[list[str]], seconds: float) -> int:
    steps, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        vec.step(actions[steps % len(actions)])
        steps += 1
    return steps


def _pipelined(vec: VectorEnv, seconds: float) -> tuple[float, float]:
    """Turns per second with `send` and `recv`, and CPU seconds per turn."""
    vec.send(dict.fromkeys(range(vec.num_envs), "go"))
    _relay(vec, 0.2)  # until the environments no longer answer at the same time
    with spending() as spent:
        turns = _relay(vec, seconds)
    vec.drain()
    return turns / spent.wall, spent.cpu / turns


def _relay(vec: VectorEnv, seconds: float) -> int:
    turns, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        back = vec.recv(at_least=1)
        turns += len(back)
        vec.send(dict.fromkeys(back, "go"))
    return turns


def _make_rooms(half: int) -> None:
    env = Boxes()
    for number in range(half, 64, 2):
        env.reset(seed=number)


def _bare_threads(count: int, seconds: float, steps: int, free_seconds: float) -> Figures:
    """The limit of this machine: threads that sleep on request, and threads that only sleep."""
    inboxes: list[queue.SimpleQueue[bool]] = [queue.SimpleQueue() for _ in range(count)]
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    arrivals = itertools.count(1)

    def obey(inbox: queue.SimpleQueue[bool]) -> None:
        while inbox.get():
            time.sleep(seconds)
            if next(arrivals) % count == 0:
                done.put(None)

    threads = [threading.Thread(target=obey, args=(inbox,)) for inbox in inboxes]
    for thread in threads:
        thread.start()
    with spending() as told:
        for _ in range(steps):
            for inbox in inboxes:
                inbox.put(True)
            done.get()
    for inbox, thread in zip(inboxes, threads, strict=True):
        inbox.put(False)
        thread.join()
    return {
        "bare_step_efficiency": seconds * steps / told.wall,
        "bare_step_cpu_ms": 1000 * told.cpu / steps,
        "bare_free_efficiency": _free_threads(count, seconds, free_seconds),
    }


def _free_threads(count: int, seconds: float, duration: float) -> float:
    naps = [0] * count
    begin = time.perf_counter() + 0.3  # all threads have started by then
    end = begin + duration

    def nap(place: int) -> None:
        while (now := time.perf_counter()) < end:
            time.sleep(seconds)
            naps[place] += now > begin

    threads = [threading.Thread(target=nap, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(naps) * seconds / count / duration


if __name__ == "__main__":
    main(sys.argv[1], "quick" in sys.argv[2:])
