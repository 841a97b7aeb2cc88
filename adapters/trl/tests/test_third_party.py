"""A third-party plugin, installed from its own distribution, trains one TRL step next to a broken plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLUGIN = Path(__file__).parents[3] / "examples" / "plugin"
TRAIN = """
from conftest import QUIET, SMALL
from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer
from gem_core.registry import provenance

env = "maze:Fork-v0"
args = TurnGRPOConfig("out", **{**QUIET, **SMALL, "env": env})
tokenizer = tiny_tokenizer([env])
trainer = TurnGRPOTrainer(tiny_model(tokenizer), args, tokenizer)
trainer.train()
print("trained", trainer.state.global_step, "step on", env, "of", provenance(env))
"""


def test_one_step_on_a_third_party_environment(tmp_path: Path):
    site = tmp_path / "site"
    install = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(site), str(PLUGIN)]
    subprocess.run([sys.executable, "-m", "pip", "install", *install], check=True, timeout=240)
    broken = site / "broken_plugin-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[gem_core.plugins]\nbroken = broken_plugin\n")
    (site / "broken_plugin.py").write_text("raise RuntimeError('half installed')\n")
    done = subprocess.run(
        [sys.executable, "-c", TRAIN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).parent)])},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "trained 1 step on maze:Fork-v0 of gem-example-mazes" in done.stdout
