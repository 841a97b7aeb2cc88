"""A program that only makes a vector, or only evaluates, leaves nothing behind when it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem_support.processes import processes_with
from gem_support.waiting import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="cleaning up needs Linux")

PROGRAM = """
import subprocess, sys, time
import gem_core

class Leaves(gem_core.Env):
    def __init__(self, mark=""):
        self.mark = mark

    def reset(self, seed=None, **options):
        super().reset(seed=seed)
        command = [sys.executable, "-c", "import time; time.sleep(3600)", self.mark]
        subprocess.Popen(command, start_new_session=True)
        return "", {}

    def step(self, action):
        return "", 0.0, False, False, {}

    def sample_random_action(self):
        return ""

gem_core.register("left:Leaves-v0", Leaves)
"""
WAYS = {
    "vector": """
from gem_core.vector import make_vec
vec = make_vec("left:Leaves-v0", 1, backend="process", env_kwargs={"mark": sys.argv[1]})
vec.reset()
time.sleep(3600)
""",
    "evaluation": """
from gem_evaluation import Entry, evaluate
evaluate(Entry(id="left:Leaves-v0", tasks=1, env_kwargs={"mark": sys.argv[1]}), lambda messages: time.sleep(3600))
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_program_leaves_no_child_of_an_environment(way: str, tmp_path: Path) -> None:
    script, mark = tmp_path / "program.py", str(tmp_path / "mark")
    script.write_text(PROGRAM + WAYS[way])
    with (tmp_path / "said").open("wb") as said, subprocess.Popen([sys.executable, script, mark], stderr=said) as run:
        try:
            wait_until(lambda: {*processes_with(mark)} - {run.pid} or run.poll() is not None)
            assert run.poll() is None, (tmp_path / "said").read_text()
        finally:
            run.kill()
    wait_until(lambda: not processes_with(mark), "the child lives on")
