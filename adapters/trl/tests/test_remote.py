"""A `remote:` id trains in TRL's own loop: the environments are in another process, over a WebSocket."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import SMALL

from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOTrainer

ENV = "game:Corridor-v0"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a server of environments listens."""
    command = [sys.executable, "-m", "gem_core", "serve", ENV, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().removeprefix("Listening at ")
        finally:
            process.kill()


def test_one_update_on_an_environment_of_a_server(settings, address: str) -> None:
    tokenizer = tiny_tokenizer([ENV])

    def trained(**changes: object) -> list[float]:
        args = settings(vector_backend="thread", **changes)
        trainer = TurnGRPOTrainer(tiny_model(tokenizer, seed=0), args, tokenizer)
        trainer.train()
        assert trainer.state.global_step == SMALL["max_steps"]
        return [log["episode/return"] for log in trainer.state.log_history if "episode/return" in log]

    away = trained(env=f"remote:{ENV}", env_kwargs={"url": address})
    assert len(away) == 1
    assert away == trained(env=ENV)
