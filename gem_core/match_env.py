"""A match as an environment of text, for vectors, rollouts and everything else that plays an `Env`.

Agents are asked one after the other, those that act at the same time, too: then nobody sees anything before all have
acted. An opponent with a fixed policy acts inside the environment, from a generator that the episode's seed determines.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, EnvKwargsError, near_matches
from gem_core.match import Match, MatchStep

RANDOM = "random"
"""The opponent that draws among valid actions."""


class MatchEnv(Env):
    """A match whose agents all speak through one environment.

    `info["agent"]` says who acts next. The reward of a step is the reward of the agent that acted; the keys `agent_*`
    have what the other agents got meanwhile (see `gem_core.env`).

    Args:
        match: the match.
        opponents: agents with a fixed policy, `random` or one of `Match.scripts`: `{"player 1": "random"}`. All other
            agents are played through this environment.

    Raises:
        EnvKwargsError: an unknown agent or policy, or no agent is left to play.
    """

    def __init__(self, match: Match, opponents: Mapping[str, str] | None = None) -> None:
        self._match = match
        self._opponents = _checked(match, {} if opponents is None else opponents)
        self._agents = tuple(agent for agent in match.agents if agent not in self._opponents)
        self._opponent_rng = random.Random()
        self._unread: dict[str, list[str]] = {}
        self._spoken: dict[str, str] = {}
        self._left: set[str] = set()
        self._agent = ""

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The agents that are played through this environment."""
        return self._agents

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start a match, and let opponents act until one of `agents` is next.

        Raises:
            EnvError: the match ended before that, or it breaks the contract of `Match`.
        """
        super().reset(seed=seed)
        self._match.rng = self.rng
        self._opponent_rng = random.Random(self.rng.getrandbits(64))
        self._spoken = {}
        self._left = {*self._agents}
        self._unread = {agent: [] for agent in self._agents}
        self._read(self._match.reset())
        before = _Gathered()
        self._play_on(before)
        if before.ends:
            raise EnvError(f"{self!r}: the match ended for {', '.join(before.ends)} before any of its agents had acted")
        return self._shown(self._agent), {"agent": self._agent}

    def step(self, action: str) -> StepResult:
        """Play the action of the agent that `info["agent"]` named last."""
        actor = self._agent
        self._spoken[actor] = action
        new = _Gathered()
        self._play_on(new)
        info: Info = {
            **new.infos.pop(actor, {}),
            "agent_rewards": {agent: reward for agent, reward in new.rewards.items() if agent != actor},
            "agent_infos": new.infos,
            "agent_ends": new.ends,
        }
        over = not self._left
        last = {agent: self._shown(agent) for agent in new.ends}
        if over:
            observation = last.pop(actor)
        else:
            observation, info["agent"] = self._shown(self._agent), self._agent
        info["agent_seen"] = last
        truncated = over and "truncated" in new.ends.values()
        return observation, new.rewards.get(actor, 0.0), over and not truncated, truncated, info

    def sample_random_action(self) -> str:
        """A valid action of the agent that is next."""
        return self._match.random_action(self._agent, self.rng)

    @property
    def match(self) -> Match:
        """The match."""
        return self._match

    def _play_on(self, new: _Gathered) -> None:
        """Play until one of `agents` has to act, or all of them are out of the match."""
        match = self._match
        while self._left:
            for agent in match.acting:
                if agent in self._opponents and agent not in self._spoken:
                    self._spoken[agent] = self._opponent_action(agent)
            waiting = [agent for agent in match.acting if agent not in self._spoken]
            if waiting:
                self._agent = waiting[0]
                return
            actions, self._spoken = self._spoken, {}
            step = match.step(actions)
            self._read(step.observations)
            new.add(step, self._left)
            self._left -= new.ends.keys()

    def _opponent_action(self, agent: str) -> str:
        policy = self._opponents[agent]
        if policy == RANDOM:
            return self._match.random_action(agent, self._opponent_rng)
        return self._match.scripted_action(policy, agent, self._opponent_rng)

    def _read(self, observations: Mapping[str, str]) -> None:
        for agent, text in observations.items():
            if agent in self._left and text:
                self._unread[agent].append(text)

    def _shown(self, agent: str) -> str:
        """What an agent has not seen yet."""
        texts, self._unread[agent] = self._unread[agent], []
        return "\n".join(texts)


@dataclass
class _Gathered:
    """What happened to the agents of an environment since its last step."""

    rewards: dict[str, float] = field(default_factory=dict[str, float])
    infos: dict[str, Info] = field(default_factory=dict[str, Info])
    ends: dict[str, str] = field(default_factory=dict[str, str])
    """`terminated` or `truncated`, for each agent that is out of the match."""

    def add(self, step: MatchStep, agents: set[str]) -> None:
        for agent in sorted(agents):
            if agent in step.rewards:
                self.rewards[agent] = self.rewards.get(agent, 0.0) + float(step.rewards[agent])
            if agent in step.infos:
                self.infos[agent] = {**self.infos.get(agent, {}), **step.infos[agent]}
            if step.ended(agent):
                self.ends[agent] = "truncated" if step.truncated.get(agent) else "terminated"
                self.infos[agent] = {"success": False, **self.infos.get(agent, {})}


def _checked(match: Match, opponents: object) -> dict[str, str]:
    if not isinstance(opponents, Mapping):
        raise EnvKwargsError(
            f"opponents={opponents!r} is no dict. Give a policy for each agent that is not played from outside, for "
            f"example {{{[*match.agents][-1]!r}: {RANDOM!r}}}"
        )
    given = cast("Mapping[object, object]", opponents)
    policies = [RANDOM, *match.scripts]
    for agent, policy in given.items():
        if agent not in match.agents:
            hint = near_matches(str(agent), match.agents)
            raise EnvKwargsError(f"opponents: there is no agent {agent!r}.{hint} Agents: {', '.join(match.agents)}")
        if policy not in policies:
            hint = near_matches(str(policy), policies)
            raise EnvKwargsError(
                f"opponents: {agent} cannot be played by {policy!r}.{hint} Use one of {', '.join(policies)}"
            )
    if len(given) == len(match.agents):
        raise EnvKwargsError(f"opponents={opponents!r} leaves no agent to play. Leave out at least one.")
    return cast("dict[str, str]", dict(given))
