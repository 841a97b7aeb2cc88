"""One episode in the making: what all drivers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import groupby
from typing import Any, cast

from gem_core.env import Info
from gem_core.episode import (
    Completion,
    Episode,
    Logprobs,
    ShownImage,
    StopReason,
    TokenIds,
    Turn,
    as_logprobs,
    as_token_ids,
)
from gem_core.errors import PolicyError
from gem_core.image import IMAGES, images_of
from gem_core.responses import speech_of
from gem_core.vector import Transition
from gem_train.rollout._conversation import Conversation
from gem_train.rollout._settings import RolloutSettings
from gem_train.rollout._template import ChatTemplate
from gem_train.rollout.compaction import BY_POLICY, REQUEST


class BaseEpisodeBuilder(ABC):
    """An episode in the making, whatever its policy reads. A subclass adds the conversation: `prompt` and `act`.

    Args:
        episode: what is known at the start: environment, seed, slot, group, provenance.
    """

    dropped = False
    """A match that a limit cut off is left out; an episode alone never is."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.over = False
        self._message = ""
        self._said = ""
        self._pending: Turn | None = None

    @property
    @abstractmethod
    def prompt(self) -> Any:
        """What the policy is asked next."""

    @abstractmethod
    def act(self, completion: Any) -> str | None:
        """Take the policy's answer; returns what the environment gets: the response, of which `Env.step` takes what is
        spoken. `None` if it gets nothing: the episode ended with the answer (`over`), or the policy is asked again."""

    @property
    def episodes(self) -> list[Episode]:
        """The episode; in a match, those of all agents that were asked."""
        return [self.episode]

    @property
    def sampled(self) -> int:
        """Turns that the policy has sampled."""
        return len(self.episode.turns) + (self._pending is not None)

    @property
    def action(self) -> str | None:
        """What the environment gets or got and has not answered; `None` where the policy is next."""
        return None if self._pending is None else self._said

    def record(self, transition: Transition) -> None:
        """Take the environment's answer to that action; `over` tells whether the episode ended with it.

        With same-step autoreset the ended episode's last words are in `final_observation` and `final_info`.
        """
        info: Info = transition.info.get("final_info", transition.info) if transition.done else transition.info
        observation = (
            transition.info.get("final_observation", transition.observation)
            if transition.done
            else transition.observation
        )
        self.close_turn(transition.reward, info)
        if transition.done:
            self._keep_images(info)
            self.end(stop_reason(transition, info), observation, info)
        else:
            self.observe(observation, info)

    def close_turn(self, reward: float, info: Info) -> None:
        """Take what the environment paid and said for the action."""
        turn, self._pending = self._pending, None
        assert turn is not None, "no action was taken"
        turn.reward, turn.info = reward, info
        if IMAGES in info:
            turn.info = {key: value for key, value in info.items() if key != IMAGES}
        self.episode.turns.append(turn)

    @abstractmethod
    def _observe(self, observation: str, info: Info) -> str:
        """Add an observation to the conversation; returns its message."""

    @abstractmethod
    def _is_full(self) -> bool:
        """Whether the next prompt and response might not fit the context."""

    def _begin(self, observation: str, info: Info) -> None:
        self.episode.data_index = info.get("data_index", self.episode.data_index)
        if "error" in info:
            self._keep_images(info)
            self._message = self._observe(observation, info)
            self.end(StopReason.ENV_ERROR, observation, info)
        else:
            self.observe(observation, info)

    def observe(self, observation: str, info: Info) -> None:
        """Show the next observation to the policy; `over` tells whether the context had no room for it."""
        self._message = self._observe(observation, info)
        self._keep_images(info)
        if self._is_full():
            self.end(StopReason.CONTEXT_FULL, observation, info)

    def _keep_images(self, info: Info) -> None:
        self.episode.images += [ShownImage(self._shown_in, one.uri) for one in images_of(info)]

    @property
    def _shown_in(self) -> int:
        """The turn whose response follows the newest observation."""
        return len(self.episode.turns)

    def end(self, reason: StopReason, observation: str, info: Info) -> None:
        """End the episode with the last observation and its info."""
        self.over = True
        self.episode.stop_reason = reason
        self.episode.final_observation = observation
        self.episode.error = info.get("error")
        self.episode.success = bool(info.get("success", False))


class EpisodeBuilder(BaseEpisodeBuilder):
    """Turns observations into prompts of tokens, completions into actions, and all of it into an `Episode`.

    Args:
        episode: what is known at the start: environment, seed, slot, group, provenance.
        template, settings: how prompts are built.
        observation, info: what `reset` gave.
    """

    def __init__(
        self, episode: Episode, template: ChatTemplate, settings: RolloutSettings, observation: str, info: Info
    ) -> None:
        super().__init__(episode)
        self._settings = settings
        asks = settings.compaction == BY_POLICY
        self._request = len(template.bridge_tokens(REQUEST)) + settings.max_response_tokens if asks else 0
        self._conversation = Conversation(template, settings.history, settings.thoughts)
        self._rule = settings.summary_rule
        self._withheld: tuple[str, str, Info] | None = None
        episode.sequences = self._conversation.sequences
        self._begin(observation, info)

    @property
    def prompt(self) -> TokenIds:
        """Token ids to sample from next, as a copy that the policy may change."""
        return self._conversation.prompt()

    def act(self, completion: Completion) -> str | None:
        """Take what the policy sampled; returns the response for the environment, with the mark that opens its thought.

        A summary is no action. After it, the policy is asked again, unless the context has no room: then `over`.

        Raises:
            PolicyError: no token, something that is not a token id, not one log-probability per token, finite or NaN,
                or not one version per token.
        """
        runs = _version_runs(completion)
        response = self._conversation.respond(_checked_ids(completion), _checked_logprobs(completion))
        span = self._conversation.response
        assert span is not None
        unheard = self._withheld is not None or (completion.truncated and self._settings.truncated_is_invalid)
        said = "" if unheard else self._conversation.opening + response
        turn = Turn(
            *span,
            observation=self._message,
            response=response,
            action=speech_of(said),
            truncated=completion.truncated,
            versions=runs,
            compaction=self._withheld is not None,
        )
        if self._withheld is not None:
            self.episode.turns.append(turn)
            self._show_again(*self._withheld)
            return None
        self._pending, self._said = turn, said
        return said

    def _observe(self, observation: str, info: Info) -> str:
        message = self._conversation.observe(observation, info)
        if self._settings.compaction is None or not self.episode.turns:
            return message
        return self._compacted_by_rule(message) if self._rule is not None else self._asked(message, observation, info)

    @property
    def _shown_in(self) -> int:
        return super()._shown_in + (self._withheld is not None)  # a summary comes first

    def _compacted_by_rule(self, message: str) -> str:
        """Let the rule summarize where the message has no room; returns the message."""
        if self._rule is not None and self._is_full():
            summary = cast("object", self._rule(self.episode.turns))  # a user's function may return anything
            if not isinstance(summary, str):
                raise PolicyError(
                    f"the rule {self._settings.compaction} gave {summary!r:.200}. The summary of an episode is a text"
                )
            self._conversation.compact(summary)
        return message

    def _asked(self, message: str, observation: str, info: Info) -> str:
        """Withhold the message if a summary after its response would have no room; returns what the policy is asked."""
        limit = self._settings.max_context_tokens
        assert limit is not None, "compaction needs a limit"
        has_room = self._conversation.prompt_length + self._settings.max_response_tokens + self._request <= limit
        if has_room or self._conversation.length_with(REQUEST) + self._settings.max_response_tokens > limit:
            return message
        self._withheld = message, observation, info
        self._conversation.ask_summary(REQUEST)
        return REQUEST

    def _show_again(self, message: str, observation: str, info: Info) -> None:
        """Begin a new sequence with the summary that was just sampled and the message that was withheld."""
        self._withheld, self._message = None, message
        self._conversation.compact()
        if self._is_full():
            self.end(StopReason.CONTEXT_FULL, observation, info)

    def _is_full(self) -> bool:
        limit = self._settings.max_context_tokens
        return limit is not None and self._conversation.prompt_length + self._settings.max_response_tokens > limit


def stop_reason(transition: Transition, info: Info) -> StopReason:
    """Why an episode ended with this transition and info."""
    if "error" in info:
        return StopReason.ENV_ERROR
    # Some tasks report their own limit as both; a limit is the more telling of the two.
    return StopReason.TRUNCATED if transition.truncated else StopReason.TERMINATED


def _checked_ids(completion: Completion) -> TokenIds:
    if len(completion.ids) == 0:
        raise PolicyError("the policy gave a completion without any token; an engine gives at least the end of turn")
    try:
        ids = as_token_ids(completion.ids)
    except (TypeError, OverflowError):
        ids = None
    if ids is None or min(ids) < 0:
        raise PolicyError(f"the policy gave something that is not a token id: {completion.ids!r:.200}")
    return ids


def _checked_logprobs(completion: Completion) -> Logprobs | None:
    numbers = completion.logprobs
    if numbers is None:
        return None
    if len(numbers) != len(completion.ids):
        raise PolicyError(f"the policy gave {len(numbers)} log-probabilities for {len(completion.ids)} tokens")
    try:
        logprobs = as_logprobs(numbers)
    except TypeError:
        raise PolicyError(
            f"the policy gave a log-probability that is no number: {numbers!r:.200}; use NaN for none"
        ) from None
    if any(map(math.isinf, logprobs)):
        raise PolicyError(f"the policy gave an infinite log-probability for a token it sampled: {numbers!r:.200}")
    return logprobs


def _version_runs(completion: Completion) -> list[tuple[int, int]]:
    """The versions of the tokens as runs `(version, tokens)`."""
    versions, count = completion.versions, len(completion.ids)
    if versions is None:
        return []
    if isinstance(versions, int):
        return [(versions, count)]
    if len(versions) != count:
        raise PolicyError(f"the policy gave {len(versions)} versions for {count} tokens; give one for each, or one")
    return [(version, len([*run])) for version, run in groupby(versions)]
