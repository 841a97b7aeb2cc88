"""By hand, with a clone of tau-bench in TAU_BENCH_HOME: every task, beside tau-bench's own code.

TAU_BENCH_HOME=... python -m pytest -s --timeout=0 plugins/desk/tests/real_tau_bench.py
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from gem_desk.clone import VARIABLE
from gem_desk.tau_bench import TRANSFER, TauBench

SPLITS = [("retail", "test"), ("retail", "train"), ("retail", "dev"), ("airline", "test")]

every_split = pytest.mark.parametrize(("domain", "split"), SPLITS)
tested_splits = pytest.mark.parametrize("domain", ["retail", "airline"])


def written(name: str, arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def said(env: TauBench) -> str:
    return "; ".join(env.task.outputs) + "."


def earned(env: TauBench, number: int, *, work: bool, speak: bool) -> float:
    """By the reference calls, the outputs, both, or neither."""
    env.reset(seed=0, data_index=number)
    for name, arguments in env.task.actions if work else ():
        if name != TRANSFER:
            assert env.step(written(name, arguments))[1:4] == (0.0, False, False)
    _, reward, terminated, _, _ = env.step(said(env) if speak else "Done.")
    assert terminated
    return reward


@every_split
def test_reference_calls_and_outputs_earn_one(domain: str, split: str) -> None:
    env = TauBench(domain=domain, split=split, max_turns=100)
    found = [earned(env, number, work=True, speak=True) for number in range(env.data_size)]
    print(f"{domain} {split}: {sum(found):.0f} of {len(found)} by the reference")
    assert {*found} == {1.0}


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """tau-bench's own classes of environments, without the library for models, which only its users need."""
    library = types.ModuleType("litellm")
    library.__dict__["completion"] = library.__dict__["Message"] = None
    library.__dict__["provider_list"] = []
    monkeypatch.setitem(sys.modules, "litellm", library)
    monkeypatch.syspath_prepend(os.environ[VARIABLE])
    agents = types.ModuleType("tau_bench.agents.base")
    agents.__dict__["Agent"] = None
    monkeypatch.setitem(sys.modules, "tau_bench.agents", types.ModuleType("tau_bench.agents"))
    monkeypatch.setitem(sys.modules, "tau_bench.agents.base", agents)
    yield importlib.import_module("tau_bench.envs")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tau_bench"]:
        del sys.modules[name]


class Leaving:
    """A customer of tau-bench who leaves after the first reply."""

    def reset(self, instruction: str | None = None) -> str:
        return "Hi."

    def step(self, content: str) -> str:
        return "###STOP###"

    def get_total_cost(self) -> float:
        return 0.0


@tested_splits
@pytest.mark.parametrize(("work", "speak"), [(True, True), (False, False), (True, False), (False, True)])
def test_rewards_are_those_of_tau_bench(domain: str, work: bool, speak: bool, upstream: Any) -> None:
    types_ = importlib.import_module("tau_bench.types")
    theirs = upstream.get_env(domain, "human", "", "test", task_index=0)
    theirs.user = Leaving()
    env = TauBench(domain=domain, max_turns=100)
    assert len(theirs.tasks) == env.data_size
    ours: list[float] = []
    for number in range(env.data_size):
        theirs.reset(number)
        for action in theirs.task.actions if work else ():
            if action.name != TRANSFER:
                theirs.step(action)
        ours.append(earned(env, number, work=work, speak=speak))
        content = said(env) if speak else "Done."
        reply = types_.Action(name="respond", kwargs={"content": content})
        assert theirs.step(reply).reward == ours[-1], number
    print(f"{domain} test, work {work}, outputs {speak}: {sum(ours):.0f} of {len(ours)}, as in tau-bench")
