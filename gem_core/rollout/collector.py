"""Rollouts in batches: a policy over a list of prompts, a vector of environments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from gem_core.env import Info
from gem_core.errors import PolicyError
from gem_core.rollout.builder import EpisodeBuilder
from gem_core.rollout.policy import Policy
from gem_core.rollout.records import Completion, Episode
from gem_core.rollout.session import Session
from gem_core.rollout.settings import RolloutSettings
from gem_core.rollout.template import Tokenizer
from gem_core.vector import Autoreset, Transition, VectorEnv


@dataclass
class Batch:
    """Whole episodes, and what it took to collect them."""

    episodes: list[Episode] = field(default_factory=list[Episode])
    carried_turns: int = 0
    """Turns of these episodes that an earlier call had sampled."""
    in_flight: int = 0
    """Episodes that go on in the next call."""
    dropped: int = 0
    """Episodes left out because a plugin said so, or because an interruption cut them off."""
    policy_seconds: float = 0.0
    """Wall time in the policy."""
    env_seconds: float = 0.0
    """Wall time waiting for environments."""

    @property
    def turns(self) -> int:
        """Turns in all episodes."""
        return sum(len(episode.turns) for episode in self.episodes)


class BatchCollector:
    """Plays a vector of environments with a policy, and hands out whole episodes only.

    `collect_round` plays one episode in every environment: a batch of one policy, whatever the lengths.
    `collect_turns` keeps every environment busy until enough turns are in, and carries unfinished episodes over to
    the next call. No episode is ever discarded for being long, so short ones are not favoured.

    After an interruption, such as Ctrl-C, either can be called again. Episodes whose turn was under way in their
    environment are left out; everything else goes on.

    Args:
        vec: a vector with same-step autoreset.
        policy: samples one completion per prompt.
        tokenizer: of the policy; with a chat template.
        settings: how episodes become prompts.

    Raises:
        ValueError: the vector has another autoreset mode.
        TemplateError: the tokenizer cannot carry a conversation.
    """

    def __init__(self, vec: VectorEnv, policy: Policy, tokenizer: Tokenizer, settings: RolloutSettings) -> None:
        if vec.autoreset is not Autoreset.SAME_STEP:
            raise ValueError(f"BatchCollector needs a vector with same-step autoreset, not {vec.autoreset.value!r}")
        self._vec = vec
        self._policy = policy
        self._settings = settings
        self._template = settings.template(tokenizer)
        self._session = Session(vec.env_ids, settings)
        self._openings: dict[int, tuple[str, Info]] = {}
        self._live: dict[int, EpisodeBuilder] = {}
        self._groups: dict[int, list[Episode]] = {}
        self._missing: dict[int, int] = {}
        self._sampled_before: dict[tuple[int, int], int] = {}
        self._next: dict[int, int] = {}
        self._under_way: set[int] = set()
        self._batch = Batch()

    def collect_round(self) -> Batch:
        """Play one episode in every environment, ones already under way included.

        Returns:
            At most one episode per environment, in the order of the environments.

        Raises:
            PolicyError: the policy broke its contract.
            EnvFailure: see `Session.keep`.
        """
        self._begin_batch()
        waiting = set(range(self._vec.num_envs)) - {episode.slot for episode in self._batch.episodes}
        while waiting:
            waiting -= self._play(sorted(waiting))
        return self._end_batch()

    def collect_turns(self, at_least: int) -> Batch:
        """Play until whole episodes with so many turns are in; the rest goes on in the next call.

        Args:
            at_least: number of turns, above 0.

        Returns:
            The episodes that ended (with `group_size` above 1: whose whole group ended). In-flight episodes straddle a
            policy update: `carried_turns` counts those turns, and their recorded log-probabilities are the sampling
            policy's.

        Raises:
            PolicyError, EnvFailure: as `collect_round`.
        """
        if at_least < 1:
            raise ValueError(f"at_least must be above 0, not {at_least}")
        self._begin_batch()
        while self._batch.turns < at_least:
            self._play(range(self._vec.num_envs))
        return self._end_batch()

    def close(self, error: BaseException | None = None) -> None:
        """End the run and close the environments. Safe to call twice."""
        self._session.close(error)
        self._vec.close()

    # -- one batch -------------------------------------------------------------------------------------------------

    def _begin_batch(self) -> None:
        self._vec.drain()
        for slot in self._under_way:  # an interruption came before what they sent was recorded
            self._leave_out(self._live.pop(slot).episode.group)
            self._openings.pop(slot, None)
        self._under_way.clear()
        held = [episode for group in self._groups.values() for episode in group]
        live = [builder.episode for builder in self._live.values()]
        # The batch still has what a call collected that raised, for example because the engine was away.
        known = [*self._batch.episodes, *held, *live]
        self._sampled_before = {_key(episode): len(episode.turns) for episode in known}

    def _end_batch(self) -> Batch:
        batch, self._batch = self._batch, Batch()
        batch.in_flight = len(self._live)
        batch.carried_turns = sum(self._sampled_before.get(_key(episode), 0) for episode in batch.episodes)
        batch.episodes.sort(key=_key)
        return batch

    def _play(self, slots: Sequence[int]) -> set[int]:
        """One turn in the slots given; returns those whose episode ended."""
        self._open_episodes([slot for slot in slots if slot not in self._live])
        ended = {slot for slot in slots if self._live[slot].over}
        playing = [slot for slot in slots if slot not in ended]
        if playing:
            ended |= self._turn(playing)
        for slot in sorted(ended):
            self._finish(self._live.pop(slot))
        return ended

    def _turn(self, slots: Sequence[int]) -> set[int]:
        started = time.perf_counter()
        completions = self._sample([self._live[slot].prompt for slot in slots])
        sampled = time.perf_counter()
        actions = {slot: self._live[slot].act(one) for slot, one in zip(slots, completions, strict=True)}
        self._under_way.update(slots)
        self._vec.send(actions)
        transitions = self._vec.recv(at_least=len(slots))
        self._batch.policy_seconds += sampled - started
        self._batch.env_seconds += time.perf_counter() - sampled
        return {slot for slot in slots if self._record(slot, transitions[slot])}

    def _sample(self, prompts: Sequence[list[int]]) -> Sequence[Completion]:
        completions = self._policy(prompts)
        if len(completions) != len(prompts):
            raise PolicyError(f"the policy gave {len(completions)} completions for {len(prompts)} prompts")
        return completions

    def _record(self, slot: int, transition: Transition) -> bool:
        builder = self._live[slot]
        builder.record(transition)
        if transition.done:
            self._openings[slot] = (transition.observation, transition.info)
        self._under_way.discard(slot)
        return builder.over

    # -- one episode -----------------------------------------------------------------------------------------------

    def _open_episodes(self, slots: Sequence[int]) -> None:
        # The first one of a slot, and one after an episode that ended for the context's sake or before its first turn.
        closed = [slot for slot in slots if slot not in self._openings]
        if closed:
            started = time.perf_counter()
            observations, infos = self._vec.reset(indices=closed)
            self._batch.env_seconds += time.perf_counter() - started
            self._openings.update(zip(closed, zip(observations, infos, strict=True), strict=True))
        for slot in slots:
            self._open_episode(slot, *self._openings.pop(slot))

    def _open_episode(self, slot: int, observation: str, info: Info) -> None:
        env_id = self._vec.env_ids[slot]
        number: int = info["episode"]
        for lost in range(self._next.get(slot, number), number):
            self._leave_out(self._group(slot, lost))  # its group does not wait for it
        episode = Episode(
            env_id=env_id,
            seed=info["seed"],
            slot=slot,
            number=number,
            group=self._group(slot, number),
            turns=[],
            provenance=self._session.origin(env_id),
            run=self._session.run.id,
        )
        self._live[slot] = EpisodeBuilder(episode, self._template, self._settings, observation, info)
        self._next[slot] = number + 1

    def _finish(self, builder: EpisodeBuilder) -> None:
        episode = builder.episode
        if self._session.keep(episode):
            self._groups.setdefault(episode.group, []).append(episode)
            self._deliver_if_whole(episode.group)
        else:
            self._leave_out(episode.group)

    def _leave_out(self, group: int) -> None:
        self._batch.dropped += 1
        self._missing[group] = self._missing.get(group, 0) + 1
        self._deliver_if_whole(group)

    def _deliver_if_whole(self, group: int) -> None:
        if len(self._groups.get(group, ())) + self._missing.get(group, 0) == self._vec.group_size:
            self._batch.episodes += self._groups.pop(group, [])
            self._missing.pop(group, None)

    def _group(self, slot: int, number: int) -> int:
        size = self._vec.group_size
        return number * (self._vec.num_envs // size) + slot // size


def _key(episode: Episode) -> tuple[int, int]:
    return episode.slot, episode.number
