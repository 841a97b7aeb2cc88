"""Environments and helpers for the tests of vectors. Worker processes import this, so it imports nothing heavy."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gem_core import Env, make_vec
from gem_core.seeding import derive_seed
from gem_core.vector import VectorEnv
from gem_support.waiting import wait_until

SEED = 11


class Walk(Env):
    """Goes on for one to four turns, as the seed says, and shows its generator's numbers."""

    def __init__(self, longest: int = 4) -> None:
        self.longest = longest

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.rng.randint(1, self.longest)
        return f"start {self.rng.random()}", {"left": self.left}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        done = self.left == 0
        return f"{action} {self.rng.random()}", self.rng.random(), done, False, {"left": self.left, "success": done}

    def sample_random_action(self) -> str:
        return self.rng.choice("abc")


class Hashed(Walk):
    """Shows what goes by the hashes of texts, which differ between processes."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return " ".join({f"word {number}" for number in range(20)}), {}


class Turns(Env):
    """Lasts as many turns as it is told; fails, hangs or answers oddly where an action says so."""

    def __init__(self, turns: int = 3, bad_openings: Sequence[int] = (), slow_openings: Sequence[int] = ()) -> None:
        self.turns, self.bad, self.slow = turns, tuple(bad_openings), tuple(slow_openings)

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        if seed in self.bad:
            raise OSError("no level")
        if seed in self.slow:
            time.sleep(5)
        self.left = self.turns
        return "go", {}

    def step(self, action: str) -> Any:
        if action == "raise":
            raise OSError("gone")
        if action == "cancel":
            import asyncio  # a sixth of what a worker imports

            raise asyncio.CancelledError
        self.left -= 1
        reward, over = {"text": ("3.5", False), "no": (1.0, "no")}.get(action, (1.0, self.left == 0))
        return "on", reward, over, False, {}

    def sample_random_action(self) -> str:
        return "a"


class Troubled(Walk):
    """A walk that gets into trouble in the episodes with the seeds given.

    Args:
        bad_seeds: those episodes.
        how: the name of a function in `TROUBLES`.
        when: `reset`, or the number of the turn, from 0.
        notes: a file that gets a line per trouble; see `times`.
        times: how often there is trouble, as `notes` says; -1 is always.
        jitter: seconds that a call takes at most.
        longest: of `Walk`.
    """

    def __init__(
        self,
        bad_seeds: Sequence[int] = (),
        how: str = "raises",
        when: str | int = 0,
        notes: str = "",
        times: int = -1,
        jitter: float = 0.0,
        longest: int = 4,
    ) -> None:
        super().__init__(longest)
        self.bad_seeds, self.how, self.when, self.jitter = tuple(bad_seeds), how, when, jitter
        self.notes, self.times = notes, times
        self.bad, self.turn = False, -1

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self.bad, self.turn = seed in self.bad_seeds, -1
        answer = super().reset(seed=seed)
        return self._trouble() if self.when == "reset" and self._is_due() else answer

    def step(self, action: str) -> Any:
        self.turn += 1
        answer = super().step(action)
        return self._trouble() if self.when == self.turn and self._is_due() else answer

    def _is_due(self) -> bool:
        if self.jitter:
            time.sleep(self.jitter * (hash((self.left, self.turn)) % 8) / 8)
        return self.bad and (self.times < 0 or len(noted(self.notes)) < self.times)

    def _trouble(self) -> Any:
        if self.notes:
            with open(self.notes, "a") as file:
                file.write(f"{os.getpid()}\n")
        return TROUBLES[self.how]()


def noted(path: str | Path) -> list[int]:
    """The numbers in a file, one per line; none if there is no file."""
    return [int(line) for line in Path(path).read_text().split()] if path and Path(path).exists() else []


def raises() -> Any:
    raise OSError("gone")


def gives_garbage() -> Any:
    return 7


def exits() -> Any:
    sys.exit(3)


WAKE = threading.Event()
"""Ends all `sleeps` of this process: a thread cannot be stopped, but a test can wake it."""


def sleeps() -> Any:
    WAKE.wait(120)


def keeps_the_lock() -> Any:
    deque(itertools.repeat(None), maxlen=0)  # one call of C that never returns, nor lets another thread run


def is_killed() -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def ends_the_process() -> Any:
    os._exit(0)


def segfaults() -> Any:
    ctypes.string_at(0)


def wants_memory() -> Any:
    return bytearray(1 << 62)


def interrupts_itself() -> Any:
    raise KeyboardInterrupt


class Mute(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


def raises_what_cannot_be_printed() -> Any:
    raise Mute


TROUBLES: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        raises,
        gives_garbage,
        exits,
        sleeps,
        keeps_the_lock,
        is_killed,
        ends_the_process,
        segfaults,
        wants_memory,
        interrupts_itself,
        raises_what_cannot_be_printed,
    )
}


def action(turn: int) -> str:
    """What is played in a turn."""
    return "abc"[turn % 3]


def seed_of(slot: int, number: int, width: int) -> int:
    """The seed of an episode in a vector with that many slots, or groups, that plays alone."""
    return derive_seed(SEED, number * width + slot)


def receive_interrupted(vec: VectorEnv, at_least: int) -> None:
    """Receive results that do not come, until Ctrl-C does; on a busy machine it may come before the wait begins.

    Raises:
        KeyboardInterrupt: it came.
    """
    threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    vec.recv(at_least)


Episode = tuple[str, list[tuple[str, float, bool, bool]]]


def alone(seed: int, longest: int = 4) -> Episode:
    """One episode of `Walk`, played by hand."""
    env = Walk(longest)
    opening, _ = env.reset(seed=seed)
    turns: list[tuple[str, float, bool, bool]] = []
    while not turns or not (turns[-1][2] or turns[-1][3]):
        turns.append(env.step(action(len(turns)))[:4])
    return opening, turns


def make(env_id: Any, num_envs: int | None = None, backend: Any = "sync", **settings: Any) -> VectorEnv:
    """A vector; one of processes has a single one, unless it is told otherwise."""
    if backend == "process":
        settings.setdefault("workers", 1)
    return make_vec(env_id, num_envs, backend=backend, **{"seed": SEED, **settings})


def play(vec: VectorEnv, rounds: int) -> list[list[Episode]]:
    """Whole episodes of each environment of a same-step vector, in order."""
    episodes: list[list[Episode]] = [[] for _ in range(vec.num_envs)]
    observations, _ = vec.reset()
    openings, turns = list(observations), [[] for _ in range(vec.num_envs)]
    for _ in range(rounds):
        answers = vec.step([action(len(one)) for one in turns])
        for index, (observation, reward, terminated, truncated, info) in enumerate(zip(*answers, strict=True)):
            done = terminated or truncated
            last = info["final_observation"] if done else observation
            turns[index].append((last, reward, terminated, truncated))
            if done:
                episodes[index].append((openings[index], turns[index]))
                openings[index], turns[index] = observation, []
    return episodes


def transcript(vec: VectorEnv, rounds: int) -> list[list[Any]]:
    """All that each environment shows in that many turns, with or without autoreset."""
    shown: list[list[Any]] = [[opening] for opening in zip(*vec.reset(), strict=True)]
    turns, over = [0] * vec.num_envs, [False] * vec.num_envs
    for _ in range(rounds):
        if vec.autoreset.value == "disabled" and any(over):
            ended = [index for index, one in enumerate(over) if one]
            for index, opening in zip(ended, zip(*vec.reset(slots=ended), strict=True), strict=True):
                shown[index].append(opening)
                turns[index] = 0
        answers = vec.step([action(turn) for turn in turns])
        for index, answer in enumerate(zip(*answers, strict=True)):
            shown[index].append(answer)
            over[index] = answer[2] or answer[3]
            turns[index] = 0 if over[index] else turns[index] + 1
    return shown


def env_threads() -> list[str]:
    """Threads that vectors started and that still run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("gem-env")]


def children() -> list[int]:
    """The processes that this one started, zombies included. Not multiprocessing's own helper, which any library may
    start, and which stays until this process ends."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return [pid for pid in found if not _is_resource_tracker(pid)]


def _is_resource_tracker(pid: int) -> bool:
    try:
        return b"multiprocessing.resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def open_files() -> int:
    """How many file descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))


def alive(pid: int) -> bool:
    """The process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone_soon(pids: Sequence[int]) -> bool:
    """Wait until none of these processes runs."""
    return wait_until(lambda: not any(alive(pid) for pid in pids))


def run_script(text: str, folder: Path, **settings: Any) -> subprocess.Popen[str]:
    """Start a script in a session of its own; what it and its workers leave behind can be found by `folder`."""
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GEM_TEST_MARK": str(folder)},
        **settings,
    )
