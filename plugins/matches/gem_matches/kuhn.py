"""Kuhn poker (H. W. Kuhn, A simplified two-person poker, 1950), and the exact exploitability of a policy for it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import permutations, product

from gem_core.errors import EnvError
from gem_core.match import Match, MatchStep
from gem_matches._moves import boxed, forfeit, read_moves

CARDS = ("J", "Q", "K")
"""From the lowest to the highest."""
PASS, BET = "pass", "bet"
ACTIONS = (PASS, BET)
_CODE = {PASS: "p", BET: "b"}
_ENDS = ("pp", "pbp", "pbb", "bp", "bb")

Policy = Mapping[tuple[str, str], float]
"""The probability of a bet, by card and history: `("K", "pb")` is a king after a pass and a bet."""

INFORMATION_SETS = tuple((card, history) for history in ("", "p", "b", "pb") for card in CARDS)
"""What a policy can know when it acts; with the histories `""` and `"pb"` it is `player 0`."""


class KuhnPoker(Match):
    """Poker with three cards and one bet; `player 0` begins.

    Both pay 1 and get one of the cards J, Q, K, unseen by the other. They pass or bet 1 in turns; after a bet, a bet
    calls it and a pass gives up. The higher card takes the pot. An action is `\\boxed{pass}` or `\\boxed{bet}`. The
    rewards are the chips won: 1 or 2, and minus that for the other. An answer without an allowed move ends the match
    and costs its agent 2.
    """

    agents = ("player 0", "player 1")

    def deal(self) -> Mapping[str, str]:
        """A card for each player."""
        self._cards = dict(zip(self.agents, self.rng.sample(CARDS, 2), strict=True))
        self._history = ""
        return {agent: self._rules(agent) for agent in self.agents}

    def to_act(self) -> Sequence[str]:
        """The player whose turn it is."""
        return (self.agents[len(self._history) % 2],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """Pass or bet."""
        moves, invalid = read_moves(actions, _read)
        if invalid:
            return forfeit(self.agents, invalid, 2.0, f"{boxed(PASS)} or {boxed(BET)}")
        [(agent, move)] = moves.items()
        self._history += _CODE[move]
        other = next(one for one in self.agents if one != agent)
        told = f"{agent}: {move}."
        if self._history in _ENDS:
            return self._end(told)
        return MatchStep(observations={other: told}, infos={agent: {"success": False}})

    def forfeit(self, agent: str) -> Mapping[str, float]:
        """The highest stake goes to the other player."""
        return {one: -2.0 if one == agent else 2.0 for one in self.agents}

    def random_action(self, agent: str, rng: random.Random) -> str:
        """Pass or bet."""
        return boxed(rng.choice(ACTIONS))

    def _rules(self, agent: str) -> str:
        return (
            f"You are {agent} in Kuhn poker. The cards are J, Q and K, and yours is {self._cards[agent]}. Each player "
            f"has put 1 chip into the pot. player 0 begins. Answer {boxed(PASS)} or {boxed(BET)}. A bet puts 1 more "
            "chip in; after a bet, bet again to call it, or pass to give up. The higher card wins the pot."
        )

    def _end(self, told: str) -> MatchStep:
        first, second = self.agents
        won = payoff(self._cards[first], self._cards[second], self._history)
        rewards = {first: won, second: -won}
        shown = "" if self._history.endswith("bp") else f" The cards were {' and '.join(self._cards.values())}."
        return MatchStep(
            observations={agent: f"{told}{shown} You get {rewards[agent]:+g}." for agent in self.agents},
            rewards=rewards,
            terminated=dict.fromkeys(self.agents, True),
            infos={agent: {"success": rewards[agent] > 0} for agent in self.agents},
        )


def payoff(first: str, second: str, history: str) -> float:
    """The chips that `player 0` wins.

    Args:
        first, second: the cards of both.
        history: a whole match, such as `pbb`.
    """
    if history.endswith("bp"):  # somebody gave up: the one who bet wins the other's chip
        return 1.0 if len(history) % 2 == 0 else -1.0
    stake = 2.0 if history.endswith("bb") else 1.0
    return stake if CARDS.index(first) > CARDS.index(second) else -stake


def exploitability(policy: Policy) -> float:
    """How much a best response wins per match against a policy, on average over both seats; 0 for an equilibrium.

    Exact: each seat's best response is the best of all 64 deterministic policies of that seat.

    Args:
        policy: the probability of a bet in each of `INFORMATION_SETS`.

    Raises:
        EnvError: an information set is missing, or a number is no probability.
    """
    for known in INFORMATION_SETS:
        if not 0 <= policy.get(known, -1.0) <= 1:
            raise EnvError(f"the policy has {policy.get(known)!r} for {known}; give a probability of a bet for each")
    best_first = max(value(reply, policy) for reply in _deterministic(("", "pb")))
    best_second = max(-value(policy, reply) for reply in _deterministic(("p", "b")))
    return (best_first + best_second) / 2


def value(first: Policy, second: Policy) -> float:
    """The chips that `player 0` wins per match on average, over all deals.

    Args:
        first, second: the policies of both players.
    """
    deals = [*permutations(CARDS, 2)]
    return sum(_value(first, second, deal, "") for deal in deals) / len(deals)


def _value(first: Policy, second: Policy, cards: tuple[str, str], history: str) -> float:
    if history in _ENDS:
        return payoff(*cards, history)
    seat = len(history) % 2
    bet = (first, second)[seat][cards[seat], history]
    return bet * _value(first, second, cards, history + "b") + (1 - bet) * _value(first, second, cards, history + "p")


def _deterministic(histories: Sequence[str]) -> list[Policy]:
    known = [one for one in INFORMATION_SETS if one[1] in histories]
    return [dict(zip(known, bets, strict=True)) for bets in product((0.0, 1.0), repeat=len(known))]


def _read(agent: str, box: str) -> str | None:
    return box if box in ACTIONS else None
