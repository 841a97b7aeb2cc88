"""Rollouts know nothing of records, and records nothing of training."""

from __future__ import annotations

from pathlib import Path

import gem_train
from gem_support.imports import against_layers


def test_what_adapters_share_is_built_in_layers() -> None:
    assert against_layers(Path(gem_train.__file__).parent, ["*", "records", "rollout"]) == []
