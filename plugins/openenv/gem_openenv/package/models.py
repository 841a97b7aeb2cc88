"""Action and observation: texts."""

from typing import Any

from openenv.core.env_server.types import Action, Observation
from pydantic import Field


class TextAction(Action):
    """What the policy says."""

    text: str = Field(description="The text of the policy.")


class TextObservation(Observation):
    """What the environment answers."""

    text: str = Field(default="", description="What the policy is shown.")
    terminated: bool = Field(default=False, description="The task ended.")
    truncated: bool = Field(default=False, description="A limit from outside the task cut the episode off.")
    info: dict[str, Any] = Field(default_factory=dict, description="For example whether the task was solved.")
