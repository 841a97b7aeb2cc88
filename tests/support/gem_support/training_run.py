"""Training with a framework's own command, in a separate process and Ray cluster, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from transformers import AutoModelForCausalLM

from gem_train.records import read_episodes
from gem_train.rollout import Episode

SECONDS = 900
"""One to three minutes are usual on two cores."""


@dataclass(frozen=True)
class TrainingRun:
    """A finished run. Its folder has `report/`, `records/`, `output.txt`, and the records of the framework's spy."""

    folder: Path
    code: int
    output: str
    left: list[str]
    """Processes that were still there a minute and a half after the end of the run."""
    temporary: list[str]
    """Files and folders that the run left in the temporary folder."""

    @property
    def lines(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl."""
        return [json.loads(line) for line in (self.folder / "report" / "metrics.jsonl").read_text().splitlines()]

    @property
    def metrics(self) -> list[dict[str, float]]:
        """The lines of updates."""
        return [line for line in self.lines if line["step"] > 0]

    @property
    def sampled(self) -> list[dict[str, Any]]:
        """The requests to the framework's engines, and their answers."""
        return [json.loads(line) for path in self.folder.glob("sampled-*.jsonl") for line in path.open()]

    @property
    def episodes(self) -> list[Episode]:
        """All episodes, in no order."""
        return [one.episode for one in read_episodes(self._records)]

    def episodes_by_step(self, tasks: int) -> dict[int, list[Episode]]:
        """The episodes of the training by step; a step has the given number of tasks."""
        steps: dict[int, list[Episode]] = defaultdict(list)
        for one in read_episodes(self._records):
            if one.summary.split == "train":
                steps[one.episode.slot // tasks].append(one.episode)
        return steps

    @property
    def _records(self) -> Path:
        own = self.folder / "records"  # otherwise the default, in the report
        return own if own.exists() else self.folder / "report"


EXAMPLES = Path(__file__).parents[3] / "examples"
WITHOUT_THE_CLONE = {"PYTHONPATH": "", "WARM_START_STEPS": "100"}
"""Environment variables with which an example finds no other files of the clone."""


CORRIDOR_UPDATES = 28
"""Of each test that learns the corridor. In TRL, 60 of 60 runs learned it: `benchmarks/corridor_seeds.py` counts."""


def copied(name: str, folder: Path) -> str:
    """Copy an example alone into an empty folder. Returns its path."""
    alone = folder / "alone"
    alone.mkdir()
    return shutil.copy(EXAMPLES / name, alone)


def keep_for_viewer(framework: str, report: Path) -> None:
    """Leave a run to the session `recorded`, which opens the runs of all frameworks in the viewer."""
    if folder := os.environ.get("GEM_RECORDED_RUNS"):
        shutil.copytree(report, Path(folder) / framework, dirs_exist_ok=True)


def assert_leaves_nothing(run: TrainingRun) -> None:
    """Assert that no process is left, and neither the model's folder nor Ray's."""
    assert run.left == []
    assert not [name for name in run.temporary if name.startswith(("tiny", "ray"))], run.temporary


AnyRun = TypeVar("AnyRun", bound=TrainingRun)


def launch(kind: type[AnyRun], command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> AnyRun:
    """Run a command to its end, and end all its processes."""
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as temporary:
        environment = {**os.environ, **environment, "GEM_SPY": str(folder), "COUNT_AT_ONCE": "1", "TMPDIR": temporary}
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            left: list[str] = []
            try:
                code = process.wait(SECONDS)
                for _ in range(90):  # Ray's own processes take a few seconds, on a busy machine many
                    left = [*left_over(f"GEM_SPY={folder}").values()]
                    if not left:
                        break
                    time.sleep(1)
            finally:
                # In any case: Ray's processes would outlive a killed driver. All have these texts in their command line
                # or environment.
                for pid in [process.pid, *left_over(f"GEM_SPY={folder}")]:
                    _kill(pid)
        files = sorted(path.name for path in Path(temporary).iterdir())
    return kind(folder, code, (folder / "output.txt").read_text(errors="replace"), left, files)


def left_over(text: str) -> dict[int, str]:
    """The names of other processes with this text in their command line or environment."""
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
    """A run of sampled tokens: the ids before it, its ids, and numbers that are the same for all its tokens."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    advantage: float
    return_: float


def token_logprobs(policy: Any, ids: torch.Tensor) -> torch.Tensor:
    """Log-probability of each token except the first, given the tokens before it. Shape: (tokens - 1,)."""
    return policy(ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None])[:, 0]


def assert_policy_gradient(before: Path, after: Path, responses: Sequence[Response], divisor: float) -> None:
    """Assert that the new weights are the old ones minus the gradient, from autograd on each response alone.

    Args:
        before, after: folders of the model before and after one update with a learning rate of 1.
        responses: all responses of the update.
        divisor: divisor of the sum over their tokens.
    """
    rows = [
        (torch.tensor([*one.before, *one.ids]), torch.tensor([0.0] * len(one.before) + [one.advantage] * len(one.ids)))
        for one in responses
    ]
    assert_gradient(before, after, rows, divisor)


def assert_gradient(
    before: Path, after: Path, rows: Iterable[tuple[torch.Tensor, torch.Tensor]], divisor: float, rate: float = 1.0
) -> None:
    """Assert that the new weights are the old ones minus the gradient, from autograd on each row alone.

    Args:
        before, after: folders of the model before and after one update.
        rows: ids, and for each id the number that its log-probability is multiplied by in the loss; both (tokens,).
        divisor: divisor of the sum over all tokens.
        rate: learning rate of the update.
    """
    policy = AutoModelForCausalLM.from_pretrained(before, dtype=torch.float32)
    total = torch.zeros(())
    for ids, numbers in rows:
        total = total + (numbers[1:] * token_logprobs(policy, ids)).sum()
    (-total / divisor).backward()
    trained = dict(AutoModelForCausalLM.from_pretrained(after, dtype=torch.float32).named_parameters())
    moved = 0.0
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(trained[name], parameter - rate * parameter.grad, atol=2e-5 * min(rate, 1.0)), name
        moved = max(moved, parameter.grad.abs().max().item())
    assert moved > 1e-3


def assert_summaries_were_trained(run: TrainingRun, trained: Iterable[Response]) -> None:
    """The run has five long episodes in several sequences, and trained on all that was sampled."""
    long = [one for one in run.episodes if one.env_id == "test:Wander-v0"]
    assert len(long) == 5
    assert all(len(one.turns) > 24 and len(one.sequences) > 1 for one in long)
    played = Counter(
        (tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn))) for one in run.episodes for turn in one.turns
    )
    assert Counter((one.before, one.ids) for one in trained) == played


def assert_success_rose(success: Sequence[float]) -> None:
    """Assert that success in the corridor rises from about half the episodes to almost all.

    Sampling differs from run to run, so the tests use settings with which learning is reliable:
    `benchmarks/corridor_seeds.py` counts the runs that learn with them in TRL.

    Args:
        success: success rate of each update.
    """
    assert sum(success[:3]) / 3 < 0.7, success
    assert sum(success[-5:]) / 5 > 0.9, success


def assert_learned_the_corridor(run: TrainingRun, batch: int, evaluated: int) -> None:
    """Assert that an example learned, and that its files are complete.

    Args:
        run: a run of an example, of `CORRIDOR_UPDATES` updates with ReBN.
        batch: episodes per batch.
        evaluated: episodes of all evaluations, the last of them at the end.
    """
    assert run.code == 0, run.output[-3000:]
    assert "rebn active: " in run.output
    success = [line["episode/success"] for line in run.metrics]
    assert len(success) == CORRIDOR_UPDATES
    assert_success_rose(success)
    assert [line for line in run.lines if "eval_episode/success" in line][-1]["eval_episode/success"] > 0.8
    assert (run.folder / "report" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len(run.episodes) == CORRIDOR_UPDATES * batch + evaluated
    assert {episode.provenance.split(" (")[1] for episode in run.episodes} == {"plugin 'game')"}
