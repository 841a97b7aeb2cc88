"""Run twice by test_two_ranks: a rank's learner and actor, and the rows that they trained on."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import conftest  # noqa: F401  the lighter form and the environments
from runs import arguments, train


def main(folder: Path, model: Path, rank: int, settings: dict[str, dict[str, Any]]) -> None:
    for name, changes in settings.items():
        train_rank(folder / name, model, rank, changes)


def train_rank(folder: Path, model: Path, rank: int, changes: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    run = train(arguments(model, gpus=2, save_path=str(folder / "out"), **changes), rank)
    result = {
        "trained": run.batches,
        "summaries": [[one.summary for one in batch] for batch in run.learner.batches_of],
        "turns": run.learner.turns_of,
        "rows": run.learner.rows,
        "weights": run.learner.weights[-1],
        "metrics": run.learner.info,
    }
    (folder / f"rank{rank}.pkl").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(os.environ["ROLE"]), json.loads(sys.argv[3]))
