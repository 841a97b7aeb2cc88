"""A match in the making: one conversation and one episode for each of its agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from gem_core.env import Info
from gem_core.episode import Episode, StopReason
from gem_core.vector import Transition
from gem_train.rollout._builder import BaseEpisodeBuilder, stop_reason
from gem_train.rollout._settings import Cutoff

Build: TypeAlias = Callable[[Episode, str, Info], BaseEpisodeBuilder]
"""Makes the builder of an episode that starts with this observation."""

_KEYS = frozenset({"agent", "agent_rewards", "agent_infos", "agent_ends", "agent_forfeits", "agent_seen"})
_FOR_PROMPT = ("prefix", "suffix")


class MatchBuilder:
    """Shows each agent only its own observations, and gives it the rewards that follow its own actions.

    It has what drivers use of a `BaseEpisodeBuilder`; `prompt` is for the agent that is next. A reward counts for the
    last turn of its agent. What an agent gets before its first turn counts for that turn.

    A match that a limit cuts off ends for all, and whoever caused that forfeits: the agent whose context is full, the
    agent whose action took longer than a step may, and every agent that is still in when the turns are used up. An
    agent that has not acted yet caused nothing.

    Args:
        opening: what is known at the start: environment, seed, slot, task, provenance.
        build: makes the builder of one agent, once the agent is asked for the first time.
        observation, info: what `reset` gave.
        cutoff: how to handle a match that a limit cuts off.
    """

    def __init__(
        self, opening: Episode, build: Build, observation: str, info: Info, cutoff: Cutoff = "forfeit"
    ) -> None:
        self._opening = msgspec.structs.replace(opening, data_index=info.get("data_index"))
        self._cutoff = cutoff
        self._forfeits: dict[str, dict[str, float]] = info.get("agent_forfeits", {})
        self.dropped = False
        """The match is left out."""
        self._build = build
        self._builders: dict[str, BaseEpisodeBuilder] = {}
        self._owed: dict[str, float] = {}
        self._agent = str(info["agent"])
        self.over = False
        self._ask(observation, _own(info))

    @property
    def episode(self) -> Episode:
        """The episode of the agent that is next, or that acted last."""
        return self._builders[self._agent].episode

    @property
    def episodes(self) -> list[Episode]:
        """The episodes of all agents that were asked, in the order in which they were first asked."""
        return [builder.episode for builder in self._builders.values()]

    @property
    def sampled(self) -> int:
        """Turns that the policy has sampled, for all agents."""
        return sum(builder.sampled for builder in self._builders.values())

    @property
    def prompt(self) -> Any:
        """What the policy is asked next."""
        return self._builders[self._agent].prompt

    @property
    def action(self) -> str | None:
        """What the environment was told and has not answered; `None` where the policy is next."""
        return self._builders[self._agent].action

    def act(self, completion: Any) -> str | None:
        """Take the policy's answer; see `BaseEpisodeBuilder.act`."""
        action = self._builders[self._agent].act(completion)
        if self._builders[self._agent].over:
            self._end_all(self.episode.stop_reason)
        return action

    def record(self, transition: Transition) -> None:
        """Take the environment's answer to that action; `over` tells whether the match ended with it."""
        info, observation = transition.info, transition.observation
        if transition.done:
            info = info.get("final_info", info)
            observation = transition.info.get("final_observation", observation)
        own = _own(info)
        actor = self._agent
        self._builders[actor].close_turn(transition.reward + self._owed.pop(actor, 0.0), own)
        for agent, reward in info.get("agent_rewards", {}).items():
            self._pay(agent, reward)
        for agent, more in info.get("agent_infos", {}).items():
            self._tell(agent, more)
        infos: dict[str, Info] = {**info.get("agent_infos", {}), actor: own}
        seen: dict[str, str] = info.get("agent_seen", {})
        ends = {agent: StopReason(end) for agent, end in info.get("agent_ends", {}).items()}
        if transition.done:
            reason = stop_reason(transition, info)
            failed = reason is StopReason.ENV_ERROR
            ends = {agent: reason if failed else ends.get(agent, reason) for agent in self._builders}
            seen = {**seen, actor: observation}
            infos = dict.fromkeys(self._builders, own) if failed else infos
            if "timed_out" in info:
                self._forfeit([actor])
            elif not failed and "agent_forfeits" in info:  # the match itself would have gone on
                self._forfeits = info["agent_forfeits"]
                infos = {**infos, **self._forfeit([*self._forfeits])}
        for agent, reason in ends.items():
            self._end(agent, reason, seen.get(agent, ""), infos.get(agent, {}))
        self.over = transition.done
        if not self.over:
            self._forfeits = info.get("agent_forfeits", {})
            self._agent = str(info.get("agent", actor))
            shown = own if self._agent == actor else {key: own[key] for key in _FOR_PROMPT if key in own}
            self._ask(observation, shown)

    def _ask(self, observation: str, info: Info) -> None:
        builder = self._builders.get(self._agent)
        if builder is None:
            episode = msgspec.structs.replace(self._opening, agent=self._agent, turns=[], sequences=[])
            builder = self._builders[self._agent] = self._build(episode, observation, info)
        else:
            builder.observe(observation, info)
        if builder.over:
            self._end_all(builder.episode.stop_reason)

    def _pay(self, agent: str, reward: float) -> None:
        turns = self._builders[agent].episode.turns if agent in self._builders else []
        if turns:
            turns[-1].reward += reward
        else:
            self._owed[agent] = self._owed.get(agent, 0.0) + reward

    def _tell(self, agent: str, info: Info) -> None:
        if agent in self._builders and (turns := self._builders[agent].episode.turns):
            turns[-1].info = {**turns[-1].info, **info}

    def _end(self, agent: str, reason: StopReason, observation: str, info: Info) -> None:
        builder = self._builders.get(agent)
        if builder is not None and not builder.over:
            builder.end(reason, observation, info)

    def _end_all(self, reason: StopReason) -> None:
        self.over = True
        infos = self._forfeit([self._agent]) if reason is StopReason.CONTEXT_FULL else {}
        for agent in self._builders:
            self._end(agent, reason, "", infos.get(agent, {}))

    def _forfeit(self, agents: Sequence[str]) -> dict[str, Info]:
        """Pay for these agents' forfeit, or leave the match out; returns what the infos of all get in addition."""
        causes = [agent for agent in agents if agent in self._builders and self._builders[agent].episode.turns]
        self.dropped = bool(causes) and self._cutoff == "drop"
        if self.dropped or not causes:
            return {}
        rewards = self._forfeits.get(causes[0], {})
        if len(causes) > 1:
            rewards = {agent: self._forfeits[agent].get(agent, 0.0) for agent in causes if agent in self._forfeits}
        for agent, reward in rewards.items():
            self._pay(agent, reward)
        return {agent: {"success": reward > 0} for agent, reward in rewards.items()}


def builder_of(
    episode: Episode, build: Build, observation: str, info: Info, cutoff: Cutoff = "forfeit"
) -> BaseEpisodeBuilder | MatchBuilder:
    """The builder of an episode, or of a match if the environment says who is next.

    Args:
        episode: what is known at the start.
        build: makes the builder of one conversation.
        observation, info: what `reset` gave.
        cutoff: how to handle a match that a limit cuts off.
    """
    if "agent" in info:
        return MatchBuilder(episode, build, observation, info, cutoff)
    return build(episode, observation, info)


def _own(info: Info) -> Info:
    """An info without what it says about other agents."""
    return {key: value for key, value in info.items() if key not in _KEYS}
