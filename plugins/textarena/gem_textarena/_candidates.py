"""Moves to try in each game of two players: one of them is allowed, except in positions that have no allowed move.

`game` is always TextArena's object of a match; moves are the content of the brackets. A match tries them on a copy of
the game, so a list may have moves that are not allowed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeAlias

Candidates: TypeAlias = Callable[[Any, random.Random], Sequence[str]]

_AROUND = [step for step in product((-1, 0, 1), repeat=2) if step != (0, 0)]


def _fixed(*moves: str) -> Candidates:
    return lambda game, rng: moves


def _player(game: Any) -> int:
    return game.state.current_player_id


def _squares(board: Sequence[Sequence[Any]], content: Any) -> Iterator[tuple[int, int]]:
    return ((row, column) for row, cells in enumerate(board) for column, cell in enumerate(cells) if cell == content)


def _named(rows: int, row: int, column: int) -> str:
    """A square as in chess, with row 0 at the top."""
    return f"{chr(ord('a') + column)}{rows - row}"


# -- boards ------------------------------------------------------------------------------------------------------------


def _numbered(game: Any, rng: random.Random) -> Sequence[str]:
    board = game.state.game_state["board"]
    return [str(row * len(board) + column) for row, column in _squares(board, "")]


def _marks(game: Any, rng: random.Random) -> Sequence[str]:
    return [f"{mark} {cell}" for cell in _numbered(game, rng) for mark in "XO"]


def _columns(game: Any, rng: random.Random) -> Sequence[str]:
    return [f"col {column}" for column, cell in enumerate(game.state.game_state["board"][0]) if cell == "."]


def _piles(game: Any, rng: random.Random) -> Sequence[str]:
    piles = game.state.game_state["piles"]
    return [f"{pile} {count}" for pile, size in enumerate(piles) for count in range(1, size + 1)]


def _small_boards(game: Any, rng: random.Random) -> Sequence[str]:
    state = game.state.game_state
    boards = range(9) if state["next_micro_board"] is None else [state["next_micro_board"]]
    return [f"{each} {3 * row + column}" for each in boards for row, column in _squares(state["board"][each], " ")]


def _superpositions(game: Any, rng: random.Random) -> Sequence[str]:
    return [f"{one},{other}" for one, other in combinations(_numbered(game, rng), 2)]


def _alquerque(game: Any, rng: random.Random) -> Sequence[str]:
    board, player = game.state.game_state["board"], _player(game)
    steps = [*game.forward_dirs[player], *((2 * down, 2 * right) for down, right in _AROUND)]
    free = {*_squares(board, "")}
    return [
        f"{_named(5, row, column)} {_named(5, row + down, column + right)}"
        for row, column in _squares(board, "RB"[player])
        for down, right in steps
        if (row + down, column + right) in free
    ]


def _pawns(game: Any, rng: random.Random) -> Sequence[str]:
    board, player = game.state.game_state["board"], _player(game)
    files = [chr(ord("a") + column) for column in range(len(board))]
    return [
        f"{files[column]}{row + 1}{files[target]}{row + (2, 0)[player]}"
        for row, column in _squares(board, "WB"[player])
        for target in (column - 1, column, column + 1)
        if target in range(len(board)) and row + (1, -1)[player] in range(len(board))
    ]


def _knights(game: Any, rng: random.Random) -> Sequence[str]:
    return [move.strip("[]") for move in game._legal_moves_for_player(_player(game))]


def _lines(game: Any, rng: random.Random) -> Sequence[str]:
    moves: list[str] = []
    for (row, column), (down, right) in product(_squares(game.state.game_state["board"], "OX"[_player(game)]), _AROUND):
        far = game._count_pieces_on_line(row, column, down, right)
        target, to = row + far * down, column + far * right
        if target in range(8) and to in range(8):
            moves.append(f"{_named(8, row, column)}{_named(8, target, to)}")
    return moves


def _flips(game: Any, rng: random.Random) -> Sequence[str]:
    # Where a player has no move, any action skips the turn.
    return [f"{row}, {column}" for row, column in game._valid_moves("BW"[_player(game)])] or ["0, 0"]


def _shots(game: Any, rng: random.Random) -> Sequence[str]:
    untried = _squares(game.state.game_state["tracking_board"][_player(game)], "~")
    return [f"{chr(ord('A') + row)}{column}" for row, column in untried]


def _pairs(game: Any, rng: random.Random) -> Sequence[str]:
    matched = game.state.game_state["matched_positions"]
    hidden = [cell for cell in product(range(game.grid_size), repeat=2) if cell not in matched]
    (row, column), (other, another) = rng.sample(hidden, 2)
    return [f"{row} {column} {other} {another}"]


# -- cards, dice and money ---------------------------------------------------------------------------------------------


def _hand(game: Any, rng: random.Random) -> Sequence[str]:
    hand = game.state.game_state["players"][_player(game)]["hand"]
    return [f"play {number + 1}" for number in range(len(hand))]


def _bids_of_cards(game: Any, rng: random.Random) -> Sequence[str]:
    return [game._val_to_face(card) for card in game.state.game_state["player_hands"][_player(game)]]


def _bids_of_money(game: Any, rng: random.Random) -> Sequence[str]:
    return [str(card) for card in game.state.game_state["player_money"][_player(game)]]


def _golf(game: Any, rng: random.Random) -> Sequence[str]:
    places = product(range(1, game.num_rows + 1), range(1, game.num_columns + 1))
    return ["draw", "take", "discard", *(f"swap {row} {column}" for row, column in places)]


def _bets(game: Any, rng: random.Random) -> Sequence[str]:
    chips = rng.randint(1, max(1, game.state.game_state["player_chips"][_player(game)]))
    return ["check", "call", "fold", f"bet {chips}", f"raise {chips}"]


def _kuhn(game: Any, rng: random.Random) -> Sequence[str]:
    return [*game.state.game_state["current_legal_action_tree"]]


def _claims(game: Any, rng: random.Random) -> Sequence[str]:
    bid = game.state.game_state["current_bid"]
    quantities, faces = range(bid["quantity"], bid["quantity"] + 3), range(max(1, bid["face_value"]), 7)
    return ["Call", *(f"Bid: {quantity}, {face}" for quantity, face in product(quantities, faces) if quantity)]


def _allocation(game: Any, rng: random.Random) -> Sequence[str]:
    names, units = game.field_names, game.num_total_units
    cuts = [0, *sorted(rng.randint(0, units) for _ in names[1:]), units]
    return [" ".join(f"{name}{end - start}" for name, start, end in zip(names, cuts, cuts[1:], strict=False))]


def _guess(game: Any, rng: random.Random) -> Sequence[str]:
    return [str(rng.randint(int(game.min_guess), int(game.max_guess)))]


def _chopsticks(game: Any, rng: random.Random) -> Sequence[str]:
    fingers = sum(game.state.game_state["hands"][_player(game)])
    attacks = [f"attack {mine} {theirs}" for mine, theirs in product((0, 1), repeat=2)]
    return [*attacks, *(f"split {left} {fingers - left}" for left in range(fingers + 1))]


CANDIDATES: Mapping[str, Candidates] = {
    "Alquerque": _alquerque,
    "Battleship": _shots,
    "Breakthrough": _pawns,
    "Briscola": _hand,
    "Chopsticks": _chopsticks,
    "ColonelBlotto": _allocation,
    "ConnectFour": _columns,
    "Crusade": _knights,
    "GameOfPureStrategy": _bids_of_cards,
    "GermanWhist": _hand,
    "Golf": _golf,
    "HighSociety": _bids_of_money,
    "IndianPoker": _bets,
    "IteratedMatchingPennies": _fixed("heads", "tails"),
    "IteratedRockPaperScissors": _fixed("rock", "paper", "scissors"),
    "IteratedTwoThirdsAverage": _guess,
    "KuhnPoker": _kuhn,
    "LiarsDice": _claims,
    "LinesOfAction": _lines,
    "MemoryGame": _pairs,
    "Nim": _piles,
    "Othello": _flips,
    "PigDice": _fixed("roll", "hold"),
    "QuantumTicTacToe": _superpositions,
    "SimpleTak": _numbered,
    "TicTacToe": _numbered,
    "UltimateTicTacToe": _small_boards,
    "WildTicTacToe": _marks,
}
"""By the part of an id before `-v0`."""

BLOCKING = frozenset({"Breakthrough", "IndianPoker", "QuantumTicTacToe", "UltimateTicTacToe"})
"""Games that may come to a position without an allowed move: no pawn can move, the ante was the last chip, one cell is
free where a move needs two, all boards are full."""
