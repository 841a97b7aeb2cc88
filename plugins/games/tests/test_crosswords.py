"""Crosswords, played: the grid, letters, rewards and endings."""

from __future__ import annotations

from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.crosswords import Crosswords, clues_of

SEEDS = range(40)
EASY = {"hardcore": False, "max_turns": 30, "num_words": 3}
HARD = {"hardcore": True, "max_turns": 40, "num_words": 3}
DRAWN = {"hardcore": None, "max_turns": None, "num_words": None}


def start(*rows: str, max_turns: int = 10) -> Crosswords:
    """A game with this solution; a dot has no letter."""
    game = Crosswords(max_turns=max_turns)
    game.reset(seed=0)
    game.show(len(rows), ["" if cell == "." else cell for row in rows for cell in row])
    return game


def small(max_turns: int = 10) -> Crosswords:
    """AT across and ATE down: 4 cells."""
    return start("AT.", "T..", "E..", max_turns=max_turns)


def put(game: Crosswords, *moves: str) -> StepResult:
    """The answer to the last of these."""
    return [game.step(f"Thus \\boxed{{{move}}}.") for move in moves][-1]


def grid(board: str, size: int) -> list[list[str]]:
    """The cells as a player sees them."""
    numbers, *rows = board.splitlines()[: size + 1]
    assert numbers.split() == [str(number) for number in range(size)]
    cells = [row.split() for row in rows]
    assert [row[0] for row in cells] == [str(number) for number in range(size)]
    return [row[1:] for row in cells]


# -- letters -----------------------------------------------------------------------------------------------------------


def test_each_right_letter_pays_its_share_and_the_last_one_wins() -> None:
    game = small()
    answers = [put(game, move) for move in ("0 0 A", "0 1 t", "2 0 E", "1 0 T")]
    assert [answer[1:4] for answer in answers] == [(0.25, False, False)] * 3 + [(0.25, True, False)]
    assert [answer[4]["success"] for answer in answers] == [False, False, False, True]
    assert grid(answers[1][4]["suffix"], 3) == [["A", "T", "."], ["_", ".", "."], ["_", ".", "."]]


def test_a_wrong_letter_pays_nothing_and_is_not_filled_in() -> None:
    answer = put(small(), "0 0 B")
    assert answer[1:4] == (0.0, False, False)
    assert "invalid_action" not in answer[4]
    assert grid(answer[4]["suffix"], 3)[0][0] == "_"


@pytest.mark.parametrize("move", ["3 0 A", "0 3 A", "99999 99999 A", "1 1 A", "0 0 A", "0 0 B"])
def test_outside_without_letter_or_filled_costs_the_turn_and_nothing_else(move: str) -> None:
    answer = put(small(), "0 0 A", move)
    assert answer[1:4] == (0.0, False, False)
    assert answer[4]["invalid_action"] is True


def test_the_last_turn_ends_the_game_and_pays_its_letter() -> None:
    answer = put(small(max_turns=2), "0 0 A", "1 0 T")
    assert answer[1:4] == (0.25, True, True)
    assert answer[4]["success"] is False


def test_the_last_letter_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    answer = put(small(max_turns=4), "0 0 A", "0 1 T", "1 0 T", "2 0 E")
    assert answer[1:4] == (0.25, True, False)
    assert answer[4]["success"] is True


@pytest.mark.parametrize(
    "move", ["", "0 0", "0 0 AB", "0 0 1", "[0 0 A]", " 0 0 A", "0 0 A ", "0,0,A", "0 0 \u00c4", "-1 0 A", "A 0 0"]
)
def test_without_row_column_and_letter_in_a_box_the_episode_ends(move: str) -> None:
    for turns in (1, 5):
        *_, reward, terminated, truncated, info = put(small(max_turns=turns), move)
        assert (reward, terminated, truncated) == (-0.1, True, turns == 1)
        assert info["invalid_action"] is True


def test_a_number_with_more_digits_than_python_reads_is_no_row() -> None:
    assert put(small(), "9" * 5000 + " 0 A")[1:3] == (-0.1, True)


def test_the_last_box_of_the_form_counts_and_any_white_space_separates() -> None:
    assert small().step("\\boxed{0 0 A} \\boxed{0 0 B}")[1] == 0.0
    assert small().step("\\boxed{0 0 B} \\boxed{00\t0\n a} \\boxed{none}")[1] == 0.25


# -- grids and clues ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [EASY, HARD, DRAWN])
def test_each_word_stands_on_the_grid_with_its_clue(kwargs: dict[str, Any]) -> None:
    game = Crosswords(**kwargs)
    for seed in SEEDS:
        board = game.reset(seed=seed)[1]["suffix"]
        cells = grid(board, game.size)
        assert sum(row.count("_") for row in cells) == game.cells
        assert {cell for row in cells for cell in row} <= {"_", "."}
        words = {clue.text: clue.word for clue in clues_of(hardcore=game.hardcore)}
        clues = board.splitlines()[game.size + 1 :]
        assert len(clues) == 3
        for line in clues:
            place, clue = line.split(": ", 1)
            direction, length = place.split(", ")
            word = words[clue]
            assert length == f"{len(word)} letters"
            solution = ["".join(game.solution[row :: game.size]) for row in range(game.size)]
            if direction == "across":
                solution = ["".join(game.solution[row * game.size :][: game.size]) for row in range(game.size)]
            assert any(word in line for line in solution)


@pytest.mark.parametrize("kwargs", [EASY, HARD])
def test_who_knows_the_words_completes_it_and_gets_one(kwargs: dict[str, Any]) -> None:
    game = Crosswords(**kwargs)
    for seed in SEEDS:
        game.reset(seed=seed)
        assert game.cells <= game.max_turns
        total, info = 0.0, {}
        for place in [*game.hidden]:
            row, column = divmod(place, game.size)
            _, reward, terminated, _, info = put(game, f"{row} {column} {game.solution[place]}")
            total += reward
        assert total == pytest.approx(1.0)
        assert info["success"] is terminated is True


def test_where_nothing_is_given_the_words_are_common_or_rare() -> None:
    game = Crosswords(**DRAWN)
    seen = set()
    for seed in SEEDS:
        game.reset(seed=seed)
        seen.add((game.hardcore, game.num_words, game.max_turns))
    assert seen == {(False, 3, 20), (True, 3, 20)}


@pytest.mark.parametrize(
    "wrong", [{"hardcore": None}, {"max_turns": None}, {"max_turns": 0}, {"num_words": 0}, {"num_words": 1000}], ids=str
)
def test_parameters_that_make_no_game_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        Crosswords(**wrong)


# -- random play -------------------------------------------------------------------------------------------------------


def test_the_example_in_the_rules_is_an_action_and_never_right() -> None:
    game = Crosswords(**EASY)
    for seed in SEEDS:
        rules, _ = game.reset(seed=seed)
        answer = game.step(rules)
        assert answer[1:4] == (0.0, False, False)
        assert "invalid_action" not in answer[4]


@pytest.mark.parametrize("turns", [20, 2000])
def test_random_play_is_valid_to_the_end(turns: int) -> None:
    for seed in range(10):
        game = Crosswords(False, turns, 3)
        game.reset(seed=seed)
        over, info = False, {}
        while not over:
            _, _, over, _, info = game.step(game.sample_random_action())
            assert "invalid_action" not in info
        assert info["success"] or game.turn == turns
