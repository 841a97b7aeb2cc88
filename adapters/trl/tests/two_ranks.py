"""Run by test_two_ranks under torchrun: trains on each rank and saves what the loss was computed from."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from conftest import QUIET, SMALL
from spy import SpyTrainer

from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOConfig


def main(folder: Path, settings: dict[str, dict[str, Any]]) -> None:
    for name, changes in settings.items():
        train(folder / name, changes)


def train(folder: Path, changes: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    tokenizer = tiny_tokenizer(["test:Babble-v0", "game:Corridor-v0"])
    args = TurnGRPOConfig(str(folder), **{**QUIET, **SMALL, **changes})
    run = SpyTrainer(tiny_model(tokenizer, seed=0), args, tokenizer)
    run.train()
    result = {
        "trained": run.trained_responses(),
        "batches": run.batches,
        "critic_values": run.critic_values,
        "critic": {name: value.detach() for name, value in run._critic.model.named_parameters()} if run._critic else {},
        "prompts_per_call": run.prompts_per_call,
        "weights": {name: value.detach() for name, value in run.model.named_parameters()},
    }
    (folder / f"rank{os.environ['RANK']}.pkl").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
