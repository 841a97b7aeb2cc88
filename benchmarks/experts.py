"""Random play and the expert's play of each id: means with 95 % intervals, as a table in Markdown.

    python benchmarks/experts.py                      # all ids of games and images
    python benchmarks/experts.py game:Wordle-v0-hard --episodes 500

Seeds are 0, 1, 2, ... for both players. A player of whom an episode fails has no row.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from contextlib import closing

import tyro

import gem_core
from gem_core.env import Env
from gem_core.plugins import Registration, manager
from gem_core.specs import EnvSpec

NAMESPACES = ("game:", "visual:")
NORMAL = 1.96
"""Standard errors of a 95 % interval of a mean of many episodes."""

Player = Callable[[Env, random.Random], str]
PLAYERS: dict[str, Player] = {
    "random": lambda env, draw: env.draw_action(draw),
    "expert": lambda env, draw: env.expert_action(),
}


def main(ids: tyro.conf.Positional[tuple[str, ...]] = (), episodes: int = 200) -> None:
    print("| id | player | return | success | turns |\n| --- | --- | --- | --- | --- |", flush=True)
    listed: list[Registration[EnvSpec]] = manager.all_registrations("gem_envs")
    chosen = ids or sorted(one.spec.id for one in listed if one.spec.id.startswith(NAMESPACES))
    for env_id in chosen:
        for name, player in PLAYERS.items():
            print(f"| {env_id} | {name} | {_measured(env_id, player, episodes)} |", flush=True)


def _measured(env_id: str, player: Player, episodes: int) -> str:
    returns, successes, turns = [], [], []
    with closing(gem_core.make(env_id)) as env:
        for seed in range(episodes):
            total, success, count = _episode(env, player, seed)
            returns.append(total)
            successes.append(success)
            turns.append(count)
    half = NORMAL * statistics.stdev(returns) / math.sqrt(episodes)
    mean = statistics.mean(returns)
    shown = f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"
    return f"{shown} | {statistics.mean(successes):.2f} | {statistics.mean(turns):.1f}"


def _episode(env: Env, player: Player, seed: int) -> tuple[float, bool, int]:
    draw = random.Random(f"play {seed}")
    env.reset(seed=seed)
    total, turns = 0.0, 0
    while True:
        _, reward, terminated, truncated, info = env.step(player(env, draw))
        total, turns = total + float(reward), turns + 1
        if terminated or truncated:
            return total, bool(info.get("success")), turns


if __name__ == "__main__":
    tyro.cli(main)
