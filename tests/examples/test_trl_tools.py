"""The examples with tools as a user runs them, each alone in an empty folder, with a tiny budget."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import answer_of

from gem_core.records import read_episodes

EXAMPLES = Path(__file__).parents[2] / "examples"


def _run(name: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, shutil.copy(EXAMPLES / name, folder), *flags]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)


@pytest.mark.parametrize(
    ("name", "tool", "shown"),
    [
        ("trl_math_with_python.py", "python", "Code execution result: "),
        ("trl_qa_with_search.py", "search", "<information>Doc 1"),
    ],
)
def test_it_trains_on_the_turns_of_tools_too(name: str, tool: str, shown: str, tmp_path: Path) -> None:
    budget = ["--updates", "2", "--episodes", "16", "--warm-start-steps", "60", "--max-tool-uses", "2"]
    done = _run(name, tmp_path, *budget, "--output", "out")
    assert done.returncode == 0, done.stderr[-3000:]
    metrics = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    assert [line["episode/tool_calls"] > 0 for line in metrics] == [True, True]
    turns = [turn for one in read_episodes(tmp_path / "out") for turn in one.episode.turns]
    assert {turn.info["tool_type"] for turn in turns if turn.info.get("use_tool")} == {tool}
    assert any(shown in turn.observation for turn in turns)
    assert all(turn.reward > 0 for turn in turns if turn.info.get("use_tool"))


@pytest.mark.parametrize("name", ["trl_math_with_python.py", "trl_qa_with_search.py"])
def test_wrong_flags_are_answered_well(name: str) -> None:
    wrong = answer_of(EXAMPLES / name, "--max-tool-use", "3")
    assert wrong.returncode == 2
    assert "--max-tool-uses" in wrong.stderr
    uneven = answer_of(EXAMPLES / name, "--episodes", "100", "--micro-batch", "64")
    assert uneven.stderr.strip() == "--episodes 100 is not a multiple of --micro-batch 64"
