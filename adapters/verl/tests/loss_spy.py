"""Imported by the processes of a run that train (verl's `external_lib`), to record what their loss gets."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import torch
from verl.workers import engine_workers
from verl.workers.utils.padding import no_padding_2_padding

SHARED = str(Path(__file__).parents[1])
from gem_support.forks import note_process  # noqa: E402
from gem_support.loss_numbers import write_rows  # noqa: E402

FOLDER = Path(os.environ["GEM_SPY"])
note_process()


def _watch_loss() -> None:
    loss = engine_workers.ppo_loss

    @functools.wraps(loss)
    def watched(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> Any:
        computed = no_padding_2_padding(model_output["log_probs"], data).detach()
        prompts = [*data["prompts"].unbind()]
        responses = [*data["responses"].unbind()]
        columns = [data[name].unbind() for name in ("response_mask", "advantages", "old_log_probs")]
        columns.append([row[: len(ids)] for row, ids in zip(computed, responses, strict=True)])
        whole = [
            [torch.cat([torch.zeros(len(prompt)), part.cpu()]) for prompt, part in zip(prompts, column, strict=True)]
            for column in columns
        ]
        ids = [torch.cat(pair) for pair in zip(prompts, responses, strict=True)]
        write_rows(FOLDER / f"loss-{os.getpid()}.jsonl", ids, *whole)
        return loss(config, model_output, data, dp_group)

    engine_workers.ppo_loss = watched


_watch_loss()
