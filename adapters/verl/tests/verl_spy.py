"""Imported by a run (`gem.modules`) to record what verl's servers sample and what its actor trains on.

It also registers the environments of the tests.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import torch
from verl.workers.rollout.llm_server import LLMServerClient

from gem_support import babble, glance, pairs_match
from gem_support.forks import note_process
from gem_verl._storage import read
from gem_verl._trainer import TurnTrainer

FOLDER = Path(os.environ["GEM_SPY"])
FIELDS = ["prompts", "responses", "response_mask", "advantages", "returns", "rm_scores", "rollout_log_probs"]


def _watch_sampling() -> None:
    generate = LLMServerClient.generate

    @functools.wraps(generate)
    async def watched(self: Any, request_id: str, *, prompt_ids: list[int], **options: Any) -> Any:
        output = await generate(self, request_id, prompt_ids=prompt_ids, **options)
        line = {
            "prompt": list(prompt_ids),
            "ids": list(output.token_ids),
            "logprobs": list(output.log_probs),
            "version": output.extra_fields["global_steps"],
            "sampling": options["sampling_params"],
        }
        with (FOLDER / f"sampled-{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        return output

    LLMServerClient.generate = watched


def _watch_updates() -> None:
    update = TurnTrainer._update_actor

    @functools.wraps(update)
    def watched(self: TurnTrainer, batch: Any, metrics: dict[str, Any]) -> Any:
        fields = [*FIELDS, "old_log_probs", "entropy", *(["values"] if self.use_critic else [])]
        fields += ["rollout_is_weights"] if self.config.algorithm.rollout_correction.rollout_is else []
        data = read(batch, *fields)
        rows = {name: [row.clone() for row in data[name].unbind()] for name in fields}
        updated = update(self, batch, metrics)
        seen = {"keys": list(batch.keys), "tags": list(batch.tags), "info": dict(batch.extra_info), **rows}
        torch.save(seen, FOLDER / f"batch-{self.global_steps}.pt")
        return updated

    TurnTrainer._update_actor = watched


note_process()
babble.register()
glance.register()
pairs_match.register()
_watch_sampling()
_watch_updates()
