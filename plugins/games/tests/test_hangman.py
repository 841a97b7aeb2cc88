"""Hangman, played: letters, words, rewards, endings, and what `-v1-` does otherwise."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games._words import words_of
from gem_games.hangman import Hangman, HangmanV1

BOTH = pytest.mark.parametrize("kind", [Hangman, HangmanV1])


def start(secret: str, max_turns: int = 20, kind: type[Hangman] = Hangman) -> Hangman:
    """A game whose word is known."""
    game = kind(len(secret), max_turns)
    game.reset(seed=0)
    game.secret = secret
    return game


def guess(game: Hangman, *guesses: str) -> StepResult:
    """The answer to the last of these."""
    answers = [game.step(f"I say \\boxed{{{each}}}.") for each in guesses]
    return answers[-1]


def shown(answer: StepResult) -> str:
    """The word as the board shows it, without blanks."""
    return answer[4]["suffix"].splitlines()[0].removeprefix("Word: ").replace(" ", "")


# -- letters -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_letter_opens_all_its_places_and_pays_for_each(kind: type[Hangman]) -> None:
    game = start("BETTER", kind=kind)
    for letter, board, places in (("E", "_E__E_", 2), ("T", "_ETTE_", 2), ("B", "BETTE_", 1)):
        answer = guess(game, letter)
        assert answer[1:4] == (pytest.approx(0.5 * places / 6), False, False)
        assert shown(answer) == board
        assert answer[4]["success"] is False


@BOTH
def test_a_letter_that_is_not_in_the_word_pays_nothing(kind: type[Hangman]) -> None:
    answer = guess(start("BETTER", kind=kind), "Z")
    assert answer[1:4] == (0.0, False, False)
    assert "invalid_action" not in answer[4]
    assert shown(answer) == "______"


@BOTH
@pytest.mark.parametrize("letter", ["E", "Z"])
def test_a_repeated_letter_costs_the_turn_and_nothing_else(kind: type[Hangman], letter: str) -> None:
    answer = guess(start("BETTER", kind=kind), letter, letter.lower())
    assert answer[1:4] == (0.0, False, False)
    assert answer[4]["invalid_action"] is True


# -- words -------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("letters", "hidden"), [("", 6), ("E", 4), ("ET", 2), ("ETB", 1), ("ZQ", 6)])
def test_the_word_pays_a_half_and_the_rest_of_its_letters(kind: type[Hangman], letters: str, hidden: int) -> None:
    answer = guess(start("BETTER", kind=kind), *letters, "better")
    assert answer[1:4] == (pytest.approx(0.5 + 0.5 * hidden / 6), True, False)
    assert answer[4]["success"] is True


@BOTH
def test_a_solved_game_pays_one_in_all(kind: type[Hangman]) -> None:
    for order in itertools.permutations("ICE"):
        for letters in range(3):
            game = start("ICE", kind=kind)
            answers = [guess(game, each) for each in (*order[:letters], "ICE")]
            assert sum(answer[1] for answer in answers) == pytest.approx(1.0)


@BOTH
def test_a_wrong_word_of_the_right_length_pays_nothing(kind: type[Hangman]) -> None:
    answer = guess(start("BETTER", kind=kind), "LETTER")
    assert answer[1:4] == (0.0, False, False)
    assert "invalid_action" not in answer[4]
    assert shown(answer) == "______"


@BOTH
@pytest.mark.parametrize("word", ["BE", "BETTERS"])
def test_a_word_of_another_length_costs_the_turn_and_nothing_else(kind: type[Hangman], word: str) -> None:
    answer = guess(start("BETTER", kind=kind), word)
    assert answer[1:4] == (0.0, False, False)
    assert answer[4]["invalid_action"] is True


# -- endings -----------------------------------------------------------------------------------------------------------


@BOTH
def test_the_word_on_the_last_turn_is_a_win_and_no_truncation(kind: type[Hangman]) -> None:
    assert guess(start("ICE", max_turns=2, kind=kind), "Z", "ICE")[1:4] == (1.0, True, False)


@BOTH
def test_the_last_turn_ends_the_game_pays_its_letter_and_tells_the_word(kind: type[Hangman]) -> None:
    game = start("ICE", max_turns=2, kind=kind)
    assert "ICE" not in guess(game, "Z")[0]
    observation, *rest, info = guess(game, "C")
    assert "ICE" in observation
    assert rest == [pytest.approx(0.5 / 3), True, True]
    assert info["success"] is False


def test_open_letters_do_not_end_v0_and_the_word_then_pays_a_half() -> None:
    game = start("ICE")
    assert guess(game, "I", "C", "E")[1:4] == (pytest.approx(0.5 / 3), False, False)
    assert guess(game, "ICE")[1:4] == (0.5, True, False)


@pytest.mark.parametrize("turns", [3, 10])
def test_open_letters_win_v1_and_pay_one_in_all(turns: int) -> None:
    game = start("ICE", turns, HangmanV1)
    answers = [guess(game, letter) for letter in "CEI"]
    assert [answer[1] for answer in answers] == pytest.approx([0.5 / 3, 0.5 / 3, 0.5 / 3 + 0.5])
    assert answers[-1][2:4] == (True, False)
    assert answers[-1][4]["success"] is True


# -- what else v1 does otherwise ---------------------------------------------------------------------------------------


def test_a_wrong_word_may_be_repeated_in_v0_only() -> None:
    assert "invalid_action" not in guess(start("ICE"), "ACE", "ACE")[4]
    game = start("ICE", kind=HangmanV1)
    assert guess(game, "ACE", "ace")[4]["invalid_action"] is True
    game.reset(seed=0)
    assert "invalid_action" not in guess(game, "ACE")[4]


def test_white_space_around_a_guess_is_read_in_v1_only() -> None:
    assert guess(start("ICE"), " ice\n")[1:3] == (-0.1, True)
    assert guess(start("ICE", kind=HangmanV1), " ice\n")[1] == 1.0


def test_v1_shows_the_letters_that_are_not_in_the_word() -> None:
    game = start("ICE", kind=HangmanV1)
    board = guess(game, "Q", "C", "A")[4]["suffix"]
    assert board.splitlines() == ["Word: _ C _", "Not in it: A Q"]


# -- the action format -------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "action", ["", "ice", "\\boxed{}", "\\boxed{i c e}", "\\boxed{1}", "\\boxed{ice", "\\boxed{ic-e}"]
)
def test_without_letters_in_a_box_the_episode_ends(kind: type[Hangman], action: str) -> None:
    for turns in (1, 5):
        game = start("ICE", turns, kind)
        *_, reward, terminated, truncated, info = game.step(action)
        assert (reward, terminated, truncated) == (-0.1, True, turns == 1)
        assert info["invalid_action"] is True


@BOTH
def test_case_does_not_matter_and_the_last_box_with_letters_counts(kind: type[Hangman]) -> None:
    assert start("ICE", kind=kind).step("\\boxed{ice} \\boxed{a}")[1] == 0.0
    assert start("ICE", kind=kind).step("\\boxed{a} \\BOXED{iCe} \\boxed{??}")[1] == 1.0


# -- resets and random play --------------------------------------------------------------------------------------------


@BOTH
def test_the_rules_show_both_forms_and_never_the_word(kind: type[Hangman]) -> None:
    game = kind(3, 10)
    for seed in range(500):
        rules, info = game.reset(seed=seed)
        assert f"{{{game.secret}}}" not in rules
        assert game.secret not in info["suffix"]
        letter, word = (match[1] for match in Hangman.ACTION.finditer(rules))
        assert (len(letter), len(word)) == (1, 3), "a letter where the rules say letter, a word where they say word"
        for example in (letter, word):
            assert guess(game, example)[1] >= 0.0


@BOTH
def test_where_nothing_is_given_length_and_limit_are_drawn_for_each_episode(kind: type[Hangman]) -> None:
    game = kind(word_length=None, max_turns=None)
    seen = set()
    for seed in range(100):
        game.reset(seed=seed)
        assert len(game.secret) == len(game.open) == game.word_length
        seen.add((game.word_length, game.max_turns))
    assert seen == {(3, 10), (5, 15), (7, 20)}


def test_hardcore_words_come_from_the_large_list() -> None:
    game = Hangman(12, 20, hardcore=True)
    secrets = set()
    for seed in range(100):
        game.reset(seed=seed)
        secrets.add(game.secret)
    assert len(secrets) > 90
    assert secrets <= set(words_of(12, hardcore=True))


@pytest.mark.parametrize("wrong", [{"word_length": None}, {"max_turns": None}, {"max_turns": 0}, {"word_length": 1}])
def test_parameters_that_make_no_game_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        Hangman(**wrong)


@BOTH
@pytest.mark.parametrize("turns", [10, 300])
def test_random_play_is_valid_to_the_end(kind: type[Hangman], turns: int) -> None:
    for seed in range(20):
        game = kind(3, turns)
        game.reset(seed=seed)
        over, info, total = False, {}, 0.0
        while not over:
            _, reward, over, _, info = game.step(game.sample_random_action())
            assert "invalid_action" not in info
            total += reward
        assert total == pytest.approx(1.0) if info["success"] else game.turn == turns
