"""TRL's own generation as a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelerate.utils import gather_object

from gem_core.rollout import Completion

if TYPE_CHECKING:
    from trl import GRPOTrainer


class TrainerPolicy:
    """Samples with whatever the trainer generates with: transformers, vLLM colocated, or a vLLM server.

    Sharded engines need all processes in each call, but processes play episodes of different lengths. So each call
    starts with a word to the others, and a process that has finished joins in with a throw-away prompt.
    """

    def __init__(self, trainer: GRPOTrainer) -> None:
        self._trainer = trainer
        self._alone = trainer.accelerator.num_processes == 1

    def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
        """One completion per prompt."""
        self._anyone_playing(True)
        return self._generate(prompts)

    def wait_for_others(self) -> None:
        """Join in until every process has finished its episodes."""
        while self._anyone_playing(False):
            self._generate([[self._trainer.eos_token_ids[0]]])

    def _anyone_playing(self, playing: bool) -> bool:
        return playing if self._alone else any(gather_object([playing]))

    def _generate(self, prompts: Sequence[list[int]]) -> list[Completion]:
        trainer = self._trainer
        # The one private method used: TRL has no public one that serves all its engines (huggingface/trl#5194).
        ids, logprobs = trainer._generate_single_turn(list(prompts), None, {}, 1)
        ends = set(trainer.eos_token_ids)
        limit = trainer.max_completion_length
        return [
            Completion(one, logprobs[index] if logprobs else None, len(one) >= limit and one[-1] not in ends)
            for index, one in enumerate(ids)
        ]
