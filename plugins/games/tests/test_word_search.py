"""Word search, played: the square, guesses, rewards, endings, and what `-v1-` does otherwise."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games._letter_grid import EMPTY, Grid
from gem_games._words import word_list
from gem_games.word_search import WordSearch, WordSearchV1

SEEDS = range(30)
BOTH = pytest.mark.parametrize("kind", [WordSearch, WordSearchV1])
EASY = {"hardcore": False, "max_turns": 20, "num_words": 5}
HARD = {"hardcore": True, "max_turns": 20, "num_words": 5}
DRAWN = {"hardcore": None, "max_turns": None, "num_words": None}
SQUARE = ("CATX", "ZOQT", "XWQA", "CATC")
WORDS = {hardcore: frozenset(word_list(hardcore=hardcore)) for hardcore in (False, True)}
PLACES = {(0, 0, 0, 2): "CAT", (0, 1, 2, 1): "AOW"}


def start(kind: type[WordSearch] = WordSearch, max_turns: int = 10) -> WordSearch:
    """CAT across at the top and AOW down from its A; CAT can be read at the bottom too, by accident."""
    game = kind(max_turns=max_turns)
    game.reset(seed=0)
    game.show(4, [letter for row in SQUARE for letter in row], dict(PLACES))
    return game


def guess(game: WordSearch, *lines: str) -> StepResult:
    """The answer to the last of these."""
    return [game.step(f"Here: \\boxed{{{line}}}.") for line in lines][-1]


def square(board: str, size: int) -> list[list[str]]:
    """The cells as a player sees them, brackets included."""
    return [[row[3 * cell + 3 :][:3].strip() for cell in range(size)] for row in board.splitlines()[1 : size + 1]]


# -- guesses -----------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("cat", "aow"), [("0 0 0 2", "0 1 2 1"), ("0 2 0 0", "2 1 0 1")])
def test_each_word_pays_its_share_and_the_last_one_wins(kind: type[WordSearch], cat: str, aow: str) -> None:
    game = start(kind)
    one, other = guess(game, cat), guess(game, aow)
    assert one[1:4] == (0.5, False, False)
    assert other[1:4] == (0.5, True, False)
    assert (one[4]["success"], other[4]["success"]) == (False, True)


@BOTH
def test_words_found_stand_in_brackets_and_are_counted(kind: type[WordSearch]) -> None:
    board = guess(start(kind), "0 1 2 1")[4]["suffix"]
    assert square(board, 4) == [["C", "[A]", "T", "X"], ["Z", "[O]", "Q", "T"], ["X", "[W]", "Q", "A"], [*"CATC"]]
    assert "Found: 1 of 2" in board


@BOTH
@pytest.mark.parametrize("line", ["0 0 0 1", "0 0 0 3", "2 0 2 3", "1 1 1 1", "0 3 0 0"])
def test_a_line_that_is_no_word_pays_nothing(kind: type[WordSearch], line: str) -> None:
    answer = guess(start(kind), line)
    assert answer[1:4] == (0.0, False, False)
    assert "invalid_action" not in answer[4]


@BOTH
@pytest.mark.parametrize("line", ["0 0 0 4", "4 0 0 0", "9999 0 0 0", "0 0 2 2", "0 0 0 1", "0 0 0 2"])
def test_outside_slanted_or_tried_before_costs_the_turn_and_nothing_else(kind: type[WordSearch], line: str) -> None:
    answer = guess(start(kind), "0 0 0 1", "0 0 0 2", line)
    assert answer[1:4] == (0.0, False, False)
    assert answer[4]["invalid_action"] is True


@BOTH
def test_the_last_turn_ends_the_game_and_pays_its_word(kind: type[WordSearch]) -> None:
    answer = guess(start(kind, max_turns=2), "1 0 1 1", "0 0 0 2")
    assert answer[1:4] == (0.5, True, True)
    assert answer[4]["success"] is False


@BOTH
def test_the_last_word_on_the_last_turn_is_a_win_and_no_truncation(kind: type[WordSearch]) -> None:
    assert guess(start(kind, max_turns=2), "0 0 0 2", "0 1 2 1")[1:4] == (0.5, True, False)


@BOTH
@pytest.mark.parametrize("line", ["", "0 0 0", "[0 0 0 2]", "0,0,0,2", "0 0 0 2 1", "-1 0 0 2"])
def test_without_four_numbers_in_a_box_the_episode_ends(kind: type[WordSearch], line: str) -> None:
    for turns in (1, 5):
        *_, reward, terminated, truncated, info = guess(start(kind, turns), line)
        assert (reward, terminated, truncated) == (-0.1, True, turns == 1)
        assert info["invalid_action"] is True


@BOTH
def test_a_number_with_more_digits_than_python_reads_is_no_row(kind: type[WordSearch]) -> None:
    assert guess(start(kind), "9" * 5000 + " 0 0 2")[1:3] == (-0.1, True)


@BOTH
def test_the_last_box_of_the_form_counts_and_any_white_space_separates(kind: type[WordSearch]) -> None:
    assert start(kind).step("\\boxed{0 0 0 2} \\boxed{0 0 0 1}")[1] == 0.0
    assert start(kind).step("\\boxed{0 0 0 1} \\boxed{00\t0\n0  2} \\boxed{none}")[1] == 0.5


@pytest.mark.parametrize("line", [" 0 0 0 2", "0 0 0 2 ", "\n0 0 0 2\n"])
def test_white_space_at_the_ends_of_a_box(line: str) -> None:
    assert guess(start(), line)[1] == -0.1
    assert guess(start(WordSearchV1), line)[1] == 0.5


# -- what v1 does otherwise --------------------------------------------------------------------------------------------


def test_a_word_with_its_ends_swapped_pays_twice_in_v0() -> None:
    answer = guess(start(), "0 0 0 2", "0 2 0 0")
    assert answer[1:4] == (0.5, False, False)
    assert "Found: 1 of 2" in answer[4]["suffix"]


def test_a_word_with_its_ends_swapped_was_tried_before_in_v1() -> None:
    answer = guess(start(WordSearchV1), "0 0 0 2", "0 2 0 0")
    assert answer[1:4] == (0.0, False, False)
    assert answer[4]["invalid_action"] is True


def test_no_order_of_guesses_pays_more_than_one_in_v1() -> None:
    for seed in SEEDS:
        game = WordSearchV1(max_turns=400)
        game.reset(seed=seed)
        lines = [*game.places, *((*line[2:], *line[:2]) for line in game.places)]
        game.rng.shuffle(lines)
        total, over = 0.0, False
        while not over:
            _, reward, over, _, _ = guess(game, " ".join(map(str, lines.pop())))
            total += reward
        assert total == pytest.approx(1.0)


def test_a_word_that_stands_there_by_accident_counts_in_v1_only() -> None:
    assert guess(start(), "3 0 3 2")[1] == 0.0
    game = start(WordSearchV1)
    assert guess(game, "3 0 3 2")[1] == 0.5
    assert guess(game, "0 0 0 2")[1:4] == (0.0, False, False), "the word is found, so it pays no more"
    assert guess(game, "0 1 2 1")[1:4] == (0.5, True, False)


def test_v1_shows_the_words_that_are_left_and_v0_does_not() -> None:
    game = start(WordSearchV1)
    assert game.board().splitlines()[-1] == "To find: AOW, CAT"
    assert guess(game, "0 0 0 2")[4]["suffix"].splitlines()[-1] == "To find: AOW"
    assert "To find" not in start().board()


# -- squares -----------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kwargs", [EASY, HARD, DRAWN])
def test_the_words_stand_where_the_game_says(kind: type[WordSearch], kwargs: dict[str, Any]) -> None:
    game = kind(**kwargs)
    for seed in SEEDS:
        rules, info = game.reset(seed=seed)
        cells = square(info["suffix"], game.size)
        assert all(len(letter) == 1 and "A" <= letter <= "Z" for row in cells for letter in row)
        assert len(game.places) == 5
        assert game.size == round(max(map(len, game.words)) * 1.5)
        assert set(game.words) <= WORDS[game.hardcore]
        for (row, column, last_row, last_column), word in game.places.items():
            line = cells[row][column : last_column + 1]
            if column == last_column:
                line = [each[column] for each in cells[row : last_row + 1]]
            assert "".join(line) == word
            assert word not in rules


@BOTH
@pytest.mark.parametrize("kwargs", [EASY, HARD, DRAWN])
def test_who_finds_all_words_wins_one(kind: type[WordSearch], kwargs: dict[str, Any]) -> None:
    game = kind(**kwargs)
    for seed in SEEDS:
        game.reset(seed=seed)
        answers = [guess(game, " ".join(map(str, line))) for line in game.places]
        assert [answer[1] for answer in answers] == pytest.approx([0.2] * 5)
        assert [answer[2:4] for answer in answers] == [(False, False)] * 4 + [(True, False)]
        assert answers[-1][4]["success"] is True


def test_where_nothing_is_given_the_list_is_drawn_for_each_episode() -> None:
    game = WordSearch(**DRAWN)
    seen = set()
    for seed in SEEDS:
        game.reset(seed=seed)
        seen.add((game.hardcore, len(game.words), game.max_turns))
    assert seen == {(False, 5, 20), (True, 5, 20)}


@pytest.mark.parametrize(
    "wrong", [{"hardcore": None}, {"num_words": None}, {"max_turns": 0}, {"num_words": 0}, {"num_words": 51}], ids=str
)
def test_parameters_that_make_no_game_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        WordSearch(**wrong)


def test_words_cross_where_they_can() -> None:
    for seed in range(200):
        grid = Grid(["ABC", "XBX"], random.Random(seed))
        assert [line.word for line in grid.lines] == ["ABC", "XBX"]
        crossed = grid.lines[0].down is not grid.lines[1].down
        assert Counter(cell != EMPTY for cell in grid.cells)[True] == (5 if crossed else 6)


def test_a_word_without_a_place_is_left_out() -> None:
    words = ["".join(letters) for letters in ("ABCD", "EFGH", "IJKL", "MNOP", "QRST", "UVWX", "YZAA", "BCCD", "EEFF")]
    grid = Grid(words, random.Random(0))
    assert grid.size == 6
    placed = {line.word for line in grid.lines}
    assert placed < set(words)
    assert all("".join(grid.cells).count(word) <= 1 for word in words)


# -- random play -------------------------------------------------------------------------------------------------------


@BOTH
def test_the_example_in_the_rules_is_an_action_and_never_a_word(kind: type[WordSearch]) -> None:
    game = kind(**EASY)
    for seed in range(300):
        rules, _ = game.reset(seed=seed)
        answer = game.step(rules)
        assert answer[1:4] == (0.0, False, False)
        assert "invalid_action" not in answer[4]


@BOTH
@pytest.mark.parametrize("turns", [20, 2000])
def test_random_play_is_valid_to_the_end(kind: type[WordSearch], turns: int) -> None:
    for seed in range(5):
        game = kind(False, turns, 3)
        game.reset(seed=seed)
        over, info = False, {}
        while not over:
            _, _, over, _, info = game.step(game.sample_random_action())
            assert "invalid_action" not in info
        assert info["success"] or game.turn == turns
