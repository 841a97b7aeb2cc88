"""An agent learns in OpenRLHF's own training on the CPU, with the example as a user runs it: the end-to-end test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gem_cpu import openrlhf as cpu
from gem_support.training_run import (
    CORRIDOR_UPDATES,
    EXAMPLES,
    SECONDS,
    WITHOUT_THE_CLONE,
    TrainingRun,
    assert_learned_the_corridor,
    assert_leaves_nothing,
    copied,
    keep_for_viewer,
    launch,
)

pytestmark = pytest.mark.timeout(SECONDS * 2)

EXAMPLE = EXAMPLES / "openrlhf_guess_the_number.py"
CORRIDOR = [
    *("--gem.env", "game:Corridor-v0"),
    *("--gem.steps", str(CORRIDOR_UPDATES)),
    *("--gem.eval_episodes", "16"),
    *("--rollout.batch_size", "64"),
    *("--rollout.micro_batch_size", "16"),
    *("--train.batch_size", "64"),
    *("--train.micro_batch_size", "16"),
    *("--algo.advantage.gamma", "0.7"),
    *("--actor.entropy_coef", "0"),
    *("--actor.adam.lr", "5e-4"),
    *("--actor.lr_scheduler", "constant"),
    *("--eval.steps", str(CORRIDOR_UPDATES)),
    *("--eval.temperature", "1"),
    *("--eval.n_samples_per_prompt", "1"),
]


@pytest.mark.uncertain("learning depends on the sampled episodes, and Ray has its own time limits")
def test_the_example_learns_the_corridor_from_an_empty_folder(tmp_path: Path):
    flags = [*CORRIDOR, "--gem.report", f"{tmp_path}/report", "--gem.record", "full"]
    command = [sys.executable, copied(EXAMPLE.name, tmp_path), *flags]
    run = launch(TrainingRun, command, tmp_path, WITHOUT_THE_CLONE)
    keep_for_viewer("openrlhf", tmp_path / "report")
    assert_learned_the_corridor(run, batch=64, evaluated=16)
    assert_leaves_nothing(run)
    # The same command continues from the last checkpoint, with the learned weights.
    flags = [*flags, "--gem.steps", str(CORRIDOR_UPDATES + 2), "--eval.steps", "-1", "--ckpt.load_enable"]
    resumed = launch(TrainingRun, [*command[:2], *flags], tmp_path, {**WITHOUT_THE_CLONE, "WARM_START_STEPS": "0"})
    assert resumed.code == 0, resumed.output[-3000:]
    assert [line["step"] for line in resumed.metrics] == [*range(1, CORRIDOR_UPDATES + 3)]
    assert all(line["episode/success"] > 0.8 for line in resumed.metrics[CORRIDOR_UPDATES:])
    # The policy has changed a lot by the end, so weights that did not reach vLLM would show.
    assert all(abs(line["vllm_kl"]) < 1e-5 for line in run.metrics)


def test_wrong_flags_give_clear_errors(tmp_path: Path):
    command = [sys.executable, "-m", "gem_openrlhf", "--gem.steps", "1", "--gem.env", "game:Corridor-v0"]
    wrong = answer([*command, "--gem.hystory", "2"], tmp_path, cpu.environment())
    assert wrong.returncode == 1
    last = wrong.stderr.strip().splitlines()[-1]
    assert last.startswith("SettingsError: there is no setting --gem.hystory. Did you mean '--gem.history'")
    early = answer(
        [sys.executable, copied(EXAMPLE.name, tmp_path), "--actor.learning_rate", "1"], tmp_path, WITHOUT_THE_CLONE
    )
    assert early.returncode == 2
    assert "unrecognized arguments: --actor.learning_rate" in early.stderr
    assert "Warm start" not in early.stdout


def test_a_wrong_flag_is_answered_before_openrlhf_is_imported(tmp_path: Path):
    code = (
        "import sys\nfrom gem_openrlhf.__main__ import main\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    print(ended.code, {'openrlhf', 'torch', 'ray'} & {*sys.modules})"
    )
    for flag in ("--gem.hystory", "--algo.advantage.estimator"):
        flags = ["--gem.env", "game:Corridor-v0", "--gem.steps", "1", flag, "2"]
        done = answer([sys.executable, "-c", code, *flags], tmp_path, {})
        assert done.stdout.startswith("SettingsError: ")
        assert done.stdout.endswith(" set()\n")


def answer(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
