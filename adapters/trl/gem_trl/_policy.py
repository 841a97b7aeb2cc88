"""TRL's own generation as a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from accelerate.utils import gather_object

from gem_core.episode import Completion, TokenIds
from gem_train.rollout import ImageReader
from gem_trl._images import prompt_fields

if TYPE_CHECKING:
    from trl import GRPOTrainer

    from gem_trl._prefixes import KeptPrefixes


class TrainerPolicy:
    """Samples with the trainer's engine: transformers, colocated vLLM, or a vLLM server.

    TRL's shared engines (a vLLM server, tensor parallelism) take the prompts of all processes in one call and return
    completions by position, so all processes must send the same number. But processes play episodes of different
    lengths. So the processes first agree on a number. A process with fewer prompts adds placeholders, and a process
    that has finished its episodes sends only placeholders.

    Args:
        trainer: the trainer whose engine samples.
        limit: token limit of a completion. A completion of that length without an end token was cut off.
        images: reads the images of prompts; `None` for a model that reads text only.
        prefixes: keys and values of earlier turns, for transformers' generation from text.
    """

    def __init__(
        self,
        trainer: GRPOTrainer,
        limit: int,
        images: ImageReader | None = None,
        prefixes: KeptPrefixes | None = None,
    ) -> None:
        self._trainer = trainer
        self._images = images
        self._limit = limit
        self._prefixes = prefixes
        self._alone = trainer.accelerator.num_processes == 1

    def __call__(self, prompts: Sequence[TokenIds]) -> list[Completion]:
        """One completion per prompt."""
        count = self._most(len(prompts))
        own = [prompt.tolist() for prompt in prompts]
        fields = {} if self._images is None else prompt_fields(self._images, prompts, count - len(own))
        return self._generate([*own, *self._placeholders(count - len(own))], fields)[: len(own)]

    def wait_for_others(self) -> None:
        """Send placeholders until every process has finished its episodes."""
        while count := self._most(0):
            self._generate(self._placeholders(count), {})

    def _most(self, prompts: int) -> int:
        return prompts if self._alone else max(gather_object([prompts]))

    def _placeholders(self, count: int) -> list[list[int]]:
        return [[self._trainer.eos_token_ids[0]]] * count

    def _generate(self, prompts: list[list[int]], fields: dict[str, Any]) -> list[Completion]:
        trainer = self._trainer
        # The only private method called: TRL has no public method for all its engines (huggingface/trl#5194).
        with self._kept_prefixes():
            ids, logprobs = trainer._generate_single_turn(prompts, None, fields, 1)
        ends, version = set(trainer.eos_token_ids), trainer.state.global_step
        return [
            Completion(one, _known(logprobs[index]) if logprobs else None, self._was_cut_off(one, ends), version)
            for index, one in enumerate(ids)
        ]

    def _kept_prefixes(self) -> AbstractContextManager[None]:
        if self._prefixes is None:
            return nullcontext()
        trainer = self._trainer
        return self._prefixes.used_by(trainer.accelerator.unwrap_model(trainer.model_wrapped))

    def _was_cut_off(self, ids: Sequence[int], ends: set[int]) -> bool:
        return len(ids) >= self._limit and ids[-1] not in ends


def _known(logprobs: Sequence[float | None]) -> list[float]:
    """NaN in place of TRL's `None` for an unknown log-probability; TRL ignores NaN in its ratios."""
    return [math.nan if one is None else one for one in logprobs]
