"""Oat trains on environments of every kind in one run: `nox -s mixtures`."""

from __future__ import annotations

from pathlib import Path

import new_kinds
from runs import arguments, train

from gem_core.records import read_episodes


def test_environments_of_every_kind_train_in_one_run(tmp_path: Path):
    limits = {"env": [*new_kinds.LIMITS], "env_limits": [*new_kinds.LIMITS.values()]}
    context = {
        "generate_max_length": new_kinds.TURN,
        "max_model_len": new_kinds.PROMPT + new_kinds.RESPONSE,
        "gamma": new_kinds.GAMMA,
    }
    sizes = {"rollout_batch_size_per_device": 8, "train_batch_size": 8, "max_train": 16}
    records = {"record": "full", "record_folder": str(tmp_path / "records")}
    model = new_kinds.save_model(tmp_path / "model")
    run = train(arguments(model, **limits, **context, **sizes, **records))
    played = [*read_episodes(tmp_path / "records")]
    new_kinds.assert_trained(played, [[one[:3] for one in batch] for batch in run.batches])
    new_kinds.assert_sampled(run.sampled, [one[:2] for batch in run.batches for one in batch])
