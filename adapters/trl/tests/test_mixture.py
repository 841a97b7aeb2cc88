"""One training on environments of every kind, with limits on how many of each are played at once."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from spy import SpyTrainer, assert_same

from gem_sandbox._backends import SAFE
from gem_sandbox._choice import problems
from gem_support.kinds import assert_warned
from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOConfig

LIMITS = {"match:KuhnPoker-v0": 0, "desk:Retail-v0": 1, "game:WikiGame-v0-easy": 0, "webshop:train-text": 2}


def test_environments_of_every_kind_train_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = dict(LIMITS)
    if not all(problems(backend) for backend in SAFE):
        limits["terminal:Text-v0"] = 1
    if shutil.which("mcp-postgres"):  # its server, which this environment lacks in `nox -s tests`
        limits["postgres:Library-v0"] = 1
    tokenizer = tiny_tokenizer([*limits], episodes=4)
    config = TurnGRPOConfig(
        str(tmp_path),
        env=[*limits],
        env_limits=[*limits.values()],
        advantage="rebn",
        gamma=0.9,
        per_device_train_batch_size=len(limits),
        gradient_accumulation_steps=1,
        max_steps=1,
        max_completion_length=4,
        vector_backend="thread",
        report_to="none",
        save_strategy="no",
        use_cpu=True,
    )
    # A desk's policy text and its tools are longer than the context that a tiny model usually has.
    run = SpyTrainer(tiny_model(tokenizer, context=4096), config, tokenizer)
    run.train()
    assert_warned(capsys.readouterr().out, "max_completion_length")
    turns: Counter[str] = Counter()
    for batch in run.batches:
        for episode in batch.episodes:
            turns[episode.env_id] += len(episode.turns)
            assert episode.error is None
    assert {*turns} == {*limits}
    assert all(turns.values())
    assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)
    assert_same(run.trained_responses(), run.expected_responses("rebn", 0.9))
