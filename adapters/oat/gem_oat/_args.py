"""Oat's arguments with the settings of a run."""

# No `from __future__ import annotations`: Oat's own arguments have none, and tyro reads both.

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from oat.algorithms.ppo import PPOArgs
from tyro.constructors import PrimitiveConstructorSpec

from gem_oat.settings import OatSettings
from gem_train.settings import json_object, setting

_DECLARED = OatSettings.declared()
_JSON = PrimitiveConstructorSpec[dict[str, Any]](
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda texts: json_object(texts[0]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [str(value)],
)
"""How tyro reads a dict."""


@dataclass
class GemOatArgs(PPOArgs, OatSettings):
    """`PPOArgs` for environments of many turns; every flag of Oat keeps its meaning.

    A batch has `rollout_batch_size_per_device` episodes for each learner. `max_train` counts episodes, and
    `train_batch_size` the episodes of an update. `generate_max_length` limits one response, `max_model_len` an episode.
    """

    env_kwargs: Annotated[dict[str, Any], _JSON] = setting({}, _DECLARED["env_kwargs"].metadata["help"])
    chat_template_kwargs: Annotated[dict[str, Any], _JSON] = setting(
        {}, _DECLARED["chat_template_kwargs"].metadata["help"]
    )

    # Oat's own, whose defaults cannot work here.
    algo: Literal["PPO"] = "PPO"  # pyright: ignore[reportIncompatibleVariableOverride]
    # The environments give the rewards.
    oracle: str = ""
    # Environments write the prompts.
    prompt_data: str = ""
    # Samples of one prompt; see --group_size.
    num_samples: int = 1
    # Derived: --rollout_batch_size_per_device times the learners.
    rollout_batch_size: int = 0
    # Derived from --num_ppo_epochs: Oat counts the updates of its learning rate schedule by it.
    max_epochs: int = 0
    # Derived: a batch has as many rows as its episodes have turns.
    pi_buffer_maxlen_per_device: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def learners(self) -> int:
        """Number of learner processes, over all groups."""
        return self.learners_per_group * self.num_groups

    @property
    def learners_per_group(self) -> int:
        """Number of learner processes in this group of machines."""
        return self.gpus if self.collocate else (self.gpus + 1) // 2

    @property
    def actors_per_group(self) -> int:
        """Number of actor processes in this group."""
        return self.learners_per_group // self.num_gpus_per_actor

    @property
    def batches(self) -> int:
        """Number of batches in `max_train` episodes."""
        return self.max_train // self.rollout_batch_size

    @property
    def updates(self) -> int:
        """Number of updates per pass over a batch."""
        return self.rollout_batch_size // self.train_batch_size

    @property
    def updates_per_batch(self) -> int:
        """Number of updates on each batch."""
        return self.updates * self.num_ppo_epochs


# tyro reads the help of flags from here.
GemOatArgs.__doc__ = f"{GemOatArgs.__doc__}\n    Args:\n" + "\n".join(
    f"        {name}: {one.metadata['help']}" for name, one in _DECLARED.items()
)
