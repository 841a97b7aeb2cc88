"""The cost of the guarantees of the `sync` backend: CPU per turn of 256 cheap games, adding one guarantee at a time.

    python benchmarks/vector_guarantees.py

Every line plays the same actions in the same environments. The lines alternate in one process, in blocks. Each figure
is the minimum of its blocks, so that other work on the machine affects it little.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import gem_core
from gem_core.env import Env
from gem_core.seeding import derive_seed
from gem_core.vector._calls import Transition, merged
from gem_core.vector._hosted import HostedEnv
from gem_core.vector._slots import first_starts
from gem_core.vector._tasks import TaskPlan

ENV_ID = "game:GuessTheNumber-v0-hard"
WIDTH = 256
STEPS = 32
BLOCKS = 60

Step = Callable[[Sequence[str]], Any]


def envs() -> list[Env]:
    """Environments after their first reset."""
    made = [gem_core.make(ENV_ID) for _ in range(WIDTH)]
    for seed, env in enumerate(made):
        env.reset(seed=seed)
    return made


def bare(*, guarded: bool, seeded: bool) -> Step:
    """A loop over the environments that resets those whose episode ended, and returns columns."""
    playing, episodes = envs(), [0] * WIDTH
    kind = type(playing[0])
    step = kind.step if guarded else kind.step.__wrapped__  # type: ignore[attr-defined]
    reset = kind.reset if guarded else kind.reset.__wrapped__  # type: ignore[attr-defined]

    def play(actions: Sequence[str]) -> Any:
        rows: list[Any] = []
        for slot, env in enumerate(playing):
            row = step(env, actions[slot])
            if row[2] or row[3]:
                episodes[slot] += 1
                seed = derive_seed(0, slot + WIDTH * episodes[slot]) if seeded else None
                observation, info = reset(env, seed=seed)
                row = (observation, *row[1:4], {**info, "final_observation": row[0], "final_info": row[4]})
            rows.append(row)
        return [list(column) for column in zip(*rows, strict=True)]

    return play


def hosted() -> Step:
    """The loop through `HostedEnv`: answers are checked, infos copied, failures caught."""
    plan = TaskPlan(ENV_ID, WIDTH, seed=0)
    made = [HostedEnv(slot, lambda: gem_core.make(ENV_ID), autoreset=True) for slot in range(WIDTH)]
    for one, start in zip(made, first_starts(plan), strict=True):
        one.perform(start, lambda slot, outcome: None)

    def play(actions: Sequence[str]) -> Any:
        rows: list[Any] = []
        ended: list[Any] = []

        def emit(slot: int, outcome: Any) -> None:
            ended.append(outcome)

        for slot, one in enumerate(made):
            outcome = one.answer(actions[slot])
            if type(outcome) is Transition and outcome.done:
                one.emit(outcome, emit)
                outcome = merged(ended[0], ended[1])
                ended.clear()
            rows.append(outcome)
        return [list(column) for column in zip(*rows, strict=True)]

    return play


def vector() -> Step:
    """`SyncVectorEnv`, with records for replays, statistics, the circuit breaker and safe interrupts."""
    vec = gem_core.make_vec(ENV_ID, WIDTH, backend="sync", seed=0)
    vec.reset()
    return vec.step


def main() -> None:
    """Play in turns and print the table."""
    dice = random.Random(0)
    guesses = [[f"I guess \\boxed{{{dice.randint(1, 50)}}}" for _ in range(WIDTH)] for _ in range(STEPS)]
    lines: dict[str, Step] = {
        "a loop over the games, with autoreset and columns": bare(guarded=False, seeded=False),
        "a step without an episode is refused": bare(guarded=True, seeded=False),
        "every episode has its own seed": bare(guarded=True, seeded=True),
        "answers are checked, infos copied, failures caught": hosted(),
        "record for replays, statistics, circuit breaker, interrupts (`make_vec`)": vector(),
    }
    least = dict.fromkeys(lines, float("inf"))
    for _ in range(BLOCKS):
        for name, play in lines.items():
            started = time.process_time()
            for actions in guesses:
                play(actions)
            least[name] = min(least[name], (time.process_time() - started) / WIDTH / STEPS)
    print("| with this additional guarantee | CPU us per turn | increase |")
    print("| --- | --- | --- |")
    before = None
    for name, seconds in least.items():
        more = "" if before is None else f"{1e6 * (seconds - before):.1f}"
        print(f"| {name} | {1e6 * seconds:.1f} | {more} |")
        before = seconds


if __name__ == "__main__":
    main()
