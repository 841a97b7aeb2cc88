"""Batches from which no policy can learn, found in the metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import msgspec

MIN_EPISODES = 128
"""Episodes in a row that show a stall. A policy can learn although it does something right in one of 20 episodes only,
and with fewer episodes such a run would often be taken for one that cannot learn."""

Kind = Literal["no_turn", "env_error", "only_thought", "cut_off", "unread", "no_advantage"]
"""A problem of all episodes of a batch.

| kind | meaning |
| --- | --- |
| `no_turn` | the first prompt left no room for a response |
| `env_error` | the environment failed |
| `only_thought` | each response was a thought, without a word of speech; known of an evaluation only |
| `cut_off` | the token limit cut off each response, and no episode succeeded |
| `unread` | the environment could use no response, and no episode succeeded |
| `no_advantage` | the advantage of each turn is 0, and fewer than half of the episodes succeeded |
"""

EVAL = "eval_"
"""Prefix of the metrics of an evaluation during a training."""
_SHARES: tuple[tuple[Kind, str], ...] = (
    ("only_thought", "only_thought"),
    ("cut_off", "truncated"),
    ("unread", "invalid"),
)
"""Kinds with the metric that is 1 then, a cause before what follows from it."""


@dataclass(frozen=True)
class StallWords:
    """How the user writes the settings that a warning names."""

    limit: str = "the token limit of a response"
    eval_limit: str = ""
    """The same for an evaluation, if it has a limit of its own."""
    system_prompt: str = "the system prompt"


class Stall(msgspec.Struct, frozen=True):
    """Reasons why a policy cannot learn, or scores nothing in an evaluation."""

    kind: Kind
    env_id: str = ""
    """Where it happened; empty if the run has one environment, or if it is about the whole batch."""
    tokens: float | None = None
    """Mean number of tokens of a response; `None` if unknown."""
    cut_off: float = 0.0
    """Share of the responses that the token limit cut off."""
    common_return: float | None = None
    """Of `no_advantage`, the return that all turns had; `None` if it differs between groups."""
    evaluation: bool = False
    """It is about evaluations during a training."""
    first: int | None = None
    """The first update of the stall, counted from 1; for an evaluation, the number of updates before it. `None` outside
    a training."""
    last: int | None = None
    """The last one so far."""

    def text(self, words: StallWords, example: str | None = None) -> str:
        """The problem, and what to do next.

        Args:
            words: how the user writes settings.
            example: the first response, or for `env_error` the first error; `None` if unknown.
        """
        text = f"{self._fact(words, example)}. Next: {self._advice(words)}."
        return f"{self.env_id}: {text}" if self.env_id else text[0].upper() + text[1:]

    @property
    def _when(self) -> str:
        if self.first is None:
            return ""
        kind = "the evaluation{} after update{}" if self.evaluation else "update{1}"
        if self.first == self.last:
            return f" of {kind.format('', '')} {self.first}"
        return f" of {kind.format('s', 's')} {self.first} to {self.last}"

    def _limit(self, words: StallWords) -> str:
        return (self.evaluation and words.eval_limit) or words.limit

    def _fact(self, words: StallWords, example: str | None) -> str:
        when, cut = self._when, f" ({self.cut_off:.0%} were cut off)".replace("%", " %") if self.cut_off else ""
        # repr: a response may hold codes that a terminal would obey.
        first = "" if example is None else f"; the first was {example!r}" if example else "; the first was empty"
        match self.kind:
            case "no_turn":
                return f"no episode{when} has a response: the first prompt leaves no room for it"
            case "env_error":
                return f"the environment failed in every episode{when}" + (f": {example!r}" if example else "")
            case "only_thought":
                return f"every response{when} was only a thought, without an answer{cut}{first}"
            case "cut_off":
                after = "" if self.tokens is None else f", after {self.tokens:.0f} tokens on average"
                return f"all responses{when} were cut off at {self._limit(words)}{after}{first}"
            case "unread":
                return f"no response{when} had the form that the environment reads{cut}{first}"
            case "no_advantage":
                common = self.common_return
                why = "within each group" if common is None else f"{common:.3g} in every turn"
                return f"all advantages{when} are 0, so nothing was learned from rewards: equal returns, {why}"

    def _advice(self, words: StallWords) -> str:
        match self.kind:
            case "no_turn":
                return f"lower {self._limit(words)}, shorten the first prompt, or allow a longer context"
            case "env_error":
                return "play the environment by hand, with `gem-core play`"
            case "only_thought":
                return f"raise {self._limit(words)}, or switch thinking off"
            case "cut_off":
                return f"raise {self._limit(words)}, or ask for short answers in {words.system_prompt}"
            case "unread":
                form = f"say the form in {words.system_prompt}, or begin with a model that knows it"
                return f"compare it with what the first observation asks for; {form}"
            case "no_advantage":
                return "an easier task, more episodes in a batch or group, or a reward for a part of the task"


def stalls(metrics: Mapping[str, float], prefix: str = "") -> list[Stall]:
    """The reasons why a policy cannot learn from a batch: one stall for the batch, or one for each environment.

    Args:
        metrics: the metrics of the batch, under the names of `episode_metrics`, with those of advantages if there are
            any.
        prefix: of these names.
    """
    found = [*_conditions({name.removeprefix(prefix): metrics[name] for name in metrics if name.startswith(prefix)})]
    return [stall for at, stall in enumerate(found) if not any(_explains(one, stall) for one in found[:at])]


def _conditions(metrics: Mapping[str, float]) -> Iterator[Stall]:
    """All that holds for the batch, a cause before what follows from it."""
    if metrics.get("stop/env_error") == 1:
        yield Stall("env_error")
        return
    if metrics.get("stop/context_full") == 1 and metrics.get("episode/turns") == 0:
        yield Stall("no_turn")
        return
    counts = [name for name in metrics if name.startswith("env/") and name.endswith("/episodes")]
    for env_id in [name.removeprefix("env/").removesuffix("/episodes") for name in counts] or [""]:
        yield from _of_responses(metrics, env_id)
    if metrics.get("advantage/zero") == 1 and metrics.get("episode/success", 0) < 0.5:
        common = None if metrics.get("advantage/return_std", 1) else metrics.get("advantage/return_mean")
        yield Stall("no_advantage", common_return=common)


def _explains(cause: Stall, other: Stall) -> bool:
    """Whether the other follows from this one, which comes before it in `_conditions`."""
    return other.kind == "no_advantage" or cause.env_id == other.env_id


def _of_responses(metrics: Mapping[str, float], env_id: str) -> Iterator[Stall]:
    """The problem of all responses in an environment, or in the only one."""
    turn, episode = (f"env/{env_id}", f"env/{env_id}") if env_id else ("turn", "episode")
    for kind, name in _SHARES:
        if metrics.get(f"{turn}/{name}") == 1 and _success(metrics, episode) == 0:
            count, turns = metrics.get("episode/response_tokens"), metrics.get("episode/turns")
            tokens = None if env_id or count is None or not turns else count / turns
            yield Stall(kind, env_id, tokens, metrics.get(f"{turn}/truncated", 0.0))


@dataclass
class _Streak:
    stall: Stall
    first: int
    episodes: float


class StallDetector:
    """Finds the stalls of a run: what lasts for at least `MIN_EPISODES` episodes, once each."""

    def __init__(self) -> None:
        self._streaks: dict[tuple[str, Kind, str], _Streak] = {}
        self._said: set[tuple[str, Kind, str]] = set()
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}

    @property
    def stalled(self) -> set[str]:
        """`Stall.env_id` of the stalls of the newest training batch that quote an episode, however short."""
        return {env_id for prefix, kind, env_id in self._streaks if not prefix and kind != "no_advantage"}

    def add(self, step: int, metrics: Mapping[str, float]) -> list[Stall]:
        """The stalls that have lasted long enough with these metrics.

        Args:
            step: the update, counted from 1; for an evaluation the number of updates before it.
            metrics: of the update, of an evaluation (with the prefix `eval_`), or of both. What is known of the step
                already is ignored.
        """
        return [stall for prefix in ("", EVAL) for stall in self._added(step, metrics, prefix)]

    def end(self) -> list[Stall]:
        """The stalls of the whole run, if it was too short for `add`.

        Without `no_advantage`, as equal returns of a few episodes say little.
        """
        keys = [key for key, one in self._streaks.items() if one.first == self._first[key[0]]]
        return [self._say(key) for key in keys if self._is_news(key) and key[1] != "no_advantage"]

    def _added(self, step: int, metrics: Mapping[str, float], prefix: str) -> Iterator[Stall]:
        if f"{prefix}env/errors" not in metrics or step <= self._last.get(prefix, -1):
            return
        self._first.setdefault(prefix, step)
        self._last[prefix] = step
        before = self._streaks
        self._streaks = {key: streak for key, streak in before.items() if key[0] != prefix}
        own = {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
        for stall in _conditions(own):
            key = (prefix, stall.kind, stall.env_id)
            first, episodes = (before[key].first, before[key].episodes) if key in before else (step, 0.0)
            lasting = msgspec.structs.replace(stall, evaluation=bool(prefix), first=first, last=step)
            self._streaks[key] = _Streak(lasting, first, episodes + _episodes(own, stall.env_id))
            # The evaluation before the first update shows a policy that has not learned yet.
            if self._streaks[key].episodes >= MIN_EPISODES and self._is_news(key) and (step > 0 or not prefix):
                yield self._say(key)

    def _is_news(self, key: tuple[str, Kind, str]) -> bool:
        """Whether it was not said, and nothing that lasts as long explains it."""
        own = self._streaks[key]
        before = takewhile(lambda other: other != key, self._streaks)
        causes = [self._streaks[other] for other in before if other[0] == key[0]]
        lasting = [one.stall for one in causes if one.first <= own.first]
        return key not in self._said and not any(_explains(one, own.stall) for one in lasting)

    def _say(self, key: tuple[str, Kind, str]) -> Stall:
        self._said.add(key)
        return self._streaks[key].stall


def _episodes(metrics: Mapping[str, float], env_id: str) -> float:
    """Episodes of an environment; or of the whole batch, with those that were dropped."""
    names = [f"env/{env_id}/episodes"] if env_id else ["rollout/episodes", "rollout/dropped"]
    return sum(metrics.get(name, 0.0) for name in names)


def _success(metrics: Mapping[str, float], episode: str) -> float | None:
    """Of the episodes; an evaluation of which many failed says only how high it is at least."""
    return metrics.get(f"{episode}/success", metrics.get(f"{episode}/success_at_least"))
