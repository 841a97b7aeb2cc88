"""The example as a user runs it, alone in an empty folder, with a tiny budget."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gem_evaluation import evaluate, load_model
from gem_support.scripts import answer_of, run_one_after_another
from gem_train.records import open_records, read_episodes

EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_guess_the_number.py"


def _run(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, shutil.copy(EXAMPLE, folder), *flags]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)


def test_it_trains_and_writes_its_files(tmp_path):
    done = _run(tmp_path, "--updates", "3", "--episodes", "8", "--warm-start-steps", "5", "--output", "out")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "random valid play" in done.stdout
    assert "rebn active" in done.stderr
    assert (tmp_path / "out" / "curve.png").stat().st_size > 5000
    assert len((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()) == 3
    # The trained model alone, without checkpoints, which have the optimizer's state.
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    assert not [*(tmp_path / "out").glob("checkpoint-*")]
    episodes = [one.episode for one in read_episodes(tmp_path / "out")]
    assert len(episodes) == 24
    assert {episode.provenance.split(" (")[1] for episode in episodes} == {"plugin 'game')"}
    (command,) = re.findall(r"^To look at the run: (.+)$", done.stdout, re.MULTILINE)
    shown = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "page.html").stat().st_size > 50_000


OTHERS = {
    "math": ["math:Sample"],
    "game": ["game:Minesweeper-v1-easy"],
    "mixture": ["qa:Sample", "rg:simple_equations", "game:TowerofHanoi-v0-easy"],
}
SMOLLM2 = EXAMPLE.with_name("trl_smollm2.py")
SHORT = ["--held-out", "math:Sample", "--held-out-games", "6", "--episodes", "6", "--updates", "1"]
SHORT += ["--warm-start-steps", "2", "--output", "smollm2"]
FLAGS = ["--updates", "2", "--episodes", "6", "--warm-start-steps", "5"]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run for each of `OTHERS`, and two more, by one process: its imports take most of the time.

    The two more are a LoRA of the model of `math`, stopped after two updates and resumed for a third, and SmolLM2's.
    """
    folder = tmp_path_factory.mktemp("others")
    runs = [(EXAMPLE, ["--env", *env_ids, *FLAGS, "--output", name]) for name, env_ids in OTHERS.items()]
    base = ["--model", "math/model", "--lora", "4", "--system-prompt", "1 2", "--env", "math:Sample"]
    flags = [*base, "--episodes", "6", "--micro-batch", "3", "--checkpoint-every", "1", "--output", "adapter"]
    runs += [(EXAMPLE, [*flags, "--updates", "2"]), (EXAMPLE, [*flags, "--updates", "3", "--resume"])]
    run_one_after_another([*runs, (SMOLLM2, [*base[:2], *base[4:], *SHORT])], folder)
    return folder


@pytest.mark.parametrize("name", OTHERS)
def test_other_environments_are_a_flag(name: str, others: Path):
    env_ids = OTHERS[name]
    episodes = [one.episode for one in read_episodes(others / name)]
    assert Counter(episode.env_id for episode in episodes) == dict.fromkeys(env_ids, 12 // len(env_ids))
    assert not any(episode.error for episode in episodes)


@pytest.fixture
def adapter(others: Path) -> Path:
    return others / "adapter"


def test_an_adapter_is_trained_resumed_and_saved(adapter: Path) -> None:
    steps = [json.loads(line)["step"] for line in (adapter / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, 2, 3]
    episodes = [one.episode for one in read_episodes(adapter)]
    assert len({episode.task_id for episode in episodes}) == len(episodes) == 18
    assert [path.name for path in adapter.glob("checkpoint-*")] == ["checkpoint-3"]
    saved = load_file(adapter / "model" / "adapter_model.safetensors")
    resumed = load_file(adapter / "checkpoint-3" / "adapter_model.safetensors")
    assert all(torch.equal(saved[name], resumed[name]) for name in saved)
    config = json.loads((adapter / "model" / "adapter_config.json").read_text())
    assert Path(config["base_model_name_or_path"]).is_absolute()


def test_the_example_of_smollm2_plays_held_out_games_before_and_after(adapter: Path) -> None:
    folder = adapter.with_name("smollm2")
    splits = [one.split for one in open_records(folder).summaries]
    assert splits == ["eval"] * 12 + ["train"] * 6 + ["eval"] * 6, "before the warm start, after it, and at the end"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], "eval_episode/success" in line) for line in lines] == [(0, True), (1, True)]
    assert (folder / "model" / "adapter_model.safetensors").exists()


def test_a_trained_adapter_is_evaluated(adapter: Path) -> None:
    model = load_model(str(adapter / "model"), options={"max_tokens": 4}, engine="transformers")
    assert evaluate("math:Sample", model, tasks=2).together.episodes.finished == 2


def test_wrong_flags_are_answered_well():
    wrong = answer_of(EXAMPLE, "--update", "3")
    assert wrong.returncode == 2
    assert "--updates" in wrong.stderr
    uneven = answer_of(EXAMPLE, "--episodes", "100", "--micro-batch", "64")
    assert uneven.returncode == 1
    assert uneven.stderr.strip() == "--episodes 100 is not a multiple of --micro-batch 64"
    unknown = answer_of(EXAMPLE, "--env", "game:GuessTheNumber-v0-eazy")
    assert unknown.returncode == 1
    assert "Did you mean 'game:GuessTheNumber-v0-easy'" in unknown.stderr
