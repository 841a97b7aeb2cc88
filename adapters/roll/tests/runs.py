"""Runs of ROLL's agentic pipeline on the CPU, each with its own process and Ray cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from gem_cpu.processes import python_path
from gem_support.training_run import Response, TrainingRun, launch

HERE = Path(__file__).parent
YAML = HERE / "cpu.yaml"


class Run(TrainingRun):
    """A finished run of ROLL."""

    @property
    def batches(self) -> list[dict[str, Any]]:
        """The rows that `roll_spy` recorded in the actor, step by step."""
        paths = sorted(self.folder.glob("batch-*.pt"), key=lambda path: int(path.stem.split("-")[1]))
        return [torch.load(path, weights_only=False) for path in paths]

    def saved(self, step: int) -> Path:
        """The model after that step, counted from 0."""
        (found,) = self.folder.glob(f"checkpoints/*/checkpoint-{step}")
        return found


def train(folder: Path, model: Path, flags: Sequence[str], *, ranks: int = 1) -> Run:
    """Train in a separate process, recorded by `roll_spy`; only the GPU-only parts of ROLL are replaced."""
    own = [
        "++gem.modules=[roll_spy]",
        f"++gem.report={folder}/report",
        "++gem.record=full",
        f"++gem.record_folder={folder}/records",
        f"pretrain={model}",
    ]
    command = [sys.executable, "-m", "gem_cpu.roll", str(ranks), str(YAML), *own, *flags]
    return launch(Run, command, folder, {"PYTHONPATH": python_path(HERE)})


def trained_responses(batch: dict[str, Any]) -> list[Response]:
    """Every response in a batch that the actor trains on; ROLL has no return per turn, so that is 0 here."""
    rows = zip(*(batch[name] for name in ("input_ids", "attention_mask", "response_mask", "advantages")), strict=True)
    return [one for row in rows for one in _responses_of(*row)]


def _responses_of(
    ids: torch.Tensor, attention: torch.Tensor, mask: torch.Tensor, advantages: torch.Tensor
) -> Iterator[Response]:
    length = int(attention.sum())
    tokens, trained = ids[:length].tolist(), mask[:length].bool().tolist()
    numbers = [0.0, *advantages[: length - 1].tolist()]  # for the predicted tokens: all but the first
    assert not advantages[length - 1 :].any(), "nothing on what a row is filled up with"
    start = 0
    while start < length:
        # A turn ends where the mask changes; there is always template text between two responses.
        end = next((at for at in range(start, length) if trained[at] != trained[start]), length)
        found = {*numbers[start:end]}
        if trained[start]:
            assert len(found) == 1, "one turn, one advantage"
            yield Response(tuple(tokens[:start]), tuple(tokens[start:end]), found.pop(), 0.0)
        start = end
