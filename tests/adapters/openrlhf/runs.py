"""Runs of `python -m gem_openrlhf` on the CPU, each in a process and a Ray cluster of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from openrlhf_on_cpu import settings as cpu

from gem_core.rollout import Episode, read_episodes

HERE = Path(__file__).parent
SECONDS = 600
"""Two to three minutes are usual on two cores, most of which are imports in ten processes."""


class Run(NamedTuple):
    """A finished run and what it left."""

    folder: Path
    code: int
    output: str
    left: list[str]
    """Processes that were still there half a minute after its end."""

    @property
    def metrics(self) -> list[dict[str, float]]:
        """Those of each step."""
        return [json.loads(line) for line in (self.folder / "report" / "metrics.jsonl").read_text().splitlines()]

    def batches(self, worker: str = "actor") -> list[list[dict[str, Any]]]:
        """What `openrlhf_spy` saw the workers train on: of each step what each rank had."""
        steps: dict[int, list[Path]] = {}
        for path in sorted(self.folder.glob(f"{worker}-*.pt")):
            steps.setdefault(int(path.stem.split("-")[1]), []).append(path)
        return [[torch.load(path, weights_only=False) for path in steps[step]] for step in sorted(steps)]

    @property
    def sampled(self) -> list[dict[str, Any]]:
        """What OpenRLHF's engines were asked and what they answered."""
        return [json.loads(line) for path in self.folder.glob("sampled-*.jsonl") for line in path.open()]

    @property
    def episodes(self) -> list[Episode]:
        """All that were played, in no order."""
        return [episode for path in self.folder.glob("episodes/*.jsonl") for episode in read_episodes(path)]


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
    command = [sys.executable, "-m", "openrlhf_on_cpu", str(ranks), *pairs, "--ckpt.disable_ds", *flags]
    return launch(command, folder)


def launch(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end and leave none of its processes behind."""
    for _ in range(3):
        run = _launch(command, folder, {**cpu.environment(), **(environment or {})})
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
            left: list[str] = []
            try:
                code = process.wait(SECONDS)
                for _ in range(30):  # Ray's own take a few seconds
                    left = [*left_over(f"GEM_SPY={folder}").values()]
                    if not left:
                        break
                    time.sleep(1)
            finally:
                # Whatever happened: Ray's processes would outlive a killed driver. All have these in their command line
                # or environment.
                for pid in [process.pid, *left_over(f"GEM_SPY={folder}")]:
                    _kill(pid)
    return Run(folder, code, (folder / "output.txt").read_text(errors="replace"), left)


def left_over(text: str) -> dict[int, str]:
    """Processes with this text in their command line or environment, other than this one: what they are called."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command, environment = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
            except OSError:
                continue
            if text.encode() in command + environment:
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Response(NamedTuple):
    """A run of sampled tokens: what stood before it, the ids, and numbers that are the same for each of them."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    advantage: float
    return_: float


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
