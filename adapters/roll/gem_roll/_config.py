"""ROLL's configuration with the section `gem`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roll.pipeline.agentic.agentic_config import AgenticConfig


@dataclass
class GemConfig(AgenticConfig):
    """The configuration for all ROLL processes. ROLL itself would drop the unknown section `gem` of the yaml."""

    gem: dict[str, Any] = field(default_factory=dict[str, Any])
    """See `ROLLSettings`."""

    def set_max_steps(self, max_steps: int) -> None:
        """Set the length of the run, which workers need for the learning rate schedule.

        Args:
            max_steps: number of batches. ROLL counts updates, and divides by the number of data-parallel ranks.
        """
        super().set_max_steps(max_steps)
        actor: Any = self.actor_train
        ranks = len(actor.device_mapping) // (actor.model_args.ulysses_size or 1)
        actor.training_args.max_steps = max_steps * self.updates_per_batch * ranks

    @property
    def updates_per_batch(self) -> int:
        """Updates of the policy on each batch."""
        return self.gem.get("updates", 1) * self.ppo_epochs
