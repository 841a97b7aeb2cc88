"""Runs of `python -m gem_verl` on the CPU, each in a process and a Ray cluster of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from verl_on_cpu import settings as cpu

from gem_core.rollout import Episode, read_episodes

HERE = Path(__file__).parent
SECONDS = 600
"""Two minutes are usual on two idle cores, most of which are imports in ten processes."""


class Run(NamedTuple):
    """A finished run and what it left."""

    folder: Path
    code: int
    output: str

    @property
    def metrics(self) -> list[dict[str, float]]:
        """Those of each step."""
        return [json.loads(line) for line in (self.folder / "report" / "metrics.jsonl").read_text().splitlines()]

    @property
    def batches(self) -> list[dict[str, Any]]:
        """What `verl_spy` saw the actor train on, step by step."""
        paths = sorted(self.folder.glob("batch-*.pt"), key=lambda path: int(path.stem.split("-")[1]))
        return [torch.load(path, weights_only=False) for path in paths]

    @property
    def sampled(self) -> list[dict[str, Any]]:
        """What verl's inference servers were asked and what they answered."""
        return [json.loads(line) for path in self.folder.glob("sampled-*.jsonl") for line in path.open()]

    @property
    def episodes(self) -> list[Episode]:
        """All that were played, in no order."""
        return [episode for path in self.folder.glob("episodes/*.jsonl") for episode in read_episodes(path)]


def train(
    folder: Path,
    model: Path,
    flags: Sequence[str],
    *,
    ranks: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Train in a process of its own, watched by `verl_spy`; nothing of verl is replaced but what a CPU asks for."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as ray_folder:
        own = [
            "gem.modules=[verl_spy]",
            f"gem.report={folder}/report",
            f"gem.recording={folder}/episodes",
            f"actor_rollout_ref.model.path={model}",
            f"trainer.default_local_dir={folder}/checkpoints",
            "trainer.val_before_train=False",
        ]
        command = [sys.executable, "-m", "gem_verl", *cpu.overrides(ray_folder, ranks), *own, *flags]
        return launch(command, folder, environment or cpu.environment())


def launch(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Run:
    """Run a command to its end and leave none of its processes behind."""
    for _ in range(3):
        run = _launch(command, folder, environment)
        if "The current node timed out during startup" not in run.output:
            break  # Ray gives itself 30 seconds, which a busy machine may need for other things
    return run


def _launch(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Run:
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as temporary:
        environment = {**os.environ, **environment, "GEM_SPY": str(folder), "TMPDIR": temporary}
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = process.wait(SECONDS)
            finally:
                # Whatever happened: Ray's processes would outlive a killed driver. All have these in their command line
                # or environment.
                for pid in [process.pid, *left_over(f"GEM_SPY={folder}")]:
                    _kill(pid)
    return Run(folder, code, (folder / "output.txt").read_text(errors="replace"))


def left_over(text: str) -> Iterator[int]:
    """Processes with this text in their command line or environment, other than this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in found:
                yield int(entry.name)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Response(NamedTuple):
    """A run of sampled tokens: what stood before it, the ids, and numbers that are the same for each of them."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    advantage: float
    return_: float


def trained_responses(batch: dict[str, Any]) -> list[Response]:
    """Every response in a batch that the actor trains on."""
    columns = [batch[name] for name in ("prompts", "responses", "response_mask", "advantages", "returns")]
    return [one for row in zip(*columns, strict=True) for one in _responses_of(*(column.tolist() for column in row))]


def _responses_of(
    prompt: list[int], ids: list[int], mask: list[int], advantages: list[float], returns: list[float]
) -> Iterator[Response]:
    start = 0
    while start < len(ids):
        # A turn ends where the mask changes; two responses never touch, glue stands between them.
        end = next((at for at in range(start, len(ids)) if mask[at] != mask[start]), len(ids))
        numbers = {*zip(advantages[start:end], returns[start:end], strict=True)}
        assert len(numbers) == 1, "one turn, one advantage"
        if mask[start]:
            yield Response((*prompt, *ids[:start]), tuple(ids[start:end]), *numbers.pop())
        else:
            assert numbers == {(0.0, 0.0)}, "nothing on tokens that were not sampled"
        start = end
