"""A negotiation about items that are worth different things to both sides."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from gem_core.errors import EnvError
from gem_core.match import Match, MatchStep
from gem_matches._moves import boxed, forfeit, read_moves

ITEMS = ("books", "hats", "balls")
_FORM = f"{boxed('2 0 1')} or {boxed('accept')}"
_ACCEPT = "accept"
_OFFER = re.compile(r"(\d{1,2})\s+(\d{1,2})\s+(\d{1,2})")
_TOTAL = 10
"""What all items together are worth to each player."""
_MAX_WORDS = 500
"""Characters of a message that the other player sees."""

Offer = tuple[int, ...]


class Negotiation(Match):
    """Two players divide books, hats and balls. Each knows only what the items are worth to itself.

    A player proposes what it gets itself, in the order books, hats, balls: `\\boxed{2 0 1}`; or it accepts what the
    other one proposed: `\\boxed{accept}`. The other player reads the text of the answer, too, up to 500 characters.
    Everything is worth 10 to each player. After an agreement each gets a tenth of what its share is worth to it; after
    the last turn without one, both get 0. An answer without an allowed move ends the match and costs its agent 1.
    Success means an agreement that is worth at least half. The script `fair` takes what is worth half to it.

    Args:
        max_turns: turns of both players together, after which the match is cut off.

    Raises:
        EnvError: fewer than two turns.
    """

    agents = ("player 0", "player 1")
    scripts = ("fair",)

    def __init__(self, max_turns: int = 8) -> None:
        if max_turns < 2:
            raise EnvError(f"max_turns={max_turns}: an offer and an answer need two turns")
        self.max_turns = max_turns

    def deal(self) -> Mapping[str, str]:
        """Items, and values of each player that sum to 10."""
        while True:
            self._counts: Offer = tuple(self.rng.randint(1, 4) for _ in ITEMS)
            possible = _values_of(self._counts)
            if len(possible) >= 2:
                break
        self._values = dict(zip(self.agents, self.rng.sample(possible, 2), strict=True))
        self._offer: Offer | None = None
        self._turn = 0
        return {agent: self._rules(agent) for agent in self.agents}

    def to_act(self) -> Sequence[str]:
        """The player whose turn it is."""
        return (self.agents[self._turn % 2],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """Propose or accept."""
        moves, invalid = read_moves(actions, self._read)
        if invalid:
            return forfeit(self.agents, invalid, 1.0, _FORM)
        [(agent, move)] = moves.items()
        other = next(one for one in self.agents if one != agent)
        self._turn += 1
        if move == ():
            assert self._offer is not None  # otherwise there was nothing to accept
            mine = tuple(count - theirs for count, theirs in zip(self._counts, self._offer, strict=True))
            return self._end({agent: mine, other: self._offer}, f"{agent} accepts.")
        self._offer = move
        if self._turn == self.max_turns:
            nothing = dict.fromkeys(self.agents, (0, 0, 0))
            return self._end(nothing, "No turns are left, and there is no agreement.", cut_off=True)
        words = actions[agent].strip()[-_MAX_WORDS:].encode("utf-8", "replace").decode()
        told = f"{agent} says: {words}\n{agent} wants {_named(move)}."
        return MatchStep(observations={other: told}, infos={agent: {"success": False}})

    def forfeit(self, agent: str) -> Mapping[str, float]:
        """There is no agreement, and the agent pays what an answer without a move costs."""
        return {one: -1.0 if one == agent else 0.0 for one in self.agents}

    def random_action(self, agent: str, rng: random.Random) -> str:
        """A proposal, or now and then an agreement."""
        if self._offer is not None and rng.random() < 0.3:
            return boxed(_ACCEPT)
        return boxed(" ".join(str(rng.randint(0, count)) for count in self._counts))

    def scripted_action(self, script: str, agent: str, rng: random.Random) -> str:
        """`fair`: accepts half of its value or more, otherwise wants the fewest items that are worth half to it."""
        if self._offer is not None:
            left = tuple(count - theirs for count, theirs in zip(self._counts, self._offer, strict=True))
            if self._worth(agent, left) >= _TOTAL / 2:
                return boxed(_ACCEPT)
        enough = [one for one in _shares(self._counts) if self._worth(agent, one) >= _TOTAL / 2]
        return boxed(" ".join(map(str, min(enough, key=lambda one: (sum(one), self._worth(agent, one))))))

    def _rules(self, agent: str) -> str:
        values = ", ".join(f"{item} {value}" for item, value in zip(ITEMS, self._values[agent], strict=True))
        return (
            f"You are {agent} and divide {_named(self._counts)} with another player. One item is worth to you: "
            f"{values}. The other player's values differ. Answer with what you want for yourself, in this order, or "
            f"with {boxed(_ACCEPT)} to take what the other player's offer leaves you. For example {boxed('1 0 1')}. "
            f"The other player reads what you write. Without an agreement after {self.max_turns} turns, nobody gets "
            "anything."
        )

    def _read(self, agent: str, box: str) -> Offer | None:
        if box == _ACCEPT:
            return () if self._offer is not None else None
        found = _OFFER.fullmatch(box)
        offer = tuple(map(int, found.groups())) if found else None
        allowed = offer is not None and all(one <= count for one, count in zip(offer, self._counts, strict=True))
        return offer if allowed else None

    def _worth(self, agent: str, share: Offer) -> int:
        return sum(count * value for count, value in zip(share, self._values[agent], strict=True))

    def _end(self, shares: Mapping[str, Offer], told: str, *, cut_off: bool = False) -> MatchStep:
        worth = {agent: self._worth(agent, share) for agent, share in shares.items()}
        return MatchStep(
            observations={agent: f"{told} You get items worth {worth[agent]} to you." for agent in self.agents},
            rewards={agent: worth[agent] / _TOTAL for agent in self.agents},
            terminated=dict.fromkeys(self.agents, not cut_off),
            truncated=dict.fromkeys(self.agents, cut_off),
            infos={agent: {"success": worth[agent] >= _TOTAL / 2} for agent in self.agents},
        )


def _named(share: Offer) -> str:
    return ", ".join(f"{count} {item}" for count, item in zip(share, ITEMS, strict=True))


def _shares(counts: Offer) -> list[Offer]:
    first, second, third = counts
    return [(a, b, c) for a in range(first + 1) for b in range(second + 1) for c in range(third + 1)]


def _values_of(counts: Offer) -> list[Offer]:
    """All values of single items that make everything worth `_TOTAL`."""
    most = range(_TOTAL + 1)
    first, second, third = counts
    pairs = [(a, b, _TOTAL - a * first - b * second) for a in most for b in most]
    return [(a, b, rest // third) for a, b, rest in pairs if rest >= 0 and rest % third == 0]
