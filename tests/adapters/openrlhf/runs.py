"""Runs of `python -m gem_openrlhf` on the CPU, each in a process and a Ray cluster of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from training_run import Response, TrainingRun, launch

from gem_cpu.processes import python_path

HERE = Path(__file__).parent


class Run(TrainingRun):
    """A finished run of OpenRLHF."""

    def batches(self, worker: str = "actor") -> list[list[dict[str, Any]]]:
        """What `openrlhf_spy` saw the workers train on: of each step what each rank had."""
        steps: dict[int, list[Path]] = {}
        for path in sorted(self.folder.glob(f"{worker}-*.pt")):
            steps.setdefault(int(path.stem.split("-")[1]), []).append(path)
        return [[torch.load(path, weights_only=False) for path in steps[step]] for step in sorted(steps)]


def train(folder: Path, model: Path, flags: Sequence[str], *, ranks: int = 1) -> Run:
    """Train, watched by `openrlhf_spy`; nothing of OpenRLHF is replaced but what a CPU asks for."""
    own = {
        "--gem.modules": "openrlhf_spy",
        "--gem.report": f"{folder}/report",
        "--gem.recording": f"{folder}/episodes",
        "--actor.model_name_or_path": str(model),
        "--ckpt.path": f"{folder}/checkpoints",
        "--ckpt.output_dir": f"{folder}/final",
    }
    pairs = [part for pair in own.items() for part in pair]
    command = [sys.executable, "-m", "gem_cpu.openrlhf", str(ranks), *pairs, *flags]
    return launch(Run, command, folder, {"PYTHONPATH": python_path(HERE)})


def trained_responses(batch: Sequence[dict[str, Any]]) -> list[Response]:
    """Every response in a batch that the actors train on, those joined again that were cut."""
    parts: dict[tuple[int, ...], list[dict[int, tuple[int, float, float]]]] = {}
    for rank in batch:
        for row in rank["rows"]:
            ids = row["sequences"].tolist()
            columns = (ids[1:], row["advantages"].tolist(), row["returns"].tolist())
            tokens = {
                at + 1: numbers for at, numbers in enumerate(zip(*columns, strict=True)) if row["action_mask"][at]
            }
            # Episodes may happen to say the same; the parts of a row share no token.
            copies = parts.setdefault(tuple(ids), [])
            part = next((one for one in copies if not one.keys() & tokens.keys()), None)
            copies.append(tokens) if part is None else part.update(tokens)
    return [one for ids, copies in parts.items() for tokens in copies for one in _responses(ids, tokens)]


def _responses(ids: tuple[int, ...], tokens: Mapping[int, tuple[int, float, float]]) -> Iterator[Response]:
    start = min(tokens, default=0)
    while start in tokens:
        # Two responses never touch: glue stands between them.
        end = next(at for at in range(start, len(ids) + 1) if at not in tokens)
        advantages = {tokens[at][1] for at in range(start, end)}
        assert len(advantages) == 1, "one turn, one advantage"
        yield Response(ids[:start], ids[start:end], advantages.pop(), tokens[start][2])
        start = min((at for at in tokens if at > end), default=-1)
