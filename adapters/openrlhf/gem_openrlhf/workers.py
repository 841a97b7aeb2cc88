"""OpenRLHF's workers on GPUs: as many updates per batch as its flags say, however many rows the turns make."""

from __future__ import annotations

from typing import Any

import ray
import torch
from openrlhf.trainer.ppo_utils.replay_buffer import NaiveReplayBuffer
from openrlhf.trainer.ray.ppo_actor import PolicyModelActor
from openrlhf.trainer.ray.ppo_critic import CriticModelActor

from gem_openrlhf.actors import plain_class

_PolicyModelActor = plain_class(PolicyModelActor)
_CriticModelActor = plain_class(CriticModelActor)


@ray.remote(num_gpus=1)
class TurnPolicyActor(_PolicyModelActor):
    """OpenRLHF's, with its number of updates."""

    def fit(self, kl_ctl: float = 0) -> dict[str, Any]:
        """Train on the replay buffer."""
        split_evenly(self.strategy, self.actor.model, self.trainer.replay_buffer)
        return super().fit(kl_ctl)


@ray.remote(num_gpus=1)
class TurnCriticActor(_CriticModelActor):
    """OpenRLHF's, with its number of updates; it learns one value per turn, at the first token."""

    def append(self, experience: Any) -> None:
        """Take rows into the replay buffer, masked down to where a value has a target."""
        known = ~experience.returns.isnan()
        experience.action_mask = experience.action_mask * known
        experience.returns = experience.returns.nan_to_num(0.0)
        super().append(experience)

    def fit(self) -> dict[str, Any]:
        """Train on the replay buffer."""
        split_evenly(self.strategy, self.critic, self.trainer.replay_buffer)
        return super().fit()


def split_evenly(strategy: Any, engine: Any, buffer: NaiveReplayBuffer) -> None:
    """Have DeepSpeed accumulate as many micro-batches as make the wanted number of updates of this batch."""
    args = strategy.args
    updates = args.rollout.batch_size * args.rollout.n_samples_per_prompt // args.train.batch_size
    micro_batches = len(buffer) // args.train.micro_batch_size // updates
    if torch.distributed.get_rank() == 0 and micro_batches * args.train.micro_batch_size * updates != len(buffer):
        raise RuntimeError(f"{len(buffer)} rows cannot be divided into {updates} updates of full micro-batches")
    engine.set_train_batch_size(micro_batches * engine.train_micro_batch_size_per_gpu() * engine.dp_world_size)
    engine.micro_steps = 0  # it steps where their count is a multiple, and the last batch's was another
    engine.optimizer.gradient_accumulation_steps = micro_batches  # its own copy, for offloading
    strategy.accumulated_gradient = micro_batches
