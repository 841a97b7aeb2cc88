"""The iterated prisoner's dilemma."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gem_core.errors import EnvError
from gem_core.match import Match, MatchStep
from gem_matches._moves import boxed, forfeit, read_moves

COOPERATE, DEFECT = "cooperate", "defect"
_MOVES = (COOPERATE, DEFECT)
_FORM = f"{boxed(COOPERATE)} or {boxed(DEFECT)}"
_PAY = {(COOPERATE, COOPERATE): 3.0, (COOPERATE, DEFECT): 0.0, (DEFECT, COOPERATE): 5.0, (DEFECT, DEFECT): 1.0}


class IteratedDilemma(Match):
    """Two players cooperate or defect at the same time, round after round.

    An action is `\\boxed{cooperate}` or `\\boxed{defect}`. A round pays 3 to both if both cooperate, 1 to both if both
    defect, and otherwise 5 to the one who defects and 0 to the other; all divided by 5 times the number of rounds, so
    that a match pays at most 1. An answer without an allowed move ends the match and costs its agent 1. Success means
    more than both would get by always defecting. Scripts: `tit for tat`, `always cooperate`, `always defect`.

    Args:
        rounds: number of rounds, which the players know.

    Raises:
        EnvError: fewer than one round.
    """

    agents = ("player 0", "player 1")
    scripts = ("tit for tat", "always cooperate", "always defect")

    def __init__(self, rounds: int = 5) -> None:
        if rounds < 1:
            raise EnvError(f"rounds={rounds}: a match needs at least one round")
        self.rounds = rounds

    def deal(self) -> Mapping[str, str]:
        """No rounds played."""
        self._played: list[dict[str, str]] = []
        self._points = dict.fromkeys(self.agents, 0.0)
        return {agent: self._rules(agent) for agent in self.agents}

    def to_act(self) -> Sequence[str]:
        """Both players."""
        return self.agents

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """A round."""
        moves, invalid = read_moves(actions, _read)
        if invalid:
            return forfeit(self.agents, invalid, 1.0, _FORM)
        self._played.append(moves)
        first, second = self.agents
        points = {first: _PAY[moves[first], moves[second]], second: _PAY[moves[second], moves[first]]}
        for agent in self.agents:
            self._points[agent] += points[agent]
        over = len(self._played) == self.rounds
        told = f"Round {len(self._played)} of {self.rounds}: " + ", ".join(f"{one} chose {moves[one]}" for one in moves)
        return MatchStep(
            observations={agent: f"{told}. You get {points[agent]:g}." for agent in self.agents},
            rewards={agent: points[agent] / (5 * self.rounds) for agent in self.agents},
            terminated=dict.fromkeys(self.agents, over),
            infos={agent: {"success": over and self._points[agent] > self.rounds} for agent in self.agents},
        )

    def forfeit(self, agent: str) -> Mapping[str, float]:
        """No further round is played, and the agent pays what an answer without a move costs."""
        return {one: -1.0 if one == agent else 0.0 for one in self.agents}

    def random_action(self, agent: str, rng: random.Random) -> str:
        """Cooperate or defect."""
        return boxed(rng.choice(_MOVES))

    def scripted_action(self, script: str, agent: str, rng: random.Random) -> str:
        """`tit for tat` cooperates first, and then does what the other did last."""
        if script == "tit for tat":
            other = next(one for one in self.agents if one != agent)
            return boxed(self._played[-1][other] if self._played else COOPERATE)
        return boxed(COOPERATE if script == "always cooperate" else DEFECT)

    def _rules(self, agent: str) -> str:
        return (
            f"You are {agent}. In each of {self.rounds} rounds both players choose at the same time. If both "
            "cooperate, each gets 3. If both defect, each gets 1. If only one defects, it gets 5 and the other 0. "
            f"Answer {_FORM}."
        )


def _read(agent: str, box: str) -> str | None:
    return box if box in _MOVES else None
