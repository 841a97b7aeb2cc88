"""Runs of `python -m gem_verl` on the CPU, each with its own process and Ray cluster.

All of them are forks of one process, which has imported verl; `test_learning.py` starts Python anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from gem_cpu.processes import python_path
from gem_cpu.verl.settings import WORKERS_IMPORT
from gem_support.forks import forked
from gem_support.training_run import Response, TrainingRun, launch

HERE = Path(__file__).parent


class Run(TrainingRun):
    """A finished run of verl."""

    @property
    def batches(self) -> list[dict[str, Any]]:
        """The rows that `verl_spy` recorded in the actor, step by step."""
        paths = sorted(self.folder.glob("batch-*.pt"), key=lambda path: int(path.stem.split("-")[1]))
        return [torch.load(path, weights_only=False) for path in paths]


def train(
    folder: Path,
    model: Path,
    flags: Sequence[str],
    *,
    ranks: int = 1,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Train in its own process, watched by `verl_spy` and `loss_spy`; only the GPU-only parts of verl are replaced."""
    own = [
        "gem.modules=[verl_spy]",
        f"gem.report={folder}/report",
        "gem.record=full",
        f"gem.record_folder={folder}/records",
        f"actor_rollout_ref.model.path={model}",
        "actor_rollout_ref.model.external_lib=loss_spy",
        f"trainer.default_local_dir={folder}/checkpoints",
        "trainer.val_before_train=False",
    ]
    path = python_path(HERE, environment.get("PYTHONPATH"))
    command = forked(HERE / "driver.py", *WORKERS_IMPORT, "gem_verl._launch", PYTHONPATH=path)
    return launch(Run, [*command, str(ranks), *own, *flags], folder, {**environment, "PYTHONPATH": path})


def trained_responses(batch: dict[str, Any]) -> list[Response]:
    """Every response in a batch that the actor trains on."""
    columns = [batch[name] for name in ("prompts", "responses", "response_mask", "advantages", "returns")]
    return [one for row in zip(*columns, strict=True) for one in _responses_of(*(column.tolist() for column in row))]


def _responses_of(
    prompt: list[int], ids: list[int], mask: list[int], advantages: list[float], returns: list[float]
) -> Iterator[Response]:
    start = 0
    while start < len(ids):
        # A turn ends where the mask changes; there is always template text between two responses.
        end = next((at for at in range(start, len(ids)) if mask[at] != mask[start]), len(ids))
        numbers = {*zip(advantages[start:end], returns[start:end], strict=True)}
        assert len(numbers) == 1, "one turn, one advantage"
        if mask[start]:
            yield Response((*prompt, *ids[:start]), tuple(ids[start:end]), *numbers.pop())
        else:
            assert numbers == {(0.0, 0.0)}, "nothing on tokens that were not sampled"
        start = end
