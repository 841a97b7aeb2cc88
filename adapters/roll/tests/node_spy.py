"""Imported by a run (`gem.modules`): writes down the nodes of the processes that play, train and sample."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import ray

SHARED = str(Path(__file__).parents[1])
from gem_roll._pipeline import TurnPipeline  # noqa: E402
from gem_support.babble import register  # noqa: E402
from gem_support.raylets import FOLDER, note_node  # noqa: E402


def _watch_run() -> None:
    """In the driver, because the processes that train and sample import no modules of the run."""
    run = TurnPipeline.run

    @functools.wraps(run)
    def noted(self: TurnPipeline) -> None:
        for name in ("actor_train", "actor_infer"):
            for number, worker in enumerate(getattr(self, name).workers):
                node = ray.get(worker.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()))
                Path(os.environ[FOLDER], f"node-{name}-{number}").write_text(f"{node} {name}")
        run(self)

    TurnPipeline.run = noted


note_node()
register()
_watch_run()
