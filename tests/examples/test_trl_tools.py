"""The examples with tools as a user runs them, in an otherwise empty folder, with a tiny budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gem_support.scripts import answer_of, run_one_after_another
from gem_train.records import read_episodes

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["trl_math_with_python.py", "trl_qa_with_search.py"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each, named as the file."""
    folder = tmp_path_factory.mktemp("trained")
    budget = ["--updates", "2", "--episodes", "16", "--warm-start-steps", "60", "--max-tool-uses", "2"]
    run_one_after_another([(EXAMPLES / name, [*budget, "--output", Path(name).stem]) for name in NAMES], folder)
    return folder


@pytest.mark.parametrize(
    ("name", "tool", "shown"),
    [(NAMES[0], "python", "Code execution result: "), (NAMES[1], "search", "<information>Doc 1")],
)
def test_it_trains_on_the_turns_of_tools_too(name: str, tool: str, shown: str, trained: Path) -> None:
    output = trained / Path(name).stem
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert [line["episode/tool_calls"] > 0 for line in metrics] == [True, True]
    turns = [turn for one in read_episodes(output) for turn in one.episode.turns]
    assert {turn.info["tool_type"] for turn in turns if turn.info.get("use_tool")} == {tool}
    assert any(shown in turn.observation for turn in turns)
    assert all(turn.reward > 0 for turn in turns if turn.info.get("use_tool"))


@pytest.mark.parametrize("name", NAMES)
def test_wrong_flags_are_answered_well(name: str) -> None:
    wrong = answer_of(EXAMPLES / name, "--max-tool-use", "3")
    assert wrong.returncode == 2
    assert "--max-tool-uses" in wrong.stderr
    uneven = answer_of(EXAMPLES / name, "--episodes", "100", "--micro-batch", "64")
    assert uneven.stderr.strip() == "--episodes 100 is not a multiple of --micro-batch 64"
