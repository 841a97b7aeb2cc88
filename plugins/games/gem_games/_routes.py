"""Ways through the states of a puzzle: best-first search, and the way that was found."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Step = tuple[str, State]
"""A move, and the state after it."""

WEIGHTS = (1.0, 1.5, 2.0, 4.0)
"""Of the distance that is left, against the moves so far. The first finds a shortest way (A*, Hart et al. 1968), the
others longer ones in less time (weighted A*, Pohl 1970)."""
MAX_REMEMBERED = 20_000
"""States whose move is remembered."""
MAX_STATES = 20_000
"""States that one search looks at."""


class Routes(Generic[State]):
    """The next move from a state. Whole ways are remembered.

    Args:
        steps: the moves of a state.
        left: an estimate of the moves from a state to a solved one; 0 for a solved one only.
    """

    def __init__(self, steps: Callable[[State], Iterable[Step[State]]], left: Callable[[State], float]) -> None:
        self._steps, self._left = steps, left
        self._moves: dict[State, str] = {}

    def move(self, state: State) -> str | None:
        """The first move of the best way that was found; `None` if none was. Several games may ask in turn."""
        if (known := self._moves.get(state)) is not None:
            return known
        found = (self._search(state, weight) for weight in WEIGHTS)
        way = next((way for way in found if way), dict[State, str]())
        self._moves = {**self._moves, **way} if len(self._moves) < MAX_REMEMBERED else way
        return way.get(state)

    def _search(self, start: State, weight: float) -> dict[State, str]:
        """The move of each state on the way; empty if none was found."""
        order = itertools.count()
        came: dict[State, tuple[State, str]] = {}
        cost = {start: 0}
        waiting: list[tuple[float, int, State]] = [(0.0, next(order), start)]
        for _ in range(MAX_STATES):
            if not waiting:
                break
            state = heapq.heappop(waiting)[2]
            if not self._left(state):
                return _way(came, state)
            for move, after in self._steps(state):
                if cost[state] + 1 < cost.get(after, 1 << 30):
                    cost[after] = cost[state] + 1
                    came[after] = (state, move)
                    heapq.heappush(waiting, (cost[after] + weight * self._left(after), next(order), after))
        return {}


def _way(came: dict[State, tuple[State, str]], state: State) -> dict[State, str]:
    moves: dict[State, str] = {}
    while state in came:
        state, move = came[state]
        moves[state] = move
    return moves
