"""Tic-tac-toe."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence

from gem_core.match import Match, MatchStep
from gem_matches._moves import boxed, forfeit, read_moves

_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_FORM = boxed("5")
_EMPTY = " "


class TicTacToe(Match):
    """Three in a row on a board of nine cells; `player 0` has X and begins.

    An action is `\\boxed{cell}`, with a cell from 1 to 9. A win pays 1 and the loser -1, a draw 0. An answer without an
    allowed move ends the match and costs its agent 1. The script `optimal` never loses.
    """

    agents = ("player 0", "player 1")
    scripts = ("optimal",)

    def deal(self) -> Mapping[str, str]:
        """An empty board."""
        self._board = [_EMPTY] * 9
        self._next = 0
        return {agent: self._rules(agent) for agent in self.agents}

    def to_act(self) -> Sequence[str]:
        """The player whose turn it is."""
        return (self.agents[self._next],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """Mark a cell."""
        moves, invalid = read_moves(actions, self._read)
        if invalid:
            return forfeit(self.agents, invalid, 1.0, _FORM)
        agent, other = self.agents[self._next], self.agents[1 - self._next]
        mark, cell = "XO"[self._next], moves[agent]
        self._board[cell] = mark
        told = f"{agent} played {cell + 1}.\n{self._drawn()}"
        if _wins(self._board, mark):
            return _end({agent: f"{told}\nYou win.", other: f"{told}\nYou lose."}, {agent: 1.0, other: -1.0})
        if _EMPTY not in self._board:
            drawn = f"{told}\nA draw."
            return _end({agent: drawn, other: drawn}, {agent: 0.0, other: 0.0})
        self._next = 1 - self._next
        return MatchStep(observations={other: told}, infos={agent: {"success": False}})

    def random_action(self, agent: str, rng: random.Random) -> str:
        """A free cell."""
        return boxed(rng.choice(_free(self._board)) + 1)

    def scripted_action(self, script: str, agent: str, rng: random.Random) -> str:
        """`optimal`: a cell of the highest value under best play, drawn among equal ones."""
        mark = "XO"[self.agents.index(agent)]
        values = {cell: _value_of("".join(self._board), cell, mark) for cell in _free(self._board)}
        return boxed(rng.choice([cell for cell in values if values[cell] == max(values.values())]) + 1)

    def _rules(self, agent: str) -> str:
        mark = "XO"[self.agents.index(agent)]
        return (
            f"You play tic-tac-toe with {mark} as {agent}. X begins. The cells are numbered 1 to 9, row by row. Three "
            f"in a row, a column or a diagonal win. Answer with a free cell, for example {_FORM}.\n{self._drawn()}"
        )

    def _read(self, agent: str, box: str) -> int | None:
        free = {str(cell + 1): cell for cell in _free(self._board)}
        return free.get(box)

    def _drawn(self) -> str:
        cells = [mark if mark != _EMPTY else str(number) for number, mark in enumerate(self._board, 1)]
        return "\n".join(" ".join(cells[row : row + 3]) for row in (0, 3, 6))


def _end(observations: Mapping[str, str], rewards: Mapping[str, float]) -> MatchStep:
    return MatchStep(
        observations=observations,
        rewards=rewards,
        terminated=dict.fromkeys(rewards, True),
        infos={agent: {"success": reward > 0} for agent, reward in rewards.items()},
    )


def _free(board: Sequence[str]) -> list[int]:
    return [cell for cell, mark in enumerate(board) if mark == _EMPTY]


def _wins(board: Sequence[str], mark: str) -> bool:
    return any(all(board[cell] == mark for cell in line) for line in _LINES)


@functools.cache
def _value_of(board: str, cell: int, mark: str) -> int:
    """1, 0 or -1 for the player with `mark` after marking the cell, under best play of both."""
    after = board[:cell] + mark + board[cell + 1 :]
    if _wins(after, mark):
        return 1
    other = "O" if mark == "X" else "X"
    return -max((_value_of(after, one, other) for one in _free(after)), default=0)
