"""What is particular to each game: its allowed moves, its points, and where its own account of an end is wrong.

`game` is always TextArena's object of an episode; moves are the content of the brackets.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, TypeAlias

Draw: TypeAlias = Callable[[Any, random.Random], str]


def _never(game: Any, move: str) -> bool:
    return False


@dataclass(frozen=True)
class Rules:
    """A game of TextArena, as `gem_textarena.env.TextArena` needs it."""

    draw: Draw
    """A move that is allowed now, or any move of the right form where none is."""
    points: Callable[[Any], float] | None = None
    """What the game pays for the turns so far, where what was reached stays reached; then every turn pays its part."""
    is_guess: Callable[[Any, str], bool] = _never
    """Whether a move that the game calls invalid would be an allowed guess."""
    refuses: Callable[[Any, str], bool] = _never
    """Whether a move that the game takes is none."""
    success: Callable[[Any], bool] | None = None
    """Whether the task was solved at an ordinary end; by default, where the reward is 1."""
    finish: Callable[[Any, str], tuple[float, str]] | None = None
    """Reward and last words of an ordinary end, after the last move; by default those of the game."""
    form: str = ""
    """The form of a move, for a game that does not say it."""


def _one_of(moves: Callable[[Any], Sequence[str]], otherwise: str = "") -> Draw:
    return lambda game, rng: rng.choice(moves(game) or [otherwise])


def _completion(game: Any) -> float:
    return game._get_percentage_completion()


# -- moves -------------------------------------------------------------------------------------------------------------


def _slides(game: Any) -> list[str]:
    rows = game.state.game_state["board"]
    columns = [list(column) for column in zip(*rows, strict=True)]
    lines = {"Left": rows, "Right": [row[::-1] for row in rows]}
    lines |= {"Up": columns, "Down": [column[::-1] for column in columns]}
    return [move for move, each in lines.items() if any(game._compress_and_merge(line)[0] != line for line in each)]


def _sums(game: Any) -> list[str]:
    pairs = permutations(range(len(game.numbers)), 2)
    triples = ((i, j, operation) for (i, j), operation in product(pairs, "+-*/"))
    return [f"{i} {j} {each}" for i, j, each in triples if game._execute_operation(i, j, each) is not None]


def _letter(game: Any, rng: random.Random) -> str:
    row, column = rng.choice(_cells(game.state.game_state["board"], "_"))
    return f"{row} {column} {rng.choice(string.ascii_lowercase)}"


def _assignments(game: Any) -> list[str]:
    return [
        f"{letter} {digit}"
        for letter, digit in product(sorted(game.letters), range(10))
        if game.digit_used.get(digit, letter) == letter and (digit or letter not in game.first_letters)
    ]


def _tiles(game: Any) -> list[str]:
    row, column = game._get_empty_position()
    moves = {"up": row < 3, "down": row > 0, "left": column < 3, "right": column > 0}
    return [move for move, allowed in moves.items() if allowed]


def _steps(game: Any) -> list[str]:
    row, column = game.state.game_state["player_pos"]
    inside = range(game.size)
    return [move for move, (down, right) in game.actions.items() if row + down in inside and column + right in inside]


def _numbers(game: Any) -> list[str]:
    return [str(each) for each in range(game.min_number, game.max_number + 1) if each not in game.guessed_numbers]


def _light(game: Any, rng: random.Random) -> str:
    return f"{rng.randrange(game.size)} {rng.randrange(game.size)}"


def _marks(game: Any) -> list[str]:
    return [
        f"{row} {column} {mark}"
        for grid in game.game_board.values()
        for row, marks in grid.items()
        for column, present in marks.items()
        for mark in "XO"
        if mark != present
    ]


def _code(game: Any, rng: random.Random) -> str:
    made = [entry["guess"] for entry in game.state.game_state["history"]]
    digits = range(1, game.num_numbers + 1)
    draw = rng.choices if game.duplicate_numbers else rng.sample
    while (code := draw(digits, k=game.code_length)) in made:  # the right one is never among them
        pass
    return " ".join(map(str, code))


def _hidden(game: Any) -> list[str]:
    return [f"{row} {column}" for row, column in _cells(game.revealed, False)]


def _jumps(game: Any) -> list[str]:
    board = game.state.game_state["board"]
    moves = game.ALLOWED_MOVES
    return [f"{start} {end}" for start, over, end in moves if board[start] and board[over] and not board[end]]


def _drives(game: Any) -> list[str]:
    cars = game.state.game_state["vehicles"]
    return [
        f"{name}{sign}" for name, car in cars.items() for sign in "+-" if game._can_move(cars, car, forward=sign == "+")
    ]


def _cards(game: Any, rng: random.Random) -> str:
    return ", ".join(str(index + 1) for index in rng.sample(range(len(game.state.game_state["board"])), 3))


def _edge(game: Any, rng: random.Random) -> str:
    kind = rng.choice("hv")
    return f"{kind} {rng.randrange(game.R + (kind == 'h'))} {rng.randrange(game.C + (kind == 'v'))}"


def _pushes(game: Any) -> list[str]:
    return [move for move in game.action_space if not game._would_collide_with_wall(move)]


def _digit(game: Any, rng: random.Random) -> str:
    row, column = rng.choice(_cells(game.state.game_state["board"], 0))
    return f"{row + 1} {column + 1} {rng.randint(1, 9)}"


def _disks(game: Any) -> list[str]:
    towers = game.state.game_state["towers"]
    return [
        f"{source} {target}"
        for source, target in permutations(towers, 2)
        if towers[source] and (not towers[target] or towers[source][-1] < towers[target][-1])
    ]


def _cells(board: Sequence[Sequence[Any]], content: Any) -> list[tuple[int, int]]:
    return [(row, column) for row, cells in enumerate(board) for column, cell in enumerate(cells) if cell == content]


# -- guesses: wrong, but no more against the rules than right ones -----------------------------------------------------


def _guesses_letter(game: Any, move: str) -> bool:
    found = re.fullmatch(r"(\d+)\s(\d+)\s[a-zA-Z]", move)
    return found is not None and _is_at(game.state.game_state["board"], int(found[1]), int(found[2]), "_")


def _guesses_digit(game: Any, move: str) -> bool:
    found = re.fullmatch(r"(\d+)\s(\d+)\s[1-9]", move)
    return found is not None and _is_at(game.state.game_state["board"], int(found[1]) - 1, int(found[2]) - 1, 0)


def _guesses_cell(game: Any, move: str) -> bool:
    found = re.fullmatch(r"(\d+)\s(\d+)", move)
    return found is not None and _is_at(game.revealed, int(found[1]), int(found[2]), False)


def _is_at(board: Sequence[Sequence[Any]], row: int, column: int, content: Any) -> bool:
    return 0 <= row < len(board) and 0 <= column < len(board[row]) and board[row][column] == content


# -- points and ends ---------------------------------------------------------------------------------------------------


def _won(game: Any) -> float:
    return game.state.game_state["results_summary"]["win"] / game.num_hands


def _beats_dealer(game: Any) -> bool:
    results = game.state.game_state["results_summary"]
    return results["win"] > results["lose"]


def _button(game: Any, move: str) -> tuple[float, str]:
    # TextArena compares the button with the table of all of them, and then pays the regret: nothing for the best one.
    chances = game.state.game_state["ground_truth"]
    best = max(chances, key=chances.__getitem__)
    return (1.0, f"{move} was the best button.") if move == best else (0.0, f"The best button was {best}.")


def _score(game: Any) -> float:
    return game.state.game_state["score"]


def _only_sets(game: Any) -> bool:
    return game.state.game_state["score"] == game.state.game_state["num_turns"]


def _repeats_card(game: Any, move: str) -> bool:
    # TextArena takes three times the same card for a set.
    cards = [card.strip() for card in move.split(",")]
    return len({int(card) for card in cards if card.isdecimal()}) < len(cards)


RULES: Mapping[str, Rules] = {
    "2048": Rules(_one_of(_slides), points=_completion),
    "Bandit": Rules(
        _one_of(lambda game: game.buttons), finish=_button, form="Answer with a button in brackets, for example [red]."
    ),
    "Blackjack": Rules(_one_of(lambda game: ("Hit", "Stand")), points=_won, success=_beats_dealer),
    "Countdown": Rules(_one_of(_sums)),
    "Crosswords": Rules(_letter, points=_completion, is_guess=_guesses_letter),
    "Cryptarithm": Rules(_one_of(_assignments)),
    "FifteenPuzzle": Rules(_one_of(_tiles)),
    "FrozenLake": Rules(_one_of(_steps)),
    "GuessTheNumber": Rules(_one_of(_numbers)),
    "LightsOut": Rules(_light),
    "LogicPuzzle": Rules(_one_of(_marks)),
    "Mastermind": Rules(_code),
    "Minesweeper": Rules(_one_of(_hidden), points=_completion, is_guess=_guesses_cell),
    "PegJump": Rules(_one_of(_jumps), points=_completion),
    "RushHour": Rules(_one_of(_drives, "X+")),
    "Secretary": Rules(_one_of(lambda game: ("accept", "continue"))),
    "Set": Rules(_cards, points=_score, success=_only_sets, refuses=_repeats_card),
    "Slitherlink": Rules(_edge),
    "Sokoban": Rules(_one_of(_pushes, "up")),
    "Sudoku": Rules(_digit, points=_completion, is_guess=_guesses_digit),
    "ThreeCardMonte": Rules(lambda game, rng: str(rng.randrange(game.num_cups))),
    "TowerOfHanoi": Rules(_one_of(_disks)),
}
"""By the part of an id before `-v0`."""
