"""A match as an environment of text, for vectors, rollouts and everything else that plays an `Env`.

Agents are asked one after the other, those that act at the same time, too: then nobody sees anything before all have
acted. An opponent with a fixed policy acts inside the environment, from a generator that the episode's seed determines.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, EnvKwargsError, near_matches
from gem_core.match import Match, MatchStep
from gem_core.partner import Partner, PartnerConversation, PartnerLog, PartnerSetting

RANDOM = "random"
"""The opponent that draws among valid actions."""

FindPartner: TypeAlias = Callable[[PartnerSetting], Partner]
"""Gives the partner of a setting; raises `NotFoundError` or `EnvKwargsError` where there is none."""


class MatchEnv(Env):
    """A match whose agents all speak through one environment.

    `info["agent"]` says who acts next. The reward of a step is the reward of the agent that acted; the keys `agent_*`
    have what the other agents got meanwhile (see `gem_core.env`).

    Args:
        match: the match.
        opponents: agents with a fixed policy: `random`, one of `Match.scripts`, or a partner, for example
            `{"player 1": "model:qwen"}`. All other agents are played through this environment.
        find_partner: gives the partner of a setting. Without it, there are no partners.

    Raises:
        EnvKwargsError: an unknown agent or policy, or no agent is left to play.
        NotFoundError: a partner that does not exist.
    """

    def __init__(
        self,
        match: Match,
        opponents: Mapping[str, PartnerSetting] | None = None,
        find_partner: FindPartner | None = None,
    ) -> None:
        self._match = match
        self._opponents: dict[str, str] = {}
        self._partners: dict[str, Partner] = {}
        for agent, policy in _checked(match, {} if opponents is None else opponents).items():
            if isinstance(policy, str) and policy in (RANDOM, *match.scripts):
                self._opponents[agent] = policy
            else:
                self._partners[agent] = _partner(match, agent, policy, find_partner)
        self._conversations: dict[str, PartnerConversation] = {}
        self._partner_log = PartnerLog()
        others = {*self._opponents, *self._partners}
        self._agents = tuple(agent for agent in match.agents if agent not in others)
        self._opponent_rng = random.Random()
        self._unread: dict[str, list[str]] = {}
        self._spoken: dict[str, str] = {}
        self._left: set[str] = set()
        self._agent = ""

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The agents that are played through this environment."""
        return self._agents

    def reset(self, seed: int | None = None, *, partner_replies: Sequence[str] = (), **options: Any) -> ResetResult:
        """Start a match, and let opponents act until one of `agents` is next.

        Args:
            seed: makes the match reproducible; `None` continues with the current generator.
            partner_replies: answers of partners that a replay repeats; see `gem_core.partner`.

        Raises:
            EnvError: the match ended before that, or it breaks the contract of `Match`.
        """
        super().reset(seed=seed)
        self._match.rng = self.rng
        self._opponent_rng = random.Random(self.rng.getrandbits(64))
        self._spoken = {}
        self._left = {*self._agents}
        self._unread = {agent: [] for agent in (*self._agents, *self._partners)}
        self._partner_log = PartnerLog(partner_replies)
        episode = f"{self.rng.getrandbits(64):016x}" if self._partners else ""
        self._conversations = {
            agent: PartnerConversation(partner, f"{episode} {agent}", self._partner_log)
            for agent, partner in self._partners.items()
        }
        self._read(self._match.reset())
        before = _Gathered()
        self._play_on(before)
        if before.ends:
            raise EnvError(f"{self!r}: the match ended for {', '.join(before.ends)} before any of its agents had acted")
        return self._shown(self._agent), {**self._next(), **self._partner_log.shown()}

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
            **self._partner_log.taken(),
        }
        over = not self._left
        last = {agent: self._shown(agent) for agent in new.ends}
        if over:
            observation = last.pop(actor)
        else:
            observation = self._shown(self._agent)
            info |= self._next()
        info["agent_seen"] = last
        truncated = over and "truncated" in new.ends.values()
        return observation, new.rewards.get(actor, 0.0), over and not truncated, truncated, info

    def sample_random_action(self) -> str:
        """A valid action of the agent that is next."""
        return self._match.random_action(self._agent, self.rng)

    def close(self) -> None:
        """Part from the partners."""
        for partner in self._partners.values():
            partner.close()

    @property
    def match(self) -> Match:
        """The match."""
        return self._match

    def _play_on(self, new: _Gathered) -> None:
        """Play until one of `agents` has to act, or all of them are out of the match."""
        match = self._match
        while self._left:
            for agent in match.acting:
                if agent not in self._agents and agent not in self._spoken:
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

    def _next(self) -> Info:
        return {"agent": self._agent, "agent_forfeits": {one: self._match.forfeit(one) for one in sorted(self._left)}}

    def _opponent_action(self, agent: str) -> str:
        if agent in self._conversations:
            return self._conversations[agent].ask(self._shown(agent))
        policy = self._opponents[agent]
        if policy == RANDOM:
            return self._match.random_action(agent, self._opponent_rng)
        return self._match.scripted_action(policy, agent, self._opponent_rng)

    def _read(self, observations: Mapping[str, str]) -> None:
        for agent, text in observations.items():
            if text and (agent in self._left or agent in self._partners):
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


def _checked(match: Match, opponents: object) -> dict[str, PartnerSetting]:
    if not isinstance(opponents, Mapping):
        raise EnvKwargsError(
            f"opponents={opponents!r} is no dict. Give a policy for each agent that is not played from outside, for "
            f"example {{{[*match.agents][-1]!r}: {RANDOM!r}}}"
        )
    given = cast("Mapping[object, object]", opponents)
    for agent in given:
        if agent not in match.agents:
            hint = near_matches(str(agent), match.agents)
            raise EnvKwargsError(f"opponents: there is no agent {agent!r}.{hint} Agents: {', '.join(match.agents)}")
    if len(given) == len(match.agents):
        raise EnvKwargsError(f"opponents={opponents!r} leaves no agent to play. Leave out at least one.")
    return cast("dict[str, PartnerSetting]", dict(given))


def _partner(match: Match, agent: str, policy: PartnerSetting, find_partner: FindPartner | None) -> Partner:
    """The partner that plays an agent."""
    known = [RANDOM, *match.scripts]
    named = isinstance(policy, Mapping) or (isinstance(cast("object", policy), str) and ":" in policy)
    if not named or find_partner is None:
        hint = near_matches(str(policy), known)
        raise EnvKwargsError(
            f"opponents: {agent} cannot be played by {policy!r}.{hint} Use one of {', '.join(known)}, or a model, for "
            "example 'model:qwen'"
        )
    return find_partner(policy)
