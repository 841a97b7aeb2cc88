"""The helpers of the examples of verl, OpenRLHF, Oat and ROLL: the choice of a model, and of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_cpu.gpus import has_gpu
from gem_tiny import policy_folder
from gem_train.settings import RunSettings

SETTINGS = RunSettings(env=["game:Corridor-v0"])


def test_tiny_is_made_and_removed() -> None:
    with policy_folder("tiny", SETTINGS, warm_start_steps=0) as folder:
        assert (Path(folder) / "config.json").exists()
    assert not Path(folder).exists()


def test_any_other_name_is_that_of_a_model() -> None:
    with policy_folder("Qwen/Qwen3-1.7B-Base", SETTINGS) as folder:
        assert folder == "Qwen/Qwen3-1.7B-Base"


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_a_hidden_gpu_is_none(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert not has_gpu()
