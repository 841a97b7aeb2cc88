"""What a rollout leaves behind: turns, episodes and the run they belong to."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class StopReason(str, Enum):
    """Why an episode ended."""

    TERMINATED = "terminated"
    """The environment says that the task ended."""
    TRUNCATED = "truncated"
    """The environment cut it off, for example at its turn limit."""
    CONTEXT_FULL = "context_full"
    """The next prompt and response might not fit the context."""
    ENV_ERROR = "env_error"
    """The environment failed; see `Episode.error`."""


class Completion(msgspec.Struct, frozen=True):
    """What a policy sampled for one prompt."""

    ids: list[int]
    """The sampled token ids, an end-of-turn token included where one was sampled. At least one."""
    logprobs: list[float] | None = None
    """Log-probability of each sampled token under the policy that sampled it, where the engine gives any; NaN for a
    token of which it could not say."""
    truncated: bool = False
    """The token limit cut it off."""


class Turn(msgspec.Struct):
    """One observation, the response to it, and what came of it."""

    observation: str
    """What the prompt's last message said."""
    prompt_ids: list[int]
    """The whole prompt, token by token as the policy saw it."""
    response_ids: list[int]
    """The sampled tokens, unchanged."""
    logprobs: list[float] | None
    """Log-probabilities of `response_ids`, where the engine gave them; see `Completion.logprobs`."""
    response: str
    """The sampled tokens as text."""
    action: str
    """What the environment was given: the response, or an empty action where a truncated one is invalid."""
    truncated: bool
    """The token limit cut the response off."""
    reward: float = 0.0
    """The environment's reward for this turn."""
    info: dict[str, Any] = {}
    """The environment's info for this turn."""

    @property
    def invalid(self) -> bool:
        """The environment could not use the action."""
        return bool(self.info.get("invalid_action"))

    @property
    def tool_call(self) -> bool:
        """It was a tool that answered."""
        return bool(self.info.get("use_tool"))


class Episode(msgspec.Struct):
    """One episode, from its first observation to its end."""

    env_id: str
    seed: int
    """`env.reset(seed=...)` with the same actions plays it again, with `task=...` where there is one."""
    task: int | None = None
    """Which task it was told to play, where the environment takes one."""
    slot: int = 0
    """Index of the environment that played it."""
    number: int = 0
    """How many episodes that environment had played before."""
    group: int = 0
    """Episodes of one group started from the same seed."""
    turns: list[Turn] = []
    stop_reason: StopReason = StopReason.TRUNCATED
    success: bool = False
    """Whether the environment said at the end that the task was solved."""
    final_observation: str = ""
    error: str | None = None
    """What the environment raised, where it failed."""
    provenance: str = ""
    """Distribution and version of the plugin that offers the environment."""
    run: str = ""
    """`Run.id` of the rollout it belongs to, which tells apart what several runs or ranks write to one file."""

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards."""
        return sum(turn.reward for turn in self.turns)

    def summary(self) -> EpisodeSummary:
        """What metrics need of it; small, however long the texts."""
        return EpisodeSummary(
            env_id=self.env_id,
            seed=self.seed,
            group=self.group,
            stop_reason=self.stop_reason,
            success=self.success,
            error=self.error,
            turns=len(self.turns),
            total_reward=self.total_reward,
            response_tokens=sum(len(turn.response_ids) for turn in self.turns),
            invalid=sum(turn.invalid for turn in self.turns),
            truncated=sum(turn.truncated for turn in self.turns),
            tool_calls=self._tool_calls(),
            tool_successes=sum(turn.tool_call and "tool_error" not in turn.info for turn in self.turns),
        )

    def _tool_calls(self) -> int | None:
        tools = any(turn.tool_call or "tool_use_counter" in turn.info for turn in self.turns)
        return sum(turn.tool_call for turn in self.turns) if tools else None


class EpisodeSummary(msgspec.Struct, frozen=True):
    """An episode in numbers, for metrics, and to be sent where its texts and tokens are not needed."""

    env_id: str
    seed: int
    group: int
    stop_reason: StopReason
    success: bool
    error: str | None
    turns: int
    total_reward: float
    """Undiscounted sum of rewards."""
    response_tokens: int
    """Sampled tokens of all turns."""
    invalid: int
    """Turns whose action the environment could not use."""
    truncated: int
    """Turns whose response the token limit cut off."""
    tool_calls: int | None = None
    """Turns that a tool answered; `None` where there were no tools."""
    tool_successes: int = 0
    """Those of them that did not fail."""


class Run(msgspec.Struct, frozen=True):
    """A rollout as a whole; what `gem_rollout_start` and `gem_rollout_end` hear of."""

    id: str
    env_ids: list[str]
    provenance: dict[str, str]
    """Distribution and version behind each environment id."""
    settings: dict[str, Any]
