"""A game of TextArena and an environment of a server train in TRL's own loop: `nox -s trl_hubs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import QUIET

from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer

LAKE = {"size": 3, "num_holes": 1}


def successes(folder: Path, env: str, **changes: Any) -> list[float]:
    """The share of solved episodes in each of 12 updates."""
    kwargs = changes.get("env_kwargs", {})
    model, tokenizer = tiny_policy(env, env_kwargs=kwargs, warm_start_steps=200, seed=0)
    progress = ProgressCallback(env)
    args = TurnGRPOConfig(
        str(folder),
        env=env,
        history=1,
        row="turn",
        gamma=0.9,
        per_device_train_batch_size=64,
        max_completion_length=6,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=0.5,
        entropy_coef=0.02,
        max_steps=12,
        seed=0,
        **changes,
        **QUIET,
    )
    TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress]).train()
    found = [line["episode/success"] for line in progress.report.history]
    print(env, [round(each, 2) for each in found])
    return found


@pytest.mark.timeout(1800)
@pytest.mark.uncertain("learning depends on the sampled episodes")
def test_a_game_of_textarena_is_learned(tmp_path: Path) -> None:
    success = successes(tmp_path, "textarena:FrozenLake-v0", env_kwargs=LAKE, vector_backend="sync")
    assert sum(success[-3:]) > sum(success[:3]), success


@pytest.mark.timeout(1800)
@pytest.mark.uncertain("learning depends on the sampled episodes")
def test_an_environment_of_a_server_is_learned(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gem_core", "serve", "textarena:FrozenLake-v0", "--port", "0"]
    command += [word for key, value in LAKE.items() for word in ("--set", f"{key}={value}")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip().removeprefix("Listening at ")
            env = "remote:textarena:FrozenLake-v0"
            success = successes(tmp_path, env, env_kwargs={"url": url}, vector_backend="thread")
        finally:
            process.kill()
    assert sum(success[-3:]) > sum(success[:3]), success
