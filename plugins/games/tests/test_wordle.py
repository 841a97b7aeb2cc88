"""Wordle, played: marks, rewards, endings and the action format."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games._words import words_of
from gem_games.wordle import Wordle, marks

SEEDS = range(25)


def start(secret: str, max_turns: int = 10) -> Wordle:
    """A game whose word is known."""
    game = Wordle(len(secret), max_turns)
    game.reset(seed=0)
    game.secret = secret
    return game


def guess(game: Wordle, word: str) -> StepResult:
    return game.step(f"It may be \\boxed{{{word}}}.")


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "secret", "expected"),
    [
        ("GREEN", "GREEN", "GGGGG"),
        ("BLIMP", "GREEN", "XXXXX"),
        ("NEGER", "GREEN", "YYYGY"),
        ("EERIE", "GREEN", "YYYXX"),  # the word has two E: the third is too many
        ("LEVEL", "GREEN", "XYXGX"),
        ("ALLOY", "LOYAL", "YYYYY"),
        ("LLAMA", "LOYAL", "GYYXX"),
        ("AAB", "ABA", "GYY"),
        ("BBA", "ABC", "XGY"),
    ],
)
def test_letters_in_place_use_up_theirs_before_the_others(word: str, secret: str, expected: str) -> None:
    assert marks(word, secret) == expected
    if word != secret:
        assert guess(start(secret), word)[0].split() == [word, expected]


def test_each_letter_of_the_word_is_marked_at_most_once() -> None:
    for secret in words_of(4)[:40]:
        for word in words_of(4)[::7]:
            shown = marks(word, secret)
            hits = Counter(letter for letter, mark in zip(word, shown, strict=True) if mark != "X")
            assert hits == Counter(word) & Counter(secret)
            assert [mark == "G" for mark in shown] == [a == b for a, b in zip(word, secret, strict=True)]


# -- rewards and endings -----------------------------------------------------------------------------------------------


def test_each_letter_that_finds_its_place_pays_once_and_the_word_pays_one_in_all() -> None:
    game = start("GREEN")
    answers = [guess(game, word) for word in ("GRAPE", "GRAIN", "BLEED", "GREEN")]
    assert [answer[1] for answer in answers] == pytest.approx([0.2, 0.1, 0.2, 0.5])
    assert [answer[2:4] for answer in answers] == [(False, False)] * 3 + [(True, False)]
    assert [answer[4] for answer in answers] == [{"success": False}] * 3 + [{"success": True}]


def test_the_word_at_once_pays_one() -> None:
    assert guess(start("GREEN"), "green")[1:] == (1.0, True, False, {"success": True})


def test_letters_elsewhere_pay_nothing() -> None:
    assert guess(start("GREEN"), "NEGRO")[1] == 0.0


def test_the_word_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    game = start("GREEN", max_turns=2)
    guess(game, "BLIMP")
    assert guess(game, "GREEN")[1:] == (1.0, True, False, {"success": True})


def test_the_last_turn_ends_the_game_and_tells_the_word() -> None:
    game = start("GREEN", max_turns=2)
    assert "GREEN" not in guess(game, "BLIMP")[0]
    observation, *rest = guess(game, "GRAPE")
    assert "GREEN" in observation
    assert rest == [pytest.approx(0.2), True, True, {"success": False}]


@pytest.mark.parametrize("word", ["GREENS", "GR", "BLIMP"])
def test_another_length_or_a_repeated_guess_costs_the_turn_and_nothing_else(word: str) -> None:
    game = start("GREEN", max_turns=3)
    guess(game, "BLIMP")
    assert guess(game, word)[1:] == (0.0, False, False, {"success": False, "invalid_action": True})
    assert guess(game, word)[1:] == (0.0, True, True, {"success": False, "invalid_action": True})


def test_a_guess_of_the_last_episode_is_no_repetition() -> None:
    game = Wordle()
    for _ in range(2):
        game.reset(seed=0)
        assert "invalid_action" not in guess(game, "ZZZZZ")[4]


# -- the action format -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "",
        "green",
        "\\boxed{}",
        "\\boxed{ green}",
        "\\boxed{green }",
        "\\boxed{gre3n}",
        "\\boxed{gre-en}",
        "\\boxed{green",
        "\\boxed{grün}",
    ],
)
def test_without_letters_in_a_box_the_episode_ends(action: str) -> None:
    for turns in (1, 5):
        game = start("GREEN", max_turns=turns)
        assert game.step(action)[1:] == (-0.1, True, turns == 1, {"success": False, "invalid_action": True})


@pytest.mark.parametrize("word", ["green", "GREEN", "gReEn", "g r e e n", "gr  een"])
def test_case_and_blanks_between_letters_do_not_matter(word: str) -> None:
    assert guess(start("GREEN"), word)[1] == 1.0


def test_white_space_other_than_blanks_counts_as_letters_as_it_does_upstream() -> None:
    assert guess(start("GREEN"), "gree\tn")[4]["invalid_action"]
    assert "invalid_action" not in guess(start("GREEN"), "gre\nn")[4]


def test_the_last_box_with_letters_counts() -> None:
    assert start("GREEN").step("\\boxed{green} no, \\boxed{blimp}")[1] == 0.0
    assert start("GREEN").step("\\boxed{blimp} or \\boxed{green} and \\boxed{7}")[1] == 1.0


# -- resets and random play --------------------------------------------------------------------------------------------


def test_secrets_are_everyday_words_of_the_length_asked() -> None:
    game = Wordle(word_length=3, max_turns=15)
    secrets = set()
    for seed in range(2000):
        game.reset(seed=seed)
        secrets.add(game.secret)
    assert secrets == set(words_of(3))


def test_where_nothing_is_given_length_and_limit_are_drawn_for_each_episode() -> None:
    game = Wordle(word_length=None, max_turns=None)
    seen = set()
    for seed in range(100):
        game.reset(seed=seed)
        assert len(game.secret) == game.word_length
        seen.add((game.word_length, game.max_turns))
    assert seen == {(3, 15), (4, 20), (5, 25)}


@pytest.mark.parametrize("wrong", [{"word_length": None}, {"max_turns": None}, {"max_turns": 0}, {"word_length": 0}])
def test_parameters_that_make_no_game_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        Wordle(**wrong)


def test_the_example_in_the_rules_is_an_action_and_never_the_word() -> None:
    game = Wordle(3, 15)
    for seed in range(500):
        rules, info = game.reset(seed=seed)
        assert info == {}
        assert game.secret not in rules
        answer = game.step(rules)
        assert answer[1] >= 0.0
        assert not answer[4].get("invalid_action")


@pytest.mark.parametrize("turns", [15, 200])
def test_random_play_never_repeats_itself_and_ends(turns: int) -> None:
    game = Wordle(3, turns)
    for seed in SEEDS:
        game.reset(seed=seed)
        over, total, info = False, 0.0, {}
        while not over:
            _, reward, over, _, info = game.step(game.sample_random_action())
            assert "invalid_action" not in info
            total += reward
        assert info["success"] or game.turn == turns
        assert total == pytest.approx(1.0) or not info["success"]


def test_render_shows_the_guesses_and_not_the_word() -> None:
    game = start("GREEN")
    guess(game, "BLIMP")
    assert "BLIMP" in game.render()
    assert "GREEN" not in game.render()
