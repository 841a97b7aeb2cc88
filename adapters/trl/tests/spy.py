"""A trainer that records what was sampled, and what the loss was computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import torch

from gem_support.brute_force import expected, gae
from gem_train.rollout import Batch
from gem_trl import TurnGRPOTrainer


class Response(NamedTuple):
    """A run of sampled tokens: the ids before it, its ids, and its advantage."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    advantage: float


class SpyTrainer(TurnGRPOTrainer):
    """Records what the policy sampled, each batch of episodes, and each micro-batch of the loss."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sampled: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.prompts_per_call: list[int] = []
        self.batches: list[Batch] = []
        self.micro_batches: list[dict[str, torch.Tensor]] = []
        self.critic_values: list[list[list[float]]] = []
        super().__init__(*args, **kwargs)

    def _generate_single_turn(self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any) -> Any:
        ids, logprobs = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        self.prompts_per_call.append(len(prompt_ids))
        self.sampled += [(tuple(prompt), tuple(one)) for prompt, one in zip(prompt_ids, ids, strict=True)]
        return ids, logprobs

    def rollout(self, count: int) -> dict[str, Any]:
        output = super().rollout(count)
        self.batches.append(self._batch)
        return output

    def _values(self) -> Any:
        if self._critic is not None:
            self.critic_values.append(values_one_by_one(self._critic.model, self._batch))
        return super()._values()

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self.micro_batches.append({k: v.clone() for k, v in inputs.items() if isinstance(v, torch.Tensor)})
        return super().compute_loss(model, inputs, *args, **kwargs)

    def trained_responses(self) -> list[Response]:
        """Every response in the loss, with the advantage that TRL used, without the factor for padding."""
        per_batch = len(self.micro_batches) // len(self.batches)
        found: list[Response] = []
        for number, batch in enumerate(self.batches):
            parts = self.micro_batches[number * per_batch : (number + 1) * per_batch]
            rows = sum(len(part["completion_ids"]) for part in parts)
            scale = rows / len(batch.episodes)
            found += [one._replace(advantage=one.advantage / scale) for part in parts for one in responses(part)]
        return found

    def expected_responses(self, name: str, gamma: float) -> list[Response]:
        """The same from the episodes and the formula."""
        if name == "gae":
            pairs = zip(self.batches, self.critic_values, strict=True)
            return [one for batch, values in pairs for one in expected_gae(batch, values, gamma, self.args.lam)]
        return [one for batch in self.batches for one in expected_responses(batch, name, gamma)]


def assert_same(got: Sequence[Response], want: Sequence[Response]) -> None:
    """Assert the same responses with the same ids, equally often, with advantages equal to 1e-5."""
    assert [(one.before, one.ids) for one in sorted(got)] == [(one.before, one.ids) for one in sorted(want)]
    numbers = [[one.advantage for one in sorted(responses)] for responses in (got, want)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-5)


def expected_responses(batch: Batch, name: str, gamma: float) -> list[Response]:
    """Every turn of the batch with its advantage by brute force."""
    rewards = [[turn.reward for turn in episode.turns] for episode in batch.episodes]
    states = [[turn.observation for turn in episode.turns] for episode in batch.episodes]
    numbers = expected(name, rewards, [episode.task_id for episode in batch.episodes], gamma, states)
    return [
        Response(tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number)
        for episode, row in zip(batch.episodes, numbers, strict=True)
        for turn, number in zip(episode.turns, row, strict=True)
    ]


def expected_gae(batch: Batch, values: list[list[float]], gamma: float, lam: float) -> list[Response]:
    """Every turn of the batch with its GAE by brute force, from the values of each episode."""
    return [
        Response(tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number)
        for episode, own in zip(batch.episodes, values, strict=True)
        for turn, number in zip(
            episode.turns, gae([turn.reward for turn in episode.turns], own, gamma, lam), strict=True
        )
    ]


@torch.no_grad()
def values_one_by_one(critic: torch.nn.Module, batch: Batch) -> list[list[float]]:
    """The value of each turn of each episode, from its prompt alone: no padding, no other rows, no response."""
    critic.eval()

    def value(prompt: Sequence[int]) -> float:
        ids = torch.tensor([[*prompt]])
        return critic(ids, torch.ones_like(ids))[0, -1].item()

    return [[value(episode.prompt_ids(turn)) for turn in episode.turns] for episode in batch.episodes]


def responses(micro: dict[str, torch.Tensor]) -> list[Response]:
    """The responses in one micro-batch."""
    columns = [micro[key] for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask")]
    return [one for row in zip(*columns, micro["advantages"], strict=True) for one in _row_responses(*row)]


def _row_responses(
    prompt: torch.Tensor,
    prompt_mask: torch.Tensor,
    completion: torch.Tensor,
    completion_mask: torch.Tensor,
    sampled: torch.Tensor,
    advantages: torch.Tensor,
) -> list[Response]:
    before = prompt[prompt_mask.bool()].tolist()
    ids = completion[completion_mask.bool()].tolist()
    mask: Sequence[int] = sampled[completion_mask.bool()].tolist()
    numbers: Sequence[float] = advantages.tolist()
    found: list[Response] = []
    start = 0
    while start < len(ids):
        # A turn ends where the mask changes; there is always template text between two responses.
        end = next((at for at in range(start, len(ids)) if mask[at] != mask[start]), len(ids))
        if mask[start]:
            assert len(set(numbers[start:end])) == 1, "one turn, one advantage"
            found.append(Response(tuple(before + ids[:start]), tuple(ids[start:end]), numbers[start]))
        else:
            assert not any(numbers[start:end]), "no advantage on tokens that were not sampled"
        start = end
    return found
