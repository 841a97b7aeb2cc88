"""Many episodes in worker processes, one in twenty of which attacks its process: what does it cost the others?

    python benchmarks/hostile_environments.py [--episodes 10000] [--slots 40] [--workers 4] [--json FILE]

The attacks are on descriptors, the worker's socket, signals and memory. The same episodes without attacks are played on
the sync backend. Fails unless each episode was played exactly once, every attacker lost its own, and the others are the
same byte for byte.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gem_core
from gem_core import Env
from gem_core.env import ResetResult, StepResult
from gem_core.failures import FailurePolicy
from gem_core.vector import VectorEnv
from gem_core.vector import _wire as wire
from gem_core.vector._calls import Transition

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests" / "support")]

from gem_support.attacks import (  # noqa: E402
    closes_descriptors,
    closes_descriptors_and_opens_others,
    has_an_alarm,
    kills_its_group,
    say,
    takes_all_memory,
)

ENV_ID = "bench:Hostile-v0"
SEED = 20
SHARE = 0.05
TIMEOUT = 60.0


def _writes_noise() -> None:
    say(os.urandom(256))


def _answers_for_others() -> None:
    say(wire.framed([wire.packed(10_000, Transition("mine", 1.0, True, False, {}))]))


def _crashes() -> None:
    ctypes.string_at(0)


ATTACKS: tuple[Callable[[], None], ...] = (
    closes_descriptors,
    closes_descriptors_and_opens_others,
    kills_its_group,
    has_an_alarm,
    takes_all_memory,
    _writes_noise,
    _answers_for_others,
    _crashes,
)


class Hostile(Env):
    """A walk of two to six turns that shows its generator's numbers; where it may, one in twenty attacks in its second.

    Args:
        attacks: whether it may.
    """

    def __init__(self, attacks: bool = False) -> None:
        self.attacks = attacks

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start."""
        super().reset(seed=seed)
        self.left, self.turn = self.rng.randint(2, 6), 0
        self.attack = attack_of(seed or 0) if self.attacks else None
        return f"start {self.rng.random()}", {"left": self.left}

    def step(self, action: str) -> StepResult:
        """Walk, or attack."""
        self.turn += 1
        if self.attack is not None and self.turn == 2:
            self.attack()
        self.left -= 1
        done = self.left == 0
        info = {"left": self.left, "seen": [self.rng.random()], "success": done}
        return f"{action} {self.rng.random()}", self.rng.random(), done, False, info

    def sample_random_action(self) -> str:
        """Any."""
        return "go"


def attack_of(seed: int) -> Callable[[], None] | None:
    """The attack of the episode with this seed, if there is one."""
    luck = random.Random(f"attack {seed}")
    return luck.choice(ATTACKS) if luck.random() < SHARE else None


class Played(NamedTuple):
    """An episode."""

    seed: int
    transcript: bytes
    error: str | None


def play(vec: VectorEnv, episodes: int) -> dict[int, list[Played]]:
    """The first tasks of a run, by their number; each is listed as often as it was played to its end."""
    found: dict[int, list[Played]] = {}
    slots = vec.num_envs
    rounds = episodes // slots
    observations, infos = vec.reset()
    shown: list[list[Any]] = [[one] for one in zip(observations, infos, strict=True)]
    numbers = [0] * slots
    while playing := [slot for slot in range(slots) if numbers[slot] < rounds]:
        texts, *numbers_and_flags, after = vec.step({slot: f"turn {len(shown[slot])}" for slot in playing})
        columns = texts, *(array.tolist() for array in numbers_and_flags), after
        for slot, observation, reward, terminated, truncated, info in zip(playing, *columns, strict=True):
            if not (terminated or truncated):
                shown[slot].append((observation, reward, terminated, truncated, info))
                continue
            final = info.pop("final_info")
            shown[slot].append((info.pop("final_observation"), reward, terminated, truncated, final))
            seed = shown[slot][0][1]["seed"]
            task = numbers[slot] * slots + slot
            found.setdefault(task, []).append(Played(seed, json.dumps(shown[slot]).encode(), final.get("error")))
            shown[slot] = [(observation, info)]
            numbers[slot] += 1
    return found


def run(episodes: int, slots: int, backend: Any, attacks: bool, workers: int | None = None) -> Any:
    """The episodes, the seconds that they took, and the vector's statistics."""
    failures = FailurePolicy(timeout=None if backend == "sync" else TIMEOUT, max_failure_share=None)
    began = time.monotonic()
    with gem_core.make_vec(
        ENV_ID,
        slots,
        backend=backend,
        seed=SEED,
        workers=workers,
        failures=failures,
        env_kwargs={"attacks": attacks},
    ) as vec:
        found = play(vec, episodes)
        return found, time.monotonic() - began, vec.statistics[ENV_ID]


def compared(expected: dict[int, list[Played]], found: dict[int, list[Played]], episodes: int) -> dict[str, Any]:
    """What became of each episode."""
    attackers = {task for task, [one] in expected.items() if attack_of(one.seed) is not None}
    others = sorted(expected.keys() - attackers)
    same = [task for task in others if found.get(task) == expected[task]]
    kinds = Counter(str(attack_of(expected[task][0].seed).__name__).strip("_") for task in attackers)  # type: ignore[union-attr]
    return {
        "episodes": episodes,
        "lost": episodes - len(found),
        "doubled": sum(len(one) > 1 for one in found.values()),
        "attackers": len(attackers),
        "attackers that failed": sum(found[task][0].error is not None for task in attackers if task in found),
        "others": len(others),
        "others that failed": sum(found[task][0].error is not None for task in others if task in found),
        "others that are the same byte for byte": len(same),
        "digest of the others": hashlib.sha256(b"".join(found[task][0].transcript for task in same)).hexdigest()[:16],
        "attacks": dict(sorted(kinds.items())),
    }


def main() -> int:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=40)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    episodes = options.episodes // options.slots * options.slots
    gem_core.register(ENV_ID, Hostile)
    expected, _, _ = run(episodes, options.slots, "sync", False)
    found, seconds, statistics = run(episodes, options.slots, "process", True, options.workers)
    result = compared(expected, found, episodes)
    result |= {"seconds": round(seconds, 1), "slots": options.slots, "workers": options.workers}
    result |= {"episodes that the vector counted": statistics.episodes, "failures": statistics.failures}
    for name, value in result.items():
        print(f"{name}: {value}")
    if options.json:
        options.json.write_text(json.dumps(result))
    right = result["lost"] == result["doubled"] == result["others that failed"] == 0
    right = right and result["attackers that failed"] == result["attackers"] > 0
    return 0 if right and result["others that are the same byte for byte"] == result["others"] else 1


if __name__ == "__main__":
    sys.exit(main())
