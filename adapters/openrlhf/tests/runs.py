"""Runs of `python -m gem_openrlhf` on the CPU, each with its own process and Ray cluster.

All of them are forks of one process, which has imported OpenRLHF; `test_learning.py` starts Python anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gem_cpu.openrlhf.settings import WORKERS_IMPORT
from gem_cpu.processes import python_path
from gem_support.forks import forked
from gem_support.training_run import Response, TrainingRun, launch

HERE = Path(__file__).parent


class Run(TrainingRun):
    """A finished run of OpenRLHF."""

    def batches(self, worker: str = "actor") -> list[list[dict[str, Any]]]:
        """The rows that `openrlhf_spy` recorded: for each step, the rows of each rank."""
        steps: dict[int, list[Path]] = {}
        for path in sorted(self.folder.glob(f"{worker}-*.pt")):
            steps.setdefault(int(path.stem.split("-")[1]), []).append(path)
        return [[torch.load(path, weights_only=False) for path in steps[step]] for step in sorted(steps)]


def train(folder: Path, model: Path, flags: Sequence[str], *, ranks: int = 1) -> Run:
    """Train, recorded by `openrlhf_spy`; only the GPU-only parts of OpenRLHF are replaced."""
    own = {
        "--gem.modules": "openrlhf_spy",
        "--gem.report": f"{folder}/report",
        "--gem.record": "full",
        "--gem.record_folder": f"{folder}/records",
        "--actor.model_name_or_path": str(model),
        "--ckpt.path": f"{folder}/checkpoints",
        "--ckpt.output_dir": f"{folder}/final",
    }
    pairs = [part for pair in own.items() for part in pair]
    path = python_path(HERE)
    command = forked(HERE / "driver.py", *WORKERS_IMPORT, "gem_openrlhf.__main__", PYTHONPATH=path)
    return launch(Run, [*command, str(ranks), *pairs, *flags], folder, {"PYTHONPATH": path})


def trained_responses(batch: Sequence[dict[str, Any]]) -> list[Response]:
    """Every response in a batch that the actors train on."""
    return [one for rank in batch for row in rank["rows"] for one in _responses(row)]


def loss_tokens(batch: Sequence[dict[str, Any]]) -> dict[tuple[int, ...], list[list[list[float]]]]:
    """What OpenRLHF's loss had for each response, by its ids and those before it.

    Returns:
        For each pass: the advantages, the trainer's and the sampler's log-probabilities of the response's tokens.
    """
    found: dict[tuple[int, ...], list[list[list[float]]]] = {}
    for row in (row for rank in batch for row in rank["loss"]):
        ids = row["ids"].tolist()
        trained = [False, *row["mask"].tolist(), False]
        for end in range(1, len(trained)):
            if trained[end - 1] and not trained[end]:
                start = max(at for at in range(end) if not trained[at]) + 1
                numbers = [row[name][start - 1 : end - 1].tolist() for name in ("advantages", "logprobs", "sampled")]
                found.setdefault(tuple(ids[:end]), []).append(numbers)
    return found


def _responses(row: Mapping[str, Any]) -> Iterator[Response]:
    ids, advantages, returns = (row[name].tolist() for name in ("sequences", "advantages", "returns"))
    trained = [False, *row["action_mask"].bool().tolist(), False]  # for each id, and past the end
    start = 0
    while True in trained[start:]:
        # Two responses are never adjacent: there is template text between them.
        start = trained.index(True, start)
        end = trained.index(False, start)
        (advantage,) = {*advantages[start - 1 : end - 1]}  # one turn, one advantage
        yield Response(tuple(ids[:start]), tuple(ids[start:end]), advantage, returns[start - 1])
        start = end
