"""Imported by a run (`gem.modules`) to record what ROLL's engines sample and what its actor trains on.

It also registers the environments of the tests.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import torch
from roll.distributed.scheduler.decorator import Dispatch, register
from roll.distributed.scheduler.router import RouterClient

from gem_roll._pipeline import TurnPipeline
from gem_roll._worker import TurnActorWorker
from gem_support import babble, pairs_match
from gem_support.loss_numbers import write_rows

FOLDER = Path(os.environ["GEM_SPY"])
TENSORS = ["input_ids", "attention_mask", "response_mask", "advantages", "infer_logprobs", "old_log_probs"]
TENSORS += ["train_infer_is_weight"]


class SpiedActorWorker(TurnActorWorker):
    """Records what the loss gets."""

    def loss_func(self, data: Any, output_tensor: torch.Tensor) -> Any:
        batch, strategy = data.batch, self.strategy
        computed = strategy.op_compute_log_probs(
            logits=output_tensor.detach(), input_ids=batch["input_ids"], attention_mask=batch["response_mask"]
        )
        # ROLL's tables leave out the first token, which is not predicted.
        tables = [_shifted(one) for one in (batch["advantages"], batch["old_log_probs"], computed)]
        write_rows(FOLDER / f"loss-{os.getpid()}.jsonl", batch["input_ids"], batch["response_mask"], *tables)
        return super().loss_func(data, output_tensor)


def _shifted(table: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(table, (1, 0))


class SgdActorWorker(SpiedActorWorker):
    """ROLL supports only AdamW, whose steps do not show the size of the gradient."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def initialize(self, pipeline_config: Any) -> None:
        super().initialize(pipeline_config)
        strategy: Any = self.strategy
        rate = self.worker_config.training_args.learning_rate
        strategy.optimizer = torch.optim.SGD(strategy.model.parameters(), lr=rate)


def _watch_sampling() -> None:
    generate = RouterClient.generate_request

    @functools.wraps(generate)
    async def watched(self: Any, req: Any, request_id: Any, uid: int) -> Any:
        prompt = req.batch["input_ids"][0].tolist()
        answer = await generate(self, req, request_id, uid)
        if answer is not None:
            ids, logprobs = (answer.meta_info[name][0] for name in ("output_token_ids", "output_logprobs"))
            version = answer.meta_info["metrics"]["gem_version"]
            line = {"prompt": prompt, "ids": ids, "logprobs": logprobs, "uid": uid, "version": version}
            with (FOLDER / f"sampled-{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
        return answer

    RouterClient.generate_request = watched


def _watch_updates() -> None:
    train = TurnPipeline._train_on_turns

    @functools.wraps(train)
    def watched(self: TurnPipeline, batch: Any, **options: Any) -> Any:
        started = train(self, batch, **options)
        seen = {name: batch.batch[name].clone() for name in TENSORS}
        torch.save({**seen, "meta": dict(batch.meta_info)}, FOLDER / f"batch-{batch.meta_info['global_step']}.pt")
        return started

    TurnPipeline._train_on_turns = watched


babble.register()
pairs_match.register()
_watch_sampling()
_watch_updates()
