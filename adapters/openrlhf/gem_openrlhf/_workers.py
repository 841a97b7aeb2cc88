"""OpenRLHF's GPU workers, with the number of updates per batch that its flags set, whatever the number of rows."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import ray
import torch
from openrlhf.trainer.ppo_utils.replay_buffer import NaiveReplayBuffer
from openrlhf.trainer.ray import ppo_actor, ppo_critic

from gem_openrlhf._actors import plain_class
from gem_openrlhf._averages import safe_averages, weighed
from gem_openrlhf.settings import updates_per_pass

_PolicyModelActor = plain_class(ppo_actor.PolicyModelActor)
_CriticModelActor = plain_class(ppo_critic.CriticModelActor)


@ray.remote(num_gpus=1)
class TurnPolicyActor(_PolicyModelActor):
    """OpenRLHF's policy actor, with a fixed number of updates per batch."""

    def fit(self, kl_ctl: float = 0) -> dict[str, Any]:
        """Train on the replay buffer."""
        split_evenly(self.strategy, self.actor.model, self.trainer.replay_buffer)
        step = weighed(self.trainer.training_step)
        with safe_averages(ppo_actor), patch.object(self.trainer, "training_step", step):
            return super().fit(kl_ctl)


@ray.remote(num_gpus=1)
class TurnCriticActor(_CriticModelActor):
    """OpenRLHF's critic actor, with a fixed number of updates per batch and one value per turn, at the first token."""

    def append(self, experience: Any) -> None:
        """Add rows to the replay buffer. The mask keeps only tokens whose value has a target."""
        known = ~experience.returns.isnan()
        experience.action_mask = experience.action_mask * known
        experience.returns = experience.returns.nan_to_num(0.0)
        super().append(experience)

    def fit(self) -> dict[str, Any]:
        """Train on the replay buffer."""
        split_evenly(self.strategy, self.critic, self.trainer.replay_buffer)
        with safe_averages(ppo_critic):
            return super().fit()


def split_evenly(strategy: Any, engine: Any, buffer: NaiveReplayBuffer) -> None:
    """Make DeepSpeed accumulate micro-batches so that this batch has the number of updates that the flags set."""
    args = strategy.args
    updates = updates_per_pass(args)
    micro_batches = len(buffer) // args.train.micro_batch_size // updates
    if torch.distributed.get_rank() == 0 and micro_batches * args.train.micro_batch_size * updates != len(buffer):
        raise RuntimeError(f"{len(buffer)} rows cannot be divided into {updates} updates of full micro-batches")
    engine.set_train_batch_size(micro_batches * engine.train_micro_batch_size_per_gpu() * engine.dp_world_size)
    engine.micro_steps = 0  # DeepSpeed updates at multiples of `micro_batches`, which differs between batches
    engine.optimizer.gradient_accumulation_steps = micro_batches  # the optimizer's own copy, for offloading
    strategy.accumulated_gradient = micro_batches
