"""Grading again: replays the recorded actions of finished episodes in the environments that are installed now.

No model is asked. An observation that differs ends a replay, because a model would have acted otherwise. Episodes that
are not the same are replayed twice, which tells a changed environment from one that is not deterministic.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gem_core.episode import Episode, StopReason, Turn
from gem_core.errors import GemError
from gem_core.failures import FailurePolicy
from gem_core.partner import PARTNER_REPLIES
from gem_core.registry import provenance
from gem_core.responses import speech_of
from gem_evaluation._conversation import Prompt, Reasoning, Reply
from gem_evaluation._errors import EvaluationError
from gem_evaluation._evaluation import versions
from gem_evaluation._playing import EntryRunner
from gem_evaluation._records import EvaluatedEpisode, Result
from gem_evaluation._regraded import Comparison, Grade, Regraded, Regrading, ReplayOutcome
from gem_evaluation._settings import Entry, check_entry
from gem_evaluation._store import RUN, read_episodes, read_identity, read_results
from gem_evaluation.results import summary_of
from gem_train.trust import needs_trust

_AT_ONCE = 16
# Each failed episode is reported, so any share of them may fail.
_FAILURES = FailurePolicy(max_failure_share=None)


def regrade(folder: str | Path, *, trust: bool = False) -> Regrading:
    """Replay the finished episodes of an evaluation, compare, and write `regraded.json`.

    Args:
        folder: of the evaluation. `episodes.jsonl` is only read.
        trust: also build what `trusted_parts` names. Otherwise these episodes are `not_built`.

    Raises:
        EvaluationError: the folder cannot be read or written.
        RuntimeError: an event loop is at work in this thread.
    """
    folder = Path(folder)
    found = asyncio.run(_Replays(folder, trust).play())
    found.save(folder)
    return found


def trusted_parts(folder: str | Path) -> dict[str, list[str]]:
    """The choices of `run.json` that need trust in its author, by the label of the environment.

    Raises:
        EvaluationError: the folder cannot be read.
    """
    return _trusted_parts(_entries(read_identity(Path(folder))))


def _trusted_parts(entries: Mapping[str, Entry]) -> dict[str, list[str]]:
    return {label: parts for label, one in entries.items() if (parts := needs_trust(one.id, one.env_kwargs))}


def _entries(identity: Mapping[str, Any]) -> dict[str, Entry]:
    """The environments, by label."""
    return {label: _entry(label, fields) for label, fields in identity["environments"].items()}


class _Replays:
    """Replays the episodes of a folder, many at a time."""

    def __init__(self, folder: Path, trust: bool) -> None:
        self._folder = folder
        self._identity = read_identity(folder)
        self._entries = _entries(self._identity)
        self._untrusted = {} if trust else _trusted_parts(self._entries)
        self._counts = Counter(result.key.entry for result in read_results(folder))
        self._runners: dict[str, EntryRunner | str] = {}
        self._episodes: list[Regraded] = []
        self._results: dict[str, list[tuple[Result, Result]]] = defaultdict(list)

    async def play(self) -> Regrading:
        """Replay all."""
        waiting = read_episodes(self._folder)
        with ExitStack() as stack:
            running = [asyncio.ensure_future(self._play_from(waiting, stack)) for _ in range(_AT_ONCE)]
            try:
                await asyncio.gather(*running)
            finally:
                for one in running:
                    one.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        episodes = sorted(self._episodes, key=lambda one: one.key)
        compared = [self._comparison(label) for label in self._entries if self._counts[label]]
        return Regrading(self._identity, versions(), compared, episodes)

    async def _play_from(self, waiting: Iterator[EvaluatedEpisode], stack: ExitStack) -> None:
        for played in waiting:
            before = _grade(played.episode)
            outcome, reason, episode = await self._regraded(played, stack)
            self._episodes.append(
                Regraded(played.key, outcome, reason, before, None if episode is None else _grade(episode))
            )
            if episode is not None:
                now = EvaluatedEpisode(played.key, episode, played.usage, played.cost, played.seconds, played.opening)
                self._results[played.key.entry].append((played.result, now.result))

    async def _regraded(self, played: EvaluatedEpisode, stack: ExitStack) -> tuple[ReplayOutcome, str, Episode | None]:
        runner = self._runner(played.key.entry, stack)
        if isinstance(runner, str):
            return "not_built", runner, None
        if not played.episode.turns:  # the first prompt was too long: nothing was played, and nothing graded
            return "same", "", played.episode
        first = await _replayed(runner, played)
        if first.failure:
            return "failed", first.failure, None
        reason = first.difference(played.episode)
        if not reason:
            return "same", "", first.episode
        second = await _replayed(runner, played)
        if not first.equals(second):
            return "not_deterministic", f"two replays differ; in the first one, {reason}", None
        return ("diverged" if first.episode is None else "changed"), reason, first.episode

    def _runner(self, label: str, stack: ExitStack) -> EntryRunner | str:
        """The runner of an environment, or why there is none."""
        if parts := self._untrusted.get(label):
            return f"{', '.join(parts)}: chosen by {RUN} and not loaded. If you trust its author, use --trust"
        if label not in self._runners:
            try:
                places = min(_AT_ONCE, self._counts[label])
                runner = EntryRunner(self._entries[label], self._identity["seed"], places, failures=_FAILURES)
                stack.callback(runner.close)
                self._runners[label] = runner
            except GemError as error:
                self._runners[label] = str(error)
        return self._runners[label]

    def _comparison(self, label: str) -> Comparison:
        outcomes = Counter(one.outcome for one in self._episodes if one.key.entry == label)
        pairs = self._results[label]
        return Comparison(
            label=label,
            provenance_before=self._identity["environments"][label]["provenance"],
            provenance_now="" if label in self._untrusted else _provenance(self._entries[label].id),
            episodes=outcomes.total(),
            same=outcomes["same"],
            changed=outcomes["changed"],
            not_graded=outcomes.total() - len(pairs),
            before=summary_of(label, [before for before, _ in pairs]),
            now=summary_of(label, [now for _, now in pairs]),
        )


class _Stopped(Exception):
    """The recorded actions mean nothing from here on."""


@dataclass
class _Actions:
    """Answers with the recorded actions of an episode, as long as the observations are the recorded ones."""

    turns: Sequence[Turn]
    context_full: bool
    """The episode ended because the next prompt did not fit the model's context."""
    seen: list[str] = field(default_factory=list[str])

    async def __call__(self, prompt: Prompt) -> Reply:
        observation, number = prompt.messages[-1].content, len(self.seen)
        self.seen.append(observation)
        if number == len(self.turns):
            if self.context_full:
                return Reply("", context_full=True)
            raise _Stopped(f"the episode continues after its last action, that of turn {number}")
        turn = self.turns[number]
        if observation != turn.observation:
            raise _Stopped(f"the observation of turn {number + 1} differs")
        # An environment may read thoughts, too. What was no part of a response was played as it is: a function call.
        said = turn.response if turn.action in ("", speech_of(turn.response)) else turn.action
        return Reply(said, truncated=turn.truncated, reasoning=Reasoning(turn.reasoning) if turn.reasoning else None)


@dataclass
class _Replayed:
    """What a replay showed."""

    seen: list[str]
    """Observations, the last of them without an action where the replay was stopped."""
    episode: Episode | None
    """`None` if the environment failed or the replay was stopped."""
    stopped: str = ""
    failure: str = ""

    def difference(self, before: Episode) -> str:
        """What differs from the recorded episode; empty where nothing does."""
        if self.episode is None:
            return self.stopped
        return ", ".join(_differences(before, self.episode))

    def equals(self, other: _Replayed) -> bool:
        """Whether both replays showed the same."""
        if self.episode is None or other.episode is None:
            return self.episode is other.episode and self.seen == other.seen and self.failure == other.failure
        return self.seen == other.seen and not [*_differences(self.episode, other.episode)]


async def _replayed(runner: EntryRunner, played: EvaluatedEpisode) -> _Replayed:
    episode = played.episode
    actions = _Actions(episode.turns, episode.stop_reason is StopReason.CONTEXT_FULL)
    try:
        replay = await runner.run(actions, played.key.task_id, [*_partner_replies(episode)])
    except _Stopped as stopped:
        return _Replayed(actions.seen, None, stopped=str(stopped))
    if replay is None:
        return _Replayed(actions.seen, None, failure="the environment failed, and a plugin dropped the episode")
    if replay.stop_reason is StopReason.ENV_ERROR:
        return _Replayed(actions.seen, None, failure=f"the environment failed: {replay.error}")
    return _Replayed(actions.seen, replay)


def _partner_replies(episode: Episode) -> Iterator[str]:
    for turn in episode.turns:
        replies = turn.info.get(PARTNER_REPLIES)
        yield from (one for one in replies if isinstance(one, str)) if isinstance(replies, list) else ()  # pyright: ignore[reportUnknownVariableType]


def _differences(before: Episode, now: Episode) -> Iterator[str]:
    if len(before.turns) != len(now.turns):
        yield f"the episode ends after {len(now.turns)} turns instead of {len(before.turns)}"
    pairs = zip(before.turns, now.turns, strict=False)
    if turns := [str(number) for number, (old, new) in enumerate(pairs, 1) if old.reward != new.reward]:
        yield f"the reward of {'turn' if len(turns) == 1 else 'turns'} {', '.join(turns)}"
    if before.success != now.success:
        yield "success"
    if before.stop_reason is not now.stop_reason:
        yield f"the ending: {now.stop_reason.value} instead of {before.stop_reason.value}"
    if before.final_observation != now.final_observation:
        yield "the last observation"


def _grade(episode: Episode) -> Grade:
    return Grade(episode.success, [turn.reward for turn in episode.turns], episode.stop_reason)


def _entry(label: str, fields: Mapping[str, Any]) -> Entry:
    settings = {name: value for name, value in fields.items() if name != "provenance"}
    try:
        entry = msgspec.convert({**settings, "name": label}, Entry)
    except msgspec.ValidationError as error:
        raise EvaluationError(f"the settings of {label} cannot be read: {error}") from error
    check_entry(entry)
    return entry


def _provenance(env_id: str) -> str:
    try:
        return str(provenance(env_id))
    except GemError:
        return ""
