"""A source as a run of Weights & Biases."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gem_core.episode import Episode, Source
from gem_trackers._conversations import as_text, facts

wandb: Any = importlib.import_module("wandb")  # too large to install wherever types are checked

PROJECT = "gem-core"
"""Where WANDB_PROJECT names none."""

_STEP = "step"
_MAX_NAME_LENGTH = 128
"""Characters that the name of a run may have."""


class WandbTracker:
    """A run of its own, beside those that the program may have. `WANDB_...` variables apply.

    Args:
        source: what is tracked. If it is resumed, the run with its id goes on.
    """

    def __init__(self, source: Source) -> None:
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=os.environ.get("WANDB_RUN_ID", source.id),
            name=os.environ.get("WANDB_NAME", source.name[:_MAX_NAME_LENGTH]),
            job_type=source.kind,
            config=source.settings,
            resume="allow" if source.resumed else None,
            reinit="create_new",
        )
        # wandb's own step only grows, but evaluations come after later updates.
        self._run.define_metric(_STEP)
        self._run.define_metric("*", step_metric=_STEP)

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """A row of the history."""
        self._run.log({**metrics, _STEP: step})

    def add_samples(self, step: int, episodes: Sequence[Episode]) -> None:
        """A table."""
        rows = [{**facts(one), "conversation": as_text(one)} for one in episodes]
        table: Any = wandb.Table(columns=[*rows[0]], data=[[*row.values()] for row in rows])
        self._run.log({_STEP: step, "episodes": table})

    def close(self) -> None:
        """Wait until everything is sent or written."""
        self._run.finish()
