"""The records of a rollout: an episode with its turns and token sequences, and the run that it belongs to."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    TokenIds: TypeAlias = array[int]
    Logprobs: TypeAlias = array[float]
else:  # msgspec evaluates annotations, and `array` cannot be subscripted before Python 3.12
    TokenIds = Logprobs = array


def as_token_ids(ids: Iterable[int] = ()) -> TokenIds:
    """Token ids as a compact array of int32.

    Raises:
        OverflowError, TypeError: an id does not fit int32, or is not an integer.
    """
    return array("i", ids)


def as_logprobs(numbers: Iterable[float] = ()) -> Logprobs:
    """Log-probabilities as a compact array of float32. Raises `TypeError` for anything but numbers."""
    return array("f", numbers)


def _repeated(number: float, count: int) -> Logprobs:
    return array("f", [number]) * count


class StopReason(str, Enum):
    """Why an episode ended."""

    TERMINATED = "terminated"
    """The task ended."""
    TRUNCATED = "truncated"
    """The environment cut the episode off, for example at its turn limit."""
    CONTEXT_FULL = "context_full"
    """The next prompt and response might not fit the context."""
    ENV_ERROR = "env_error"
    """The environment failed; see `Episode.error`."""


class Completion(msgspec.Struct, frozen=True):
    """What a policy sampled for one prompt."""

    ids: list[int]
    """The sampled token ids, an end-of-turn token included where one was sampled. At least one."""
    logprobs: list[float] | None = None
    """Log-probability of each sampled token under the policy that sampled it; `None` if the engine gives none. NaN for
    a token whose log-probability is unknown."""
    truncated: bool = False
    """The token limit cut the response off."""
    versions: int | list[int] | None = None
    """The version of the policy that sampled the tokens: one for all, or one for each where the weights changed in
    between; `None` if the engine does not say. A version is the number of weight updates before it."""


class PlacedImage(msgspec.Struct, frozen=True):
    """Where a token sequence shows an image."""

    start: int
    """Position of the first of its ids."""
    end: int
    """One past the last of its ids."""
    index: int
    """Of the image in `Episode.images`."""
    grid: tuple[int, int, int]
    """Frames, rows and columns of its patches, as the model reads them."""


class TokenSequence(msgspec.Struct):
    """Tokens of consecutive turns in which each prompt continues the previous prompt and response, id by id."""

    ids: TokenIds
    """The first prompt, then responses and the text between them. A prompt without a response may be last."""
    logprobs: Logprobs
    """One for each id: 0 for ids that were not sampled, NaN where the engine gave none."""
    images: list[PlacedImage] = []
    """The images that its prompts show, in the order of their places."""

    @classmethod
    def starting(cls, prompt: TokenIds) -> TokenSequence:
        """A sequence that consists of a prompt."""
        return cls(prompt, _repeated(0.0, len(prompt)))

    def add_prompt(self, ids: TokenIds) -> None:
        """Append tokens that were not sampled."""
        self.ids.extend(ids)
        self.logprobs.extend(_repeated(0.0, len(ids)))

    def add_response(self, ids: TokenIds, logprobs: Logprobs | None) -> None:
        """Append sampled tokens, and one log-probability for each where the engine gave them."""
        self.ids.extend(ids)
        self.logprobs.extend(_repeated(math.nan, len(ids)) if logprobs is None else logprobs)


class Turn(msgspec.Struct):
    """One observation, the response to it, and the outcome.

    Its tokens are in the episode: `Episode.prompt_ids`, `Episode.response_ids` and `Episode.response_logprobs`.
    """

    sequence: int
    """Index of the token sequence with its prompt and response."""
    start: int
    """Position of the first token of the response in that sequence; the prompt is everything before it."""
    end: int
    """One past the last token of the response."""
    observation: str
    """The text of the prompt's last message."""
    response: str
    """The sampled tokens as text."""
    action: str
    """What the response says, without its thought: the action for the environment. Empty where a truncated response is
    invalid. An environment with `Env.reads_thoughts` gets the response."""
    truncated: bool
    """The token limit cut the response off."""
    reward: float = 0.0
    """The environment's reward for this turn."""
    info: dict[str, Any] = {}
    """The environment's info for this turn."""
    versions: list[tuple[int, int]] = []
    """The policy versions that sampled the response, as runs `(version, tokens)` in the order of the tokens. Empty if
    unknown."""
    compaction: bool = False
    """The response is a summary of the episode so far, and the environment got no action. See docs/compaction.md."""
    reasoning: str = ""
    """What the model thought, where an endpoint gave it apart from the response. It reaches no environment."""

    @property
    def invalid(self) -> bool:
        """The environment could not use the action."""
        return bool(self.info.get("invalid_action"))

    @property
    def tool_call(self) -> bool:
        """A tool answered."""
        return bool(self.info.get("use_tool"))


class ShownImage(msgspec.Struct, frozen=True):
    """An image of an observation."""

    turn: int
    """Index of the turn whose observation it belongs to; the number of turns for the final observation."""
    uri: str
    """A PNG file as a data URI; see `gem_core.image.PngImage`."""


class Episode(msgspec.Struct):
    """One episode, from its first observation to its end."""

    env_id: str
    seed: int
    """`env.reset(seed=...)` and the same actions play the episode again; with `data_index=...` if it has one."""
    data_index: int | None = None
    """The row of the data that it used, for environments over data; see `Env.takes_data_index`."""
    slot: int = 0
    """Index of the environment that played the episode."""
    number: int = 0
    """How many episodes that environment had played before; with a runner, how many the runner had started before."""
    task_id: int = 0
    """The number of its task in the run; in an evaluation each environment is a run. A task has one seed."""
    turns: list[Turn] = []
    sequences: list[TokenSequence] = []
    """The tokens of all turns: one sequence if every prompt has the whole history, otherwise several. None where the
    model shows no tokens, as behind an endpoint."""
    stop_reason: StopReason = StopReason.TRUNCATED
    success: bool = False
    """Whether the task was solved, as the environment reported at the end."""
    final_observation: str = ""
    error: str | None = None
    """The failure of the environment, if it failed."""
    provenance: str = ""
    """Distribution and version of the plugin that offers the environment."""
    run: str = ""
    """`Run.id` of its rollout, which tells apart the episodes of several runs or ranks in one file."""
    agent: str = ""
    """In a match, whose episode it is: every agent has its own conversation, turns and rewards."""
    images: list[ShownImage] = []
    """The images of all observations, in order. The infos of turns have them no more."""

    @property
    def id(self) -> str:
        """A name that no other episode has, in this or another process."""
        return f"{self.match}-{self.agent}" if self.agent else self.match

    @property
    def match(self) -> str:
        """What the episodes of the agents of one match have in common: `id` without the agent."""
        return f"{self.run}-{self.slot}-{self.number}"

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards."""
        return sum(turn.reward for turn in self.turns)

    @property
    def group_id(self) -> int:
        """As `EpisodeSummary.group_id`."""
        return self.task_id

    @property
    def group_key(self) -> int:
        """As `EpisodeSummary.group_key`."""
        return group_key_of(self.group_id, self.agent)

    @property
    def role(self) -> int:
        """As `EpisodeSummary.role`."""
        return role_of(self.env_id, self.agent)

    def prompt_ids(self, turn: Turn) -> TokenIds:
        """The whole prompt of a turn, token by token as the policy saw it."""
        return self.sequences[turn.sequence].ids[: turn.start] if self.sequences else as_token_ids()

    def response_ids(self, turn: Turn) -> TokenIds:
        """The tokens that were sampled in a turn, unchanged."""
        return self.sequences[turn.sequence].ids[turn.start : turn.end] if self.sequences else as_token_ids()

    def response_logprobs(self, turn: Turn) -> Logprobs | None:
        """Log-probabilities of those tokens, where the engine gave them."""
        if not self.sequences:
            return None
        found = self.sequences[turn.sequence].logprobs[turn.start : turn.end]
        return None if all(map(math.isnan, found)) else found

    def summary(self) -> EpisodeSummary:
        """The numbers that metrics need; small, however long the episode is."""
        return EpisodeSummary(
            env_id=self.env_id,
            seed=self.seed,
            task_id=self.task_id,
            stop_reason=self.stop_reason,
            success=self.success,
            error=self.error,
            turns=len(self.turns),
            total_reward=self.total_reward,
            response_tokens=sum(turn.end - turn.start for turn in self.turns),
            invalid=sum(turn.invalid for turn in self.turns),
            truncated=sum(turn.truncated for turn in self.turns),
            tool_calls=self._tool_calls(),
            tool_successes=sum(turn.tool_call and "tool_error" not in turn.info for turn in self.turns),
            id=self.id,
            agent=self.agent,
            versions=self.version_counts(),
            compactions=sum(turn.compaction for turn in self.turns),
            unread=self._unread(),
        )

    def version_counts(self) -> list[tuple[int, int]]:
        """Sampled tokens by policy version, as pairs `(version, tokens)`, the oldest first; empty if unknown."""
        counts: Counter[int] = Counter()
        for turn in self.turns:
            for version, tokens in turn.versions:
                counts[version] += tokens
        return sorted(counts.items())

    def _unread(self) -> str | None:
        if not self.turns or not all(turn.invalid or turn.truncated for turn in self.turns):
            return None
        text = self.turns[0].response
        return text if len(text) <= 200 else f"{text[:100]} ... {text[-100:]}"

    def _tool_calls(self) -> int | None:
        tools = any(turn.tool_call or "tool_use_counter" in turn.info for turn in self.turns)
        return sum(turn.tool_call for turn in self.turns) if tools else None


class EpisodeSummary(msgspec.Struct, frozen=True):
    """An episode in numbers: for metrics, and for processes that need no texts or tokens."""

    env_id: str
    seed: int
    task_id: int
    """`Episode.task_id`."""
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
    """Tool calls that did not fail; `None` where there were no tools."""
    id: str = ""
    """`Episode.id`."""
    agent: str = ""
    """`Episode.agent`."""
    versions: list[tuple[int, int]] = []
    """`Episode.version_counts()`."""
    compactions: int = 0
    """Turns whose response is a summary."""
    unread: str | None = None
    """The first response, shortened, if every response was cut off or of no use to the environment."""

    @property
    def match(self) -> str:
        """`Episode.match`."""
        return self.id.removesuffix(f"-{self.agent}") if self.agent else self.id

    @property
    def group_id(self) -> int:
        """The number of its group: the episodes of a task, so the same as `task_id`."""
        return self.task_id

    @property
    def group_key(self) -> int:
        """The number that the episodes have in common which an estimator compares, the same in all processes:
        `group_id`, and in a match one number per `group_id` and agent, because agents have different tasks."""
        return group_key_of(self.group_id, self.agent)

    @property
    def role(self) -> int:
        """The number of the environment and agent, the same in all processes and runs."""
        return role_of(self.env_id, self.agent)


def group_key_of(group_id: int, agent: str) -> int:
    """See `EpisodeSummary.group_key`."""
    return _stable_number(f"{group_id}/{agent}") if agent else group_id


def role_of(env_id: str, agent: str) -> int:
    """See `EpisodeSummary.role`."""
    return _stable_number(f"{env_id}/{agent}")


def _stable_number(name: str) -> int:
    """A number from 0 to 2^63 - 1, which no process draws, unlike `hash`."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Run(msgspec.Struct, frozen=True):
    """A rollout as a whole; the argument of `gem_rollout_start` and `gem_rollout_end`."""

    id: str
    env_ids: list[str]
    provenance: dict[str, str]
    """Distribution and version behind each environment id."""
    settings: dict[str, Any]
    label: str = ""
    """What the rollout is for, such as `train` or `eval`."""


class Source(msgspec.Struct, frozen=True):
    """What reports metrics: a training, an evaluation or a rollout; the first argument of `gem_metrics`."""

    id: str
    """Kept by a training or evaluation that resumes, if it is tracked and has a folder."""
    kind: Literal["training", "evaluation", "rollout"]
    name: str
    """What is trained on or played, for people."""
    settings: dict[str, Any] = {}
    folder: str | None = None
    """Folder for its files, absolute."""
    resumed: bool = False
    """It continues what an earlier process began."""
    track: list[str] = []
    """Plugins that the user asked to track it. A tracker that is not among them does nothing."""
