"""Rollouts in batches: a policy over a list of prompts, a vector of environments."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, groupby

from gem_core.env import Info
from gem_core.episode import Episode
from gem_core.errors import EnvFailure, PolicyError
from gem_core.failures import ErrorAction
from gem_core.interrupts import uninterrupted
from gem_core.plugins import manager
from gem_core.vector import Autoreset, Transition, VectorEnv
from gem_train.rollout._batch import Batch
from gem_train.rollout._budget import RoundBudget
from gem_train.rollout._builder import BaseEpisodeBuilder, EpisodeBuilder
from gem_train.rollout._group_filter import GroupFilter
from gem_train.rollout._images import ImageReader
from gem_train.rollout._match import MatchBuilder, builder_of
from gem_train.rollout._metrics import batch_metrics
from gem_train.rollout._policy import Policy
from gem_train.rollout._reporter import Reporter
from gem_train.rollout._session import RolloutSession
from gem_train.rollout._settings import RolloutSettings
from gem_train.rollout._template import Tokenizer


class BatchCollector:
    """Plays a vector of environments with a policy, and hands out whole episodes only.

    `collect_round` plays one episode in every environment: a batch of one policy, whatever the lengths.
    `collect_turns` and `collect_episodes` keep every environment busy until enough is in, and carry what is unfinished
    over to the next call. `collect_paced` plays rounds, and begins later ones as far as a pace allows. No episode is
    ever discarded for being long, so short ones are not favoured.

    Where an environment may play fewer episodes at once than it has slots (`env_limits` of `make_vec`), its slots wait
    for their turn. A round plays the same tasks with and without such limits.

    The policy samples for whichever environments are ready while the others are still at work. What an episode
    contains does not depend on who was ready when, as long as a completion depends on its prompt alone.

    After an interruption, such as Ctrl-C, or an error of the policy, each method can be called again, and continues
    where it was.

    Args:
        vec: a vector with same-step autoreset; what becomes of its failures is decided here from now on.
        policy: samples one completion per prompt.
        tokenizer: of the policy; with a chat template.
        settings: how episodes become prompts.
        min_batch: the policy is asked once this many prompts are ready, or all that can be. `None` waits for every
            environment that is at work: for samplers that draw from one generator for a whole batch, whose results
            would otherwise depend on timing.
        group_filter: which groups count. The environments of a group that does not count play the next task, until one
            has signal, so that a batch is always full and every environment keeps its share of it. `None` keeps all.
        label: what the rollout is for, such as `train` or `eval`; recorded with the run.
        track: plugins that track the batches, such as `wandb`. With `None` the collector reports no metrics, because
            the training that it is a part of does.
        images: reads images for the model; `None` for a model that reads text only.

    Raises:
        ValueError: the vector has another autoreset mode, `min_batch` is below 1, or there is a filter and no groups.
        PluginError: no plugin has a name in `track`.
        TemplateError: the tokenizer cannot carry a conversation.
    """

    def __init__(
        self,
        vec: VectorEnv,
        policy: Policy,
        tokenizer: Tokenizer,
        settings: RolloutSettings,
        *,
        min_batch: int | None = None,
        group_filter: GroupFilter | None = None,
        label: str = "",
        track: Sequence[str] | None = (),
        images: ImageReader | None = None,
    ) -> None:
        if vec.autoreset is not Autoreset.SAME_STEP:
            raise ValueError(f"BatchCollector needs a vector with same-step autoreset, not {vec.autoreset.value!r}")
        if min_batch is not None and min_batch < 1:
            raise ValueError(f"min_batch must be None or at least 1, not {min_batch}")
        if group_filter is not None and vec.group_size < 2:
            raise ValueError("a group filter needs groups; build the vector with group_size=2 or more")
        if vec.pending:
            raise ValueError(
                f"{vec!r} has turns under way; recv() them first, or give each collector a vector of its own"
            )
        self._vec = vec
        self._policy = policy
        self._settings = settings
        self._min_batch = min_batch
        self._group_filter = group_filter
        self._template = settings.template(tokenizer, images)
        manager.require(*(track or ()))
        self._session = RolloutSession(vec.env_ids, dataclasses.asdict(settings), label)
        self._reporter = None if track is None else Reporter.of_rollout(self._session.run, track)
        self._batches = 0
        self._openings: dict[int, tuple[str, Info]] = {}
        self._live: dict[int, BaseEpisodeBuilder | MatchBuilder] = {}
        self._arrived: dict[int, Transition] = {}
        self._to_drop: set[tuple[int, int]] = set()
        self._groups: dict[int, list[list[Episode]]] = {}
        self._missing: dict[int, int] = {}
        self._sampled_before: Counter[tuple[int, int]] = Counter()
        self._to_replace: set[int] = set()
        self._round = 0
        self._replaced = [0] * vec.num_envs
        self._ended = [0] * vec.num_envs
        self._batch = Batch()
        vec.on_failure = self._on_failure

    def collect_round(self) -> Batch:
        """Play one episode in every environment, ones already under way included.

        Returns:
            The episodes in the order of the environments, one of each, or one of each agent of a match; what an earlier
            call of another kind, or one that was interrupted, has left over comes with them.

        Raises:
            PolicyError: the policy broke its contract.
            EnvFailure: a failure that is to stop the run; see `FailurePolicy` and `RolloutSession.end`.
            AdvantageError: more groups without signal than the filter's limit.
        """
        self._begin_batch()
        held = self._held()
        waiting = set(range(self._vec.num_envs)) - {episode.slot for episode in [*self._batch.episodes, *held]}
        while waiting:
            waiting -= self._advance(waiting)
            waiting |= self._to_replace
            self._to_replace.clear()
        return self._end_batch()

    def collect_paced(self, pace: RoundBudget) -> Batch:
        """Play the next round to its end; environments that are done with it begin later ones as the pace allows.

        A round is one episode, or one group that the filter keeps, in every environment, so a batch has the same tasks
        whatever the pace. The next call continues with what was begun. A collector that played at a pace has to keep
        one, and the other methods must not be called.

        Args:
            pace: how many rounds may be begun, counted from the first call. It must allow the round of this call, at
                once or later.

        Returns:
            The episodes of the round, in the order of the environments.

        Raises:
            PolicyError, EnvFailure, AdvantageError: as `collect_round`. What the pace raises passes through.
        """
        self._begin_batch()
        while min(played := self._rounds_played()) <= self._round:
            allowed = pace.rounds()
            slots = [slot for slot, rounds in enumerate(played) if slot in self._live or rounds < allowed]
            if slots:
                self._advance(slots)
            else:
                started = time.perf_counter()
                pace.wait(allowed)
                self._batch.paced_seconds += time.perf_counter() - started
        self._round += 1
        return self._end_batch(self._oldest_round)

    def wake(self) -> None:
        """Have a collector that waits for environments in another thread ask its pace again; any thread may call it."""
        self._vec.wake()

    def collect_turns(self, at_least: int) -> Batch:
        """Play until whole episodes with `at_least` turns are in; the rest continue in the next call.

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
            self._advance(range(self._vec.num_envs))
        return self._end_batch()

    def collect_episodes(self, count: int) -> Batch:
        """Play until `count` whole episodes are in; the rest continue in the next call. A match counts once.

        With more environments than `count` this is over-sampling: nobody waits for the slowest. The slowest are not
        lost, though, but come in a later batch, and what ended early stands first in the next one, so that over a run
        every episode that was started is trained on once.

        Args:
            count: number of episodes, a multiple of the vector's `group_size`.

        Returns:
            So many episodes, in the order they ended, group by group. Fewer if a group that lost members does not fit.

        Raises:
            ValueError: `count` is no such number.
            PolicyError, EnvFailure: as `collect_round`.
        """
        if count < 1 or count % self._vec.group_size:
            raise ValueError(f"count must be a multiple of the group size {self._vec.group_size} above 0, not {count}")
        self._begin_batch()
        while self._batch.matches < count:
            self._advance(range(self._vec.num_envs))
        return self._end_batch(lambda episodes: _whole_groups(episodes, count))

    def close(self, error: BaseException | None = None) -> None:
        """End the run and close the environments. Safe to call twice."""
        if self._reporter is not None:
            self._reporter.close()
        self._session.close(error)
        self._vec.close()

    # -- one batch -------------------------------------------------------------------------------------------------

    def _begin_batch(self) -> None:
        self._to_replace.clear()
        # The batch still has what a call collected that raised, for example because the engine was away.
        self._sampled_before = Counter()
        for episode in [*self._batch.episodes, *self._held()]:
            self._sampled_before[_key(episode)] += len(episode.turns)
        for builder in self._live.values():
            self._sampled_before[_key(builder.episode)] = builder.sampled

    def _end_batch(self, split: Callable[[list[Episode]], tuple[list[Episode], list[Episode]]] | None = None) -> Batch:
        batch, self._batch = self._batch, Batch()
        if split is not None:
            batch.episodes, self._batch.episodes = split(batch.episodes)
        batch.in_flight = len(self._live)
        batch.surplus = len(self._batch.episodes) + len(self._held())
        batch.carried_turns = sum(self._sampled_before[key] for key in {*map(_key, batch.episodes)})
        batch.episodes.sort(key=_key)  # the agents of a match keep their order
        self._report(batch)
        return batch

    def _rounds_played(self) -> list[int]:
        """For each environment, its ended episodes without those that other tasks replace."""
        return [ended - replaced for ended, replaced in zip(self._ended, self._replaced, strict=True)]

    def _oldest_round(self, episodes: list[Episode]) -> tuple[list[Episode], list[Episode]]:
        """The oldest group of each place in the vector, and the rest."""
        oldest: dict[int, int] = {}
        for episode in sorted(episodes, key=lambda one: one.number):
            oldest.setdefault(episode.slot // self._vec.group_size, episode.group_id)
        mine = [oldest[episode.slot // self._vec.group_size] == episode.group_id for episode in episodes]
        return [*compress(episodes, mine)], [*compress(episodes, (not one for one in mine))]

    def _report(self, batch: Batch) -> None:
        if self._reporter is None or not self._reporter.has_listeners:
            return
        try:
            self._reporter.report(self._batches + 1, batch_metrics(batch), batch.episodes)
        except KeyboardInterrupt:  # nothing is lost: the next call hands the batch out
            batch.episodes += self._batch.episodes
            self._batch = batch
            raise
        self._batches += 1

    def _advance(self, slots: Iterable[int]) -> set[int]:
        """Let the policy sample for those that are ready, or wait for more; returns the slots whose episode ended."""
        ended = self._take_arrived() | self._open_episodes(slots)
        at_work = self._vec.pending
        playing = {slot: self._live[slot] for slot in slots if slot in self._live and slot not in at_work}
        # An interruption may have come between sampling and sending.
        unsent = {slot: builder.action for slot, builder in playing.items() if builder.action is not None}
        ready = [slot for slot, builder in playing.items() if builder.action is None]
        if unsent:
            self._send(unsent)
        elif ready and (not at_work or (self._min_batch is not None and len(ready) >= self._min_batch)):
            ended |= self._sample_and_send(ready)
        elif at_work:
            wanted = len(at_work) if self._min_batch is None else min(len(at_work), self._min_batch - len(ready))
            ended |= self._receive(wanted)
        return ended

    def _sample_and_send(self, slots: Sequence[int]) -> set[int]:
        """Let the policy sample for these slots; returns those whose episode ended with it."""
        started = time.perf_counter()
        completions = self._policy([self._live[slot].prompt for slot in slots])
        self._batch.policy_seconds += time.perf_counter() - started
        if len(completions) != len(slots):
            raise PolicyError(f"the policy gave {len(completions)} completions for {len(slots)} prompts")
        with uninterrupted():
            acted = {slot: self._live[slot].act(one) for slot, one in zip(slots, completions, strict=True)}
            ended = {slot for slot in slots if self._live[slot].over}
            for slot in sorted(ended):
                self._finish(self._live.pop(slot))
        self._check_filtered()
        if actions := {slot: action for slot, action in acted.items() if action is not None}:
            self._send(actions)
        return ended

    def _send(self, actions: dict[int, str]) -> None:
        started = time.perf_counter()
        self._vec.send(actions)
        self._batch.env_seconds += time.perf_counter() - started

    def _receive(self, at_least: int) -> set[int]:
        started = time.perf_counter()
        try:
            self._arrived.update(self._vec.recv(at_least))
        except EnvFailure:
            self._arrived.update(self._vec.take_completed())
            self._take_arrived()  # recorders want the episode that stopped the run most of all
            raise
        self._batch.env_seconds += time.perf_counter() - started
        return self._take_arrived()

    def _take_arrived(self) -> set[int]:
        ended: set[int] = set()
        for slot in sorted(self._arrived):
            with uninterrupted():
                if self._record(slot, self._arrived.pop(slot)):
                    ended.add(slot)
        self._check_filtered()
        return ended

    def _check_filtered(self) -> None:
        if self._group_filter is not None:
            # At a pace, groups of later batches are played meanwhile.
            episodes = max(self._vec.num_envs, self._batch.matches)
            self._group_filter.check(self._batch.filtered, episodes // self._vec.group_size)

    def _record(self, slot: int, transition: Transition) -> bool:
        builder = self._live.get(slot)
        if builder is None:
            self._openings[slot] = (transition.observation, transition.info)
            return False
        if transition.done and self._vec.resets_itself(slot):
            self._openings[slot] = (transition.observation, transition.info)
        builder.record(transition)
        if builder.over:
            self._finish(self._live.pop(slot))
        return builder.over

    # -- one episode -----------------------------------------------------------------------------------------------

    def _open_episodes(self, slots: Iterable[int]) -> set[int]:
        """Open an episode wherever none is under way; returns the slots where it ended before its first turn."""
        closed = [slot for slot in slots if slot not in self._live]
        at_work = self._vec.pending
        # The first one of a slot, and one after an episode that ended for the context's sake or before its first turn.
        unopened = [slot for slot in closed if slot not in self._openings and slot not in at_work]
        if admitted := self._admitted(unopened):
            started = time.perf_counter()
            self._vec.send_reset(admitted)
            self._batch.env_seconds += time.perf_counter() - started
        with uninterrupted():
            ended = {slot for slot in closed if slot in self._openings and self._open_episode(slot).over}
            over = [self._live.pop(slot) for slot in sorted(ended)]
            for builder in over:
                self._finish(builder)
        self._check_filtered()
        return ended

    def _admitted(self, slots: Iterable[int]) -> list[int]:
        """Those of the slots that may start an episode now. Where an environment has too few places for all, those go
        first that have played the fewest episodes, and the others wait."""
        left = {env_id: self._vec.places_left(env_id) for env_id in {self._vec.env_ids[slot] for slot in slots}}
        admitted: list[int] = []
        for slot in sorted(slots, key=lambda one: (self._ended[one], one)):
            places = left[self._vec.env_ids[slot]]
            if places is not None:
                left[self._vec.env_ids[slot]] = places - 1
            if places is None or places > 0:
                admitted.append(slot)
        return admitted

    def _open_episode(self, slot: int) -> BaseEpisodeBuilder | MatchBuilder:
        observation, info = self._openings.pop(slot)
        episode = self._new_episode(slot, info["episode"], info["seed"], self._vec.task(slot).task_id)
        cutoff = self._settings.match_cutoff
        builder = self._live[slot] = builder_of(episode, self._builder, observation, info, cutoff)
        return builder

    def _builder(self, episode: Episode, observation: str, info: Info) -> EpisodeBuilder:
        return EpisodeBuilder(episode, self._template, self._settings, observation, info)

    def _new_episode(self, slot: int, number: int, seed: int, task_id: int) -> Episode:
        env_id = self._vec.env_ids[slot]
        return Episode(
            env_id=env_id,
            seed=seed,
            slot=slot,
            number=number,
            task_id=task_id,
            turns=[],
            provenance=self._session.origin(env_id),
            run=self._session.run.id,
        )

    def _on_failure(self, failure: EnvFailure) -> ErrorAction:
        episode = self._live[failure.slot].episode if failure.slot in self._live else None
        if episode is None or episode.number != failure.episode:  # its opening failed
            episode = self._new_episode(failure.slot, failure.episode, failure.seed or 0, failure.task_id)
        action = self._session.on_failure(self._vec.failures, episode, failure)
        if action is ErrorAction.DROP:
            self._to_drop.add(_key(episode))
        return action

    def _held(self) -> list[Episode]:
        """Whole episodes that wait for the rest of their groups."""
        return [episode for group in self._groups.values() for match in group for episode in match]

    def _finish(self, builder: BaseEpisodeBuilder | MatchBuilder) -> None:
        episode = builder.episode
        self._ended[episode.slot] += 1
        if not self._vec.resets_itself(episode.slot):  # one that ended for the context's sake holds its place
            self._vec.abandon([episode.slot])
        dropped = builder.dropped or _key(episode) in self._to_drop
        if dropped:
            self._to_drop.discard(_key(episode))
            self._batch.dropped += 1
            self._missing[episode.group_id] = self._missing.get(episode.group_id, 0) + 1
        else:
            self._groups.setdefault(episode.group_id, []).append(builder.episodes)
        self._deliver_if_whole(episode)
        self._session.end(builder.episodes, cut_off=builder.dropped)

    def _deliver_if_whole(self, newest: Episode) -> None:
        group_id, size = newest.group_id, self._vec.group_size
        if len(self._groups.get(group_id, ())) + self._missing.get(group_id, 0) < size:
            return
        episodes = [episode for match in self._groups.pop(group_id, []) for episode in match]
        self._missing.pop(group_id, None)
        if self._has_signal(episodes):
            self._batch.episodes += episodes
        else:
            self._batch.filtered += 1
            self._replace_group(newest.slot // size * size)

    def _has_signal(self, episodes: Sequence[Episode]) -> bool:
        """Whether the group filter keeps the episodes of a task; those of a match if it keeps them for any agent."""
        found = self._group_filter
        agents = {episode.agent for episode in episodes} or {""}
        return found is None or any(
            found.has_signal([one for one in episodes if one.agent == agent]) for agent in agents
        )

    def _replace_group(self, first_slot: int) -> None:
        """Have the environments from this one on play another task."""
        slots = range(first_slot, first_slot + self._vec.group_size)
        self._to_replace.update(slots)
        for slot in slots:
            self._replaced[slot] += 1


def _key(episode: Episode) -> tuple[int, int]:
    return episode.slot, episode.number


def _whole_groups(episodes: list[Episode], count: int) -> tuple[list[Episode], list[Episode]]:
    """The episodes of the first matches, without tearing a group apart, and the rest."""
    taken = end = 0
    for _, group in groupby(episodes, key=lambda episode: episode.group_id):
        members = [*group]
        size = len({*map(_key, members)})
        if taken + size > count:
            break
        taken, end = taken + size, end + len(members)
    return episodes[:end], episodes[end:]
