"""ROLL's configuration with the section `gem`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roll.pipeline.agentic.agentic_config import AgenticConfig


@dataclass
class GemConfig(AgenticConfig):
    """What ROLL hands to all its processes; it would drop a section of the yaml that it does not know."""

    gem: dict[str, Any] = field(default_factory=dict[str, Any])
    """See `GemSettings`."""

    def set_max_steps(self, max_steps: int) -> None:
        """Tell workers how long the run is, by which they plan the learning rate.

        Args:
            max_steps: batches. ROLL counts updates, and divides their number by that of the data-parallel ranks.
        """
        super().set_max_steps(max_steps)
        actor: Any = self.actor_train
        ranks = len(actor.device_mapping) // (actor.model_args.ulysses_size or 1)
        actor.training_args.max_steps = max_steps * self.gem.get("updates", 1) * self.ppo_epochs * ranks
