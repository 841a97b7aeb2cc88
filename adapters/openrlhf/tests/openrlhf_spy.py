"""Imported by a run (`--gem.modules`) to record what OpenRLHF samples and trains on.

It also registers the environments of the tests. OpenRLHF's workers are pickled by value for Ray, so it is enough to
wrap them in the process that starts training.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gem_support import babble, glance, pairs_match

FIELDS = ["sequences", "action_mask", "advantages", "returns", "values", "action_log_probs", "rollout_log_probs"]


def folder() -> Path:
    return Path(os.environ["GEM_SPY"])


def note_process() -> None:
    """As `forks.note_process`, which a worker of Ray that gets `watched` by value cannot import."""
    (folder() / f"process-{os.getpid()}").write_text(" ".join(sys.orig_argv))
    (folder() / f"title-{os.getpid()}").write_text(Path("/proc/self/cmdline").read_text())


def watch_sampling(actor: Any) -> None:
    generate = actor.generate

    @functools.wraps(generate)
    async def watched(self: Any, prompt_token_ids: Any, sampling_params: Any, *args: Any, **kwargs: Any) -> Any:
        result = await generate(self, prompt_token_ids, sampling_params, *args, **kwargs)
        line = {"prompt": list(prompt_token_ids), "ids": list(result.outputs[0].token_ids)}
        with (folder() / f"sampled-{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        return result

    actor.generate = watched


def watch_updates(actor: Any, name: str) -> None:
    fit = actor.fit

    @functools.wraps(fit)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.seen = getattr(self, "seen", 0) + 1
        note_process()
        items = [{field: getattr(item, field) for field in FIELDS} for item in self.trainer.replay_buffer.items]
        engine = getattr(self, name)
        engine = getattr(engine, "model", engine) if name == "actor" else engine
        steps = engine.global_steps
        loss: list[dict[str, Any]] = []
        with watched_loss(self.trainer, loss) if name == "actor" else nullcontext():
            result = fit(self, *args, **kwargs)
        seen = {"rows": items, "updates": engine.global_steps - steps, "loss": loss}
        torch.save(seen, folder() / f"{name}-{self.seen}-{torch.distributed.get_rank()}.pt")
        return result

    actor.fit = watched


@contextmanager
def watched_loss(trainer: Any, rows: list[dict[str, Any]]) -> Iterator[None]:
    """Add each row with the arguments that OpenRLHF's loss is called with."""
    step = trainer.training_step

    def note(experience: Any, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        _, logprobs, advantages = given
        columns = (experience.sequences, experience.attention_mask, named["action_mask"])
        for ids, present, mask, *numbers in zip(
            *columns, advantages, logprobs, named["rollout_log_probs"], strict=True
        ):
            names = ("advantages", "logprobs", "sampled")
            tables = {one: table.clone() for one, table in zip(names, numbers, strict=True)}
            rows.append({"ids": ids[present.bool()], "mask": mask.bool(), **tables})

    def watched(experience: Any, *args: Any, **kwargs: Any) -> Any:
        hook = trainer.actor_loss_fn.register_forward_pre_hook(functools.partial(note, experience), with_kwargs=True)
        try:
            return step(experience, *args, **kwargs)
        finally:
            hook.remove()

    with patch.object(trainer, "training_step", watched):
        yield


def watch_closing() -> None:
    from gem_openrlhf._agent import GemAgentExecutor

    close = GemAgentExecutor.close

    def watched(self: GemAgentExecutor) -> None:
        close(self)
        (folder() / f"closed-{os.getpid()}").touch()

    GemAgentExecutor.close = watched


note_process()
babble.register()
glance.register()
pairs_match.register()
watch_closing()
if "openrlhf.trainer.ray.vllm_engine" in sys.modules and "gem_openrlhf._workers" in sys.modules:
    from openrlhf.trainer.ray.vllm_engine import RolloutRayActor

    from gem_openrlhf._actors import plain_class
    from gem_openrlhf._workers import TurnCriticActor, TurnPolicyActor

    watch_sampling(plain_class(RolloutRayActor))
    watch_updates(plain_class(TurnPolicyActor), "actor")
    watch_updates(plain_class(TurnCriticActor), "critic")
