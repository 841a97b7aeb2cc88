"""By hand, with a clone of tau-bench in TAU_BENCH_HOME: every task, and the episodes that its authors recorded.

    TAU_BENCH_HOME=... python -m pytest -s tests/plugins/desk/real_tau_bench.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gem_desk.clone import VARIABLE
from gem_desk.model_customer import END
from gem_desk.tau_bench import TRANSFER, TauBench

SPLITS = [("retail", "test"), ("retail", "train"), ("retail", "dev"), ("airline", "test")]

every_split = pytest.mark.parametrize(("domain", "split"), SPLITS)


def written(name: str, arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def rewards(domain: str, split: str, *, work: bool, speak: bool) -> list[float]:
    """Of all tasks: the reference calls, the outputs, both, or neither."""
    env = TauBench(domain=domain, split=split, max_turns=100)
    found: list[float] = []
    for number in range(env.num_tasks):
        env.reset(seed=0, task=number)
        for name, arguments in env.task.actions if work else ():
            if name != TRANSFER:
                assert env.step(written(name, arguments))[1:4] == (0.0, False, False)
        _, reward, terminated, _, _ = env.step("; ".join(env.task.outputs) + "." if speak else "Done.")
        assert terminated
        found.append(reward)
    return found


@every_split
def test_reference_calls_and_outputs_earn_one(domain: str, split: str) -> None:
    found = rewards(domain, split, work=True, speak=True)
    print(f"{domain} {split}: {sum(found):.0f} of {len(found)} by the reference")
    assert {*found} == {1.0}


@every_split
def test_doing_nothing_earns_one_only_where_nothing_is_to_be_done(domain: str, split: str) -> None:
    found = rewards(domain, split, work=False, speak=False)
    env = TauBench(domain=domain, split=split)
    for number, reward in enumerate(found):
        env.reset(seed=0, task=number)
        nothing = env._domain.is_wanted(env.data, number) and not env.task.outputs
        assert reward == float(nothing)
    print(f"{domain} {split}: {sum(found):.0f} of {len(found)} by doing nothing")
    assert sum(found) < len(found) / 2


def test_recorded_episodes_have_the_same_results_and_rewards() -> None:
    files = sorted(Path(os.environ[VARIABLE], "historical_trajectories").glob("*.json"))
    assert files, "the clone has no recorded episodes"
    for file in files:
        domain = "airline" if "airline" in file.name else "retail"
        env = TauBench(domain=domain, customer="model:nobody:nobody")
        episodes: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        different = [episode["task_id"] for episode in episodes if not repeated(env, episode)]
        print(f"{file.name}: {len(episodes) - len(different)} of {len(episodes)} the same, not {different}")
        assert not different


def repeated(env: TauBench, episode: dict[str, Any]) -> bool:
    """Whether an episode's calls and replies lead to the recorded results and reward."""
    said = [one["content"] for one in episode["traj"] if one["role"] == "user"]
    heard = [END if "###STOP###" in text else text for text in said]
    env.reset(seed=0, task=episode["task_id"], heard=heard)
    reward = 0.0
    env.max_turns = len(episode["traj"])
    for at, message in enumerate(episode["traj"]):
        if message["role"] != "assistant":
            continue
        if calls := message.get("tool_calls"):
            function = calls[0]["function"]
            text, reward, terminated, *_ = env.step(written(function["name"], json.loads(function["arguments"])))
            after = episode["traj"][at + 1]["content"] if at + 1 < len(episode["traj"]) else None
            if after is not None and text.strip() != after.strip():
                print(f"{episode['task_id']}: {function} gave {text[:300]!r} and not {after[:300]!r}")
                return False
        else:
            text, reward, terminated, *_ = env.step(message["content"])
        if terminated:
            break
    return reward == episode["reward"]
