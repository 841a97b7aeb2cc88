"""OpenRLHF's sampling, in the order of the tasks, with the rows of each episode attached to its sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from openrlhf.trainer.ppo_utils import samples_generator
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from torchdata.stateful_dataloader import StatefulDataLoader

from gem_openrlhf._rows import RESULT, EpisodeRows
from gem_train.results import result_metrics


class TurnSamplesGenerator(SamplesGenerator):
    """OpenRLHF's generator. A sample is an episode; OpenRLHF filters and evaluates by its success."""

    eval_metrics: dict[str, float]
    """The results of the last evaluation."""
    _tasks: Iterator[Any] | None = None

    @classmethod
    def instead_of(cls, other: SamplesGenerator) -> TurnSamplesGenerator:
        """A generator with the same tasks as `other`, in the order in which they were written."""
        return cls(
            strategy=other.strategy,
            prompts_dataloader=_in_order(other.strategy, other.prompts_dataloader),
            eval_dataloader=other.eval_dataloader,
            tokenizer=other.tokenizer,
            vllm_engines=other.vllm_engines,
        )

    def begin(self, **generate_kwargs: Any) -> list[Any]:
        """Begin the episodes of the next batch.

        Returns:
            Ray's references to the responses, one per task; none at the end of the data.
        """
        self._tasks = self._tasks or iter(self.prompts_dataloader)
        prompts, labels, images, _ = samples_generator._collect_prompt_batch(self._tasks, self.args.rollout.batch_size)
        return self._dispatch_prompts_to_vllm(prompts, labels, images=images, **generate_kwargs)

    def read(self, responses: Sequence[dict[str, Any]], **generate_kwargs: Any) -> list[Experience]:
        """The samples of a task's response."""
        return [self._process_response_into_experience(response, **generate_kwargs) for response in responses]

    def generate_eval_samples(self, **generate_kwargs: Any) -> list[Experience]:
        """The samples of an evaluation, with success as the reward."""
        samples = super().generate_eval_samples(**generate_kwargs)
        found = result_metrics([one for sample in samples for one in sample.info[RESULT][0].each])
        self.eval_metrics = {f"eval_{name}": value for name, value in found.items()}
        for sample in samples:
            sample.rewards = sample.scores
        return samples

    def _process_response_into_experience(self, response: dict[str, Any], **generate_kwargs: Any) -> Experience:
        experience = super()._process_response_into_experience(response, **generate_kwargs)
        result: EpisodeRows = response[RESULT]
        experience.info[RESULT] = [result]
        experience.response_length = torch.tensor(
            [sum(one.summary.response_tokens for one in result.each if one.summary)]
        )
        return experience


def _in_order(strategy: Any, loader: StatefulDataLoader[Any]) -> StatefulDataLoader[Any]:
    """A loader without OpenRLHF's shuffling: tasks are random by their seeds, and environments share each batch."""
    return strategy.setup_dataloader(
        loader.dataset, 1, True, False, loader.collate_fn, num_workers=strategy.args.data.dataloader_num_workers
    )
