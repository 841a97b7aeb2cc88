"""verl's trainer with rollout servers on devices of their own."""

from __future__ import annotations

import logging
from typing import Any

from omegaconf import DictConfig, open_dict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1 import trainer_separate_async
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.workers.rollout.llm_server import LLMServerClient

from gem_verl._trainer import TurnTrainer

# verl 0.9 writes a line with `logger.info(..., flush=True)`, which ends the run with a TypeError.
logging.getLogger(trainer_separate_async.__name__).setLevel(logging.WARNING)


# verl's decorator hides from the type checker which class is registered.
class SeparateTurnTrainer(TurnTrainer, PPOTrainerSeparateAsync):  # pyright: ignore[reportGeneralTypeIssues]
    """`TurnTrainer` with `actor_rollout_ref.hybrid_engine=False`: rollout servers have devices of their own.

    With `gem.max_staleness`, they sample while verl trains, and stop only while they get new weights.

    Args:
        config: verl's configuration with the section `gem`.

    Raises:
        SettingsError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `TurnTrainer`.
    """

    standalone_server_manager: Any
    """verl's manager of the rollout servers."""

    def __init__(self, config: DictConfig) -> None:
        actor = config.actor_rollout_ref.actor
        with open_dict(config):
            # verl compares this with the sizes of batches. A batch is trained on as a whole here, whatever it is.
            config.trainer.v1.separate_async.parameter_sync_step = (
                config.data.train_batch_size // actor.ppo_mini_batch_size
            )
        super().__init__(config)

    # `TurnTrainer` is made from verl's synchronous trainer, whose methods would come first.

    def on_init_end(self) -> None:
        """Publish the weights."""
        PPOTrainerSeparateAsync.on_init_end(self)

    def on_sample_end(self) -> None:
        """Let the servers sample on."""
        PPOTrainerSeparateAsync.on_sample_end(self)

    def on_step_end(self) -> None:
        """Publish the weights. Requests that are under way continue with them."""
        PPOTrainerSeparateAsync.on_step_end(self)

    def get_llm_client(self) -> LLMServerClient:
        """The client of the agent loops. verl's own for this mode joins the parts of an aborted response, and so hides
        which tokens have which version."""
        return self.standalone_server_manager.get_client()

    def _compute_old_log_prob(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        # verl keeps a copy of the weights for several updates between two publications. Here there is one.
        return PPOTrainer._compute_old_log_prob(self, batch, metrics)
