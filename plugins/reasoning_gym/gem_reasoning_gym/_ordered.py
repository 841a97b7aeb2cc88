"""Data sets that reasoning-gym makes in the order of sets of text, in an order that is the same in every process.

The order of such a set depends on `PYTHONHASHSEED` and on Python's version. All that is drawn is as likely as before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias, cast

from reasoning_gym.algebra.polynomial_multiplication import (  # pyright: ignore[reportMissingTypeStubs]
    PolynomialMultiplicationDataset,
)
from reasoning_gym.algorithmic.isomorphic_strings import (  # pyright: ignore[reportMissingTypeStubs]
    IsomorphicStringsDataset,
)
from reasoning_gym.algorithmic.ransom_note import RansomNoteDataset  # pyright: ignore[reportMissingTypeStubs]
from reasoning_gym.algorithmic.word_ladder import WordLadderDataset  # pyright: ignore[reportMissingTypeStubs]
from reasoning_gym.games.knight_swap import (  # pyright: ignore[reportMissingTypeStubs]
    KnightSwapDataset,
    KnightSwapLogic,
)

Move: TypeAlias = tuple[str, str, str]
"""Color, from where, to where."""
_State: TypeAlias = tuple[frozenset[str], frozenset[str], str]
"""Squares of white and of black pieces, and whose turn it is."""


class SortedSet(frozenset[str]):
    """Texts in their own order, and so are those that are left when some are taken away."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def __sub__(self, other: Set[object]) -> SortedSet:
        return SortedSet(super().__sub__(other))


class IsomorphicStrings(IsomorphicStringsDataset):
    """Draws from its letters in their order."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.letters = SortedSet(self.letters)


class RansomNote(RansomNoteDataset):
    """Draws from its letters in their order."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.letters = SortedSet(self.letters)


class PolynomialMultiplication(PolynomialMultiplicationDataset):
    """Draws from monomials in the order of their texts."""

    def __getitem__(self, idx: int) -> dict[str, Any]:
        entry = cast("dict[str, Any]", super().__getitem__(idx))  # pyright: ignore[reportUnknownMemberType]
        entry["metadata"]["variables"].sort()
        return entry

    def _get_monomials(self, rng: Any) -> Any:
        return sorted(super()._get_monomials(rng), key=str)


class WordLadder(WordLadderDataset):
    """The answer is the first of the shortest ladders, in the order of the alphabet."""

    def _get_neighbors(self, word: str, word_set: set[str]) -> Any:
        return sorted(super()._get_neighbors(word, word_set))


class KnightSwap(KnightSwapDataset):
    """The answer is the first of the shortest solutions, in the order of the squares."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.game_logic = _KnightSwapLogic()


class _KnightSwapLogic(KnightSwapLogic):
    @staticmethod
    def solve_swap(
        board: Mapping[str, Sequence[str]], pieces: Mapping[str, str | None], start_turn: str = "w"
    ) -> list[Move] | None:
        """Moves that exchange the colors, as few as possible; `None` where nothing does. White's turn is `w`."""
        white, black = (frozenset(square for square, piece in pieces.items() if piece == color) for color in "wB")
        begin: _State = (white, black, start_turn)
        came_from: dict[_State, tuple[_State, Move] | None] = {begin: None}
        waiting = deque([begin])
        while waiting:
            state = waiting.popleft()
            if state[:2] == (black, white):
                return _moves_to(state, came_from)
            for move, following in _moves_from(state, board):
                if following not in came_from:
                    came_from[following] = state, move
                    waiting.append(following)
        return None


def _moves_from(state: _State, board: Mapping[str, Sequence[str]]) -> Iterator[tuple[Move, _State]]:
    white, black, turn = state
    own = white if turn == "w" else black
    for square in sorted(own):
        for target in board[square]:
            if target in white or target in black:
                continue
            moved = own - {square} | {target}
            yield (turn, square, target), ((moved, black, "B") if turn == "w" else (white, moved, "w"))


def _moves_to(state: _State, came_from: Mapping[_State, tuple[_State, Move] | None]) -> list[Move]:
    moves: list[Move] = []
    while (before := came_from[state]) is not None:
        state, move = before
        moves.append(move)
    return moves[::-1]


ORDERED: Mapping[str, Any] = {
    "isomorphic_strings": IsomorphicStrings,
    "knight_swap": KnightSwap,
    "polynomial_multiplication": PolynomialMultiplication,
    "ransom_note": RansomNote,
    "word_ladder": WordLadder,
}
"""Classes of data sets by name, instead of reasoning-gym's."""
