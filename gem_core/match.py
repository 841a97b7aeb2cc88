"""The contract of matches: tasks that several named agents play with each other.

Authors derive from `Match`. A match is played in turns: one agent acts, or several act at the same time and see nothing
of each other until all have acted. `gem_core.make` gives a match to the rest of the project as an `Env` (`MatchEnv`).
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from gem_core.env import Info
from gem_core.errors import AgentError, EnvError, ResetNeededError
from gem_core.responses import speech_of

_NOBODY: Mapping[str, Any] = MappingProxyType({})


class MatchStep(NamedTuple):
    """What a turn of a match changed, by agent. An agent that a dict leaves out saw nothing, got 0, or stays."""

    observations: Mapping[str, str] = _NOBODY
    """What each agent sees. An agent that does not act next sees it when it acts, together with what comes later."""
    rewards: Mapping[str, float] = _NOBODY
    """Since the step before."""
    terminated: Mapping[str, bool] = _NOBODY
    """Whether the task ended for an agent. The match is over once it has ended for all."""
    truncated: Mapping[str, bool] = _NOBODY
    """Whether a limit from outside the task ended it for an agent."""
    infos: Mapping[str, Info] = _NOBODY
    """The info of each agent, with keys as in `gem_core.env`, such as `success` at the end and `invalid_action`."""

    def ended(self, agent: str) -> bool:
        """Whether the match ended for an agent."""
        return bool(self.terminated.get(agent) or self.truncated.get(agent))


class Match(ABC):
    """A task for several named agents.

    `reset` and `step` are the same for all matches and check the rules of this contract. A match implements `agents`,
    `deal`, `to_act`, `play` and `random_action`. It draws only from `self.rng`, so that a seed and the actions of all
    agents determine it.

    Example:
        >>> from gem_core import Match, MatchStep
        >>> class OddsAndEvens(Match):
        ...     agents = ("odd", "even")
        ...     def deal(self):
        ...         return {agent: f"You are {agent}. Show 1 or 2." for agent in self.agents}
        ...     def to_act(self):
        ...         return self.agents
        ...     def play(self, actions):
        ...         total = sum(actions[agent].strip() == "2" for agent in self.agents)
        ...         pay = 1.0 if total == 1 else -1.0
        ...         over = {agent: True for agent in self.agents}
        ...         infos = {"odd": {"success": pay > 0}, "even": {"success": pay < 0}}
        ...         return MatchStep(rewards={"odd": pay, "even": -pay}, terminated=over, infos=infos)
        ...     def random_action(self, agent, rng):
        ...         return rng.choice(["1", "2"])
        >>> match = OddsAndEvens()
        >>> match.reset(seed=0)["odd"]
        'You are odd. Show 1 or 2.'
        >>> match.step({"odd": "1", "even": "2"}).rewards
        {'odd': 1.0, 'even': -1.0}
    """

    agents: Sequence[str] = ()
    """The names of all agents, the same in every episode."""
    scripts: ClassVar[Sequence[str]] = ()
    """Names of fixed policies that `scripted_action` knows, besides `random`."""

    _rng: random.Random | None = None
    _left: tuple[str, ...] | None = None
    """The agents that are still in the match; `None` before the first reset."""

    @abstractmethod
    def deal(self) -> Mapping[str, str]:
        """Draw a new match from `self.rng`; returns what each agent sees first."""

    @abstractmethod
    def to_act(self) -> Sequence[str]:
        """The agents that act now: one, or several at the same time. Not called once the match is over."""

    @abstractmethod
    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """Play a turn. Any text is an action: an invalid one may cost reward, but never raises.

        Args:
            actions: the text of each agent that `to_act` named, in that order.
        """

    @abstractmethod
    def random_action(self, agent: str, rng: random.Random) -> str:
        """A valid action of an agent that acts now, drawn from `rng`."""

    def scripted_action(self, script: str, agent: str, rng: random.Random) -> str:
        """The action of a fixed policy for an agent that acts now.

        Args:
            script: a name from `scripts`.
            agent: who acts.
            rng: for policies that draw.
        """
        raise NotImplementedError(f"{type(self).__name__} has no script {script!r}")

    def forfeit(self, agent: str) -> Mapping[str, float]:
        """What each agent gets if this one, which is still in the match, cannot go on; changes nothing.

        By default the last place: -1 for the agent, while the others that are still in share 1.
        """
        left = self._left or ()
        return {one: -1.0 if one == agent else 1 / (len(left) - 1) for one in left}

    @property
    def rng(self) -> random.Random:
        """The random generator of this match, seeded by `reset(seed=...)`."""
        if self._rng is None:
            self._rng = random.Random()
        return self._rng

    @rng.setter
    def rng(self, generator: random.Random) -> None:
        self._rng = generator

    @property
    def over(self) -> bool:
        """Whether no match is under way."""
        return not self._left

    @property
    def acting(self) -> tuple[str, ...]:
        """The agents whose actions the next `step` needs; none if the match is over.

        Raises:
            EnvError: `to_act` named nobody, somebody twice, or somebody who is not in the match.
        """
        if not self._left:
            return ()
        acting = (*self.to_act(),)
        if not acting or len({*acting}) < len(acting) or not {*self._left} >= {*acting}:
            raise EnvError(
                f"{self!r}: to_act() gave {acting!r}, but {', '.join(self._left)} are in the match. Name at least one "
                "of them, and each once."
            )
        return acting

    def reset(self, seed: int | None = None) -> dict[str, str]:
        """Start a match.

        Args:
            seed: makes the match reproducible; `None` continues with the current generator.

        Returns:
            What each agent sees first.

        Raises:
            EnvError: the match breaks this contract.
        """
        if len({*self.agents}) < len(self.agents) or not self.agents or not all(self.agents):
            raise EnvError(f"{self!r}: agents are {self.agents!r}. Give each a name of its own.")
        if seed is not None:
            self.rng.seed(seed)
        self._left = None
        observations = dict(self.deal())
        self._check_names("deal()", observations, self.agents)
        self._left = (*self.agents,)
        return observations

    def step(self, actions: Mapping[str, str]) -> MatchStep:
        """Play a turn.

        Args:
            actions: the text of each agent in `acting`, and of nobody else. What it only thought is left out.

        Raises:
            ResetNeededError: no match is under way.
            AgentError: an agent acted whose turn it is not, or one whose turn it is did not.
            EnvError: the match breaks this contract.
        """
        if not self._left:
            raise ResetNeededError(f"{self!r} was stepped without a match under way. Call reset() first.")
        acting = self.acting
        if {*actions} != {*acting}:
            raise AgentError(
                f"{self!r}: {', '.join(actions) or 'nobody'} acted, but it is the turn of {', '.join(acting)}. Give an "
                "action for each of them and for nobody else."
            )
        step = self.play({agent: speech_of(actions[agent]) for agent in acting})
        for name, column in step._asdict().items():
            self._check_names(f"{name} of play()", column, self._left)
        for agent, reward in step.rewards.items():
            if not math.isfinite(reward):
                raise EnvError(f"{self!r}: play() gave {agent} the reward {reward}, which is not finite")
        self._left = tuple(agent for agent in self._left if not step.ended(agent))
        return step

    def _check_names(self, what: str, column: Iterable[str], known: Sequence[str]) -> None:
        if unknown := [agent for agent in column if agent not in known]:
            raise EnvError(f"{self!r}: {what} names {unknown[0]!r}, but {', '.join(known)} are in the match")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
