"""Our own scores, where reasoning-gym evaluates an answer, or pays for one that solves nothing.

A scorer takes the data set, an answer and its entry, and gives a score from 0 to 1.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from gem_reasoning_gym import _grammar as grammar
from gem_reasoning_gym._algebra import is_antiderivative, is_polynomial
from gem_reasoning_gym._entries import Entry
from gem_reasoning_gym._golds import pressed

Scorer: TypeAlias = Callable[[Any, str, Entry], float]

_CLOSE = Fraction(1, 10_000)
"""How far a probability may be off, as reasoning-gym has it, and what part of itself."""
_RELATIVELY_CLOSE = Fraction(1, 100)
_PAIRING = re.compile("[\u2227\u2228\u2192\u2194]")
"""And, or, implies, if and only if."""


# -- answers that reasoning-gym evaluates ------------------------------------------------------------------------------


def n_queens(dataset: Any, answer: str, entry: Entry) -> float:
    """A board; half for one that is written as lists."""
    boards = entry["metadata"]["valid_answers"]
    return 1.0 if answer in boards else 0.5 * (_joined(grammar.rows(answer), "\n") in boards)


def binary_matrix(dataset: Any, answer: str, entry: Entry) -> float:
    """A matrix; a tenth for one that is written as lists."""
    return 1.0 if answer == entry["answer"] else 0.1 * (_joined(grammar.rows(answer), "\n") == entry["answer"])


def spiral_matrix(dataset: Any, answer: str, entry: Entry) -> float:
    """Numbers; a tenth where they are written as a list."""
    right = entry["answer"].strip()
    return 1.0 if answer.strip() == right else 0.1 * (_joined(grammar.cells(answer), " ") == right)


def string_insertion(dataset: Any, answer: str, entry: Entry) -> float:
    """Letters; a tenth where they are written as a list, or in quotation marks."""
    return 1.0 if answer == entry["answer"] else 0.1 * (_joined(grammar.cells(answer), "") == entry["answer"])


def countdown(dataset: Any, answer: str, entry: Entry) -> float:
    """An expression that has the value, of the numbers of the question, each used once."""
    read = grammar.arithmetic(answer)
    wanted = entry["metadata"]
    return float(read is not None and read[0] == wanted["target"] and sorted(read[1]) == sorted(wanted["numbers"]))


def puzzle24(dataset: Any, answer: str, entry: Entry) -> float:
    """An expression that has the value 24, of the numbers of the question, each used once."""
    read = grammar.arithmetic(answer)
    return float(read is not None and read[0] == 24 and sorted(read[1]) == sorted(entry["metadata"]["numbers"]))


def integration(dataset: Any, answer: str, entry: Entry) -> float:
    """An antiderivative in closed form."""
    return float(is_antiderivative(answer, entry["metadata"]["integrand"], entry["metadata"]["variable"]))


def polynomial_multiplication(dataset: Any, answer: str, entry: Entry) -> float:
    """The product, multiplied out."""
    return float(is_polynomial(answer, entry["answer"], entry["metadata"]["variables"]))


def word(dataset: Any, answer: str, entry: Entry) -> float:
    """The word, in letters of either case."""
    return float(answer.strip().lower() == entry["answer"].lower())


def published_countdown(dataset: Any, answer: str, entry: Entry) -> float:
    """As reasoning-gym pays for an expression: also for a wrong one, a little."""
    read = grammar.arithmetic(answer)
    if read is None:
        return 0.01
    used = sorted(read[1]) == sorted(entry["metadata"]["numbers"])
    return 1.0 if used and math.isclose(read[0], entry["metadata"]["target"], rel_tol=1e-5, abs_tol=1e-6) else 0.05


def published_puzzle24(dataset: Any, answer: str, entry: Entry) -> float:
    """As reasoning-gym pays for an expression: for any four numbers, and what lies between 24 and 25."""
    read = grammar.arithmetic(answer)
    config = dataset.config
    if read is None or int(read[0]) != 24 or len(read[1]) != 4:
        return 0.01
    return 1.0 if all(config.min_value <= one <= config.max_value for one in read[1]) else 0.01


# -- answers that reasoning-gym pays for although they solve nothing ---------------------------------------------------


def basic_arithmetic(dataset: Any, answer: str, entry: Entry) -> float:
    """The value; one that is not whole may be 0.001 off."""
    right, given = Fraction(entry["answer"]), grammar.number(answer)
    if right.denominator == 1:
        return float(dataset.score_answer(answer, entry))
    return float(given is not None and abs(given - right) <= Fraction(1, 1000))


def coin_flip(dataset: Any, answer: str, entry: Entry) -> float:
    """A probability: 0.0001 off at most, and a hundredth of itself. Nothing for the digits that it begins with."""
    exact = Fraction(*entry["metadata"]["rational"].values())
    given = grammar.number(answer.replace(",", ""))
    return float(given is not None and abs(given - exact) <= min(_CLOSE, exact * _RELATIVELY_CLOSE))


_REAL = r"[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,2})?|\.[0-9]+(?:e[+-]?[0-9]{1,2})?"
_COMPLEX = re.compile(rf"(?P<real>[+-]?(?:{_REAL})(?![0-9.ei]))?(?:(?P<sign>[+-]?)(?P<imaginary>{_REAL})?(?P<i>i))?")


_MARKUP = re.compile(r"\\(?:text\s*\{([^{}]*)\}|[,;:! ]|(?=[$%]))")
_COUNTED = re.compile(
    r"[$\u20ac\xa3]?\s*(-?[0-9][0-9,]*(?:\.[0-9]+)?)"
    r"(?:\s*%|(?:\s+(?!(?:or|and|not|no|nor|but|if|else|is|maybe|perhaps|half)\b)[a-z]+){0,3})\.?",
    re.IGNORECASE,
)
"""A number, and at most three words for what it counts."""
_FRACTION = re.compile(r"\$?\s*(?:\\d?frac\s*\{\s*\d+\s*\}\s*\{\s*\d+\s*\}|\d+\s*/\s*\d+)\s*\$?", re.IGNORECASE)
_DURATION = re.compile(r"(?:-?\d+ days?, ?)?\d+:\d+(?::\d+(?:\.\d+)?)?|-?\d+(?:\s+days?)?")
_BITS = re.compile(r"[01\s,\[\]]*")
_NUMBERS = re.compile(r"[-0-9\s]*")
_POINT = re.compile(r"\(?[^(),]+,[^(),]+\)?")


def complex_arithmetic(dataset: Any, answer: str, entry: Entry) -> float:
    """A complex number: less the further off it is. Not nan, whose distance is no number."""
    written = answer.replace(" ", "").lower().replace("j", "i")
    while written.startswith("(") and written.endswith(")"):
        written = written[1:-1]
    found = _COMPLEX.fullmatch(written)
    if found is None or not written or (found["real"] and found["i"] and not found["sign"]):
        return 0.0
    size = float(found["imaginary"] or 1) if found["i"] else 0.0
    given = complex(float(found["real"] or 0), -size if found["sign"] == "-" else size)
    return math.exp(-abs(given - complex(*entry["metadata"]["result"])))


def counted(dataset: Any, answer: str, entry: Entry) -> float:
    """A number, also with a currency or what it counts; a hundredth for a wrong one. Not one among other words."""
    found = _COUNTED.fullmatch(_MARKUP.sub(lambda markup: f" {markup[1] or ''}", answer).strip())
    if found is None:
        return 0.0
    return 1.0 if grammar.number(found[1].replace(",", "")) == Fraction(entry["answer"]) else 0.01


def advanced_geometry(dataset: Any, answer: str, entry: Entry) -> float:
    """An angle, a radius or a point; nothing may follow."""
    if entry["metadata"]["task_type"] == "orthocenter" and not _POINT.fullmatch(answer.strip()):
        return 0.0
    return float(dataset.score_answer(answer.strip(), entry))


def knights_knaves(dataset: Any, answer: str, entry: Entry) -> float:
    """Who is what; a part for some of them. No other words."""
    said = [each for each in re.findall(r"\w+", answer.lower()) if each not in ("is", "a", "an", "and")]
    if len(said) != 2 * len(dataset._normalize_answer(answer)):
        return 0.0
    return _beyond(float(dataset.score_answer(answer, entry)), 0.65)


def letter_jumble(dataset: Any, answer: str, entry: Entry) -> float:
    """The words; a part where most of them are right. Nothing may follow."""
    if len(answer.split()) != len(entry["answer"].split()):
        return 0.0
    return _beyond(float(dataset.score_answer(answer, entry)), 0.5)


def word_sorting(dataset: Any, answer: str, entry: Entry) -> float:
    """The words in their order; a part where most are in their places. No others."""
    words = entry["metadata"]["sorted_words"]
    given = [each.strip() for each in answer.split(",")]
    if len(given) != len(words) or not {*given} <= {*words}:
        return 0.0
    return _beyond(float(dataset.score_answer(answer, entry)), 0.6)


def game_of_life(dataset: Any, answer: str, entry: Entry) -> float:
    """The live cells that are right, as a part of those that are live on either board: an empty board has none.

    Nothing up to 0.3, which the board of the question reaches.
    """
    given, right = grammar.rows(answer), grammar.rows(entry["answer"])
    if given is None or right is None or [len(row) for row in given] != [len(row) for row in right]:
        return 0.0
    pairs = [*zip(" ".join(given), " ".join(right), strict=True)]
    if any(one not in "01 " for one, _ in pairs):
        return 0.0
    either = sum("1" in pair for pair in pairs)
    return _beyond(sum(pair == ("1", "1") for pair in pairs) / either, 0.3) if either else 1.0


def number_sorting(dataset: Any, answer: str, entry: Entry) -> float:
    """The numbers in their order. Not nan, which may stand anywhere in a sorted list, and is far from no number."""
    written = grammar.cells(answer)
    if written is None or any(grammar.number(each) is None for each in written):
        return 0.0
    return float(dataset.score_answer(answer, entry))


def polynomial_equations(dataset: Any, answer: str, entry: Entry) -> float:
    """The real solutions, by how near they are; where there are none, nothing else than an empty answer."""
    given = "" if answer.strip() in ('""', "''") else answer.strip()
    if given and any(grammar.number(each) is None for each in given.split(",")):
        return 0.0
    return float(dataset.score_answer(given, entry))


def propositional_logic(dataset: Any, answer: str, entry: Entry) -> float:
    """A conclusion of two letters at most, when none that says more follows: neither a weaker one nor all premises.

    From premises that contradict each other, a contradiction follows, which says most.
    """
    from reasoning_gym.logic.propositional_logic import Expression  # pyright: ignore[reportMissingTypeStubs]

    letters: list[str] = entry["metadata"]["variables"]
    if len(_PAIRING.findall(answer)) > 1 or not set(re.findall("[A-Z]", answer)) <= {*letters}:
        return 0.0
    worlds = [dict(zip(letters, world, strict=True)) for world in itertools.product((False, True), repeat=len(letters))]

    def worlds_of(formulas: list[str]) -> frozenset[int]:
        read = [Expression.from_string(formula) for formula in formulas]
        return frozenset(n for n, world in enumerate(worlds) if all(one.evaluate(world) for one in read))

    anything, premises = worlds_of([]), worlds_of(entry["metadata"]["premises"])
    literals = [one for letter in letters for one in (worlds_of([letter]), anything - worlds_of([letter]))]
    said = {
        pair
        for one, other in itertools.product(literals, repeat=2)
        for pair in (one & other, one | other, anything - (one ^ other))
    }
    follow = {each for each in said if premises <= each}
    return float(worlds_of([answer]) in {each for each in follow if not any(other < each for other in follow)})


def quantum_lock(dataset: Any, answer: str, entry: Entry) -> float:
    """The fewest buttons that reach the target, if every press toggles the light; half for more of them."""
    names = re.findall("[A-Z]", answer.upper())
    try:
        reached = pressed(entry, names) == entry["metadata"]["target_value"]
    except KeyError:
        return 0.0
    return (1.0 if len(names) <= len(entry["answer"].split(" \u2192 ")) else 0.5) if reached else 0.0


def sokoban(dataset: Any, answer: str, entry: Entry) -> float:
    """Moves of which each can be made, and after the last one the puzzle is solved.

    Where moves against walls do not count, a long walk without a plan solves a puzzle in ten.
    """
    board = np.array([[*row.replace(" ", "")] for row in entry["metadata"]["gamestr"].strip().split("\n")])
    game = dataset._Game(height=board.shape[0], width=board.shape[1])
    game.load_puzzle_matrix(board)
    moves = "".join(answer.split())
    return float(all(game.player.update(key=move) for move in moves) and dataset._is_solved(game.get_curr_state()))


def spell_backward(dataset: Any, answer: str, entry: Entry) -> float:
    """The word; a part where most letters of one as long are in their places. Nothing may follow."""
    given, right = answer.lower(), entry["answer"].lower()
    if len(given) != len(right):
        return 0.0
    return _beyond(sum(map(str.__eq__, given, right)) / len(right), 0.5)


def above(floor: float, form: re.Pattern[str] | None = None) -> Scorer:
    """reasoning-gym's score, and nothing up to the floor, which answers reach that solve nothing.

    Args:
        floor: this score.
        form: of all of an answer, where reasoning-gym reads its beginning only; others get nothing.
    """

    def score(dataset: Any, answer: str, entry: Entry) -> float:
        if form is not None and not form.fullmatch(answer.strip()):
            return 0.0
        return _beyond(float(dataset.score_answer(answer, entry)), floor)

    return score


def _beyond(part: float, floor: float) -> float:
    """What exceeds the floor, as a part of all that can."""
    return max(0.0, (part - floor) / (1 - floor))


SAME: Mapping[str, Scorer] = {
    "binary_matrix": binary_matrix,
    "game_of_life_halting": word,
    "intermediate_integration": integration,
    "n_queens": n_queens,
    "polynomial_multiplication": polynomial_multiplication,
    "simple_integration": integration,
    "spiral_matrix": spiral_matrix,
    "string_insertion": string_insertion,
}
"""As reasoning-gym pays, without evaluating anything; but for game_of_life_halting, where any text was right."""

RIGHT: Mapping[str, Scorer] = {
    **SAME,
    "advanced_geometry": advanced_geometry,
    "arc_agi": above(0.05),
    "basic_arithmetic": basic_arithmetic,
    "calendar_arithmetic": above(0.1),
    "coin_flip": coin_flip,
    "complex_arithmetic": complex_arithmetic,
    "countdown": countdown,
    "emoji_mystery": above(0.5),
    "figlet_font": above(0.3),
    "fraction_simplification": above(0.1, _FRACTION),
    "futoshiki": above(0.3),
    "game_of_life": game_of_life,
    "gsm_symbolic": counted,
    "kakurasu": above(0.0, _BITS),
    "knights_knaves": knights_knaves,
    "letter_jumble": letter_jumble,
    "mini_sudoku": above(0.5),
    "polynomial_equations": polynomial_equations,
    "number_sorting": number_sorting,
    "pool_matrix": above(0.1),
    "prime_factorization": above(0.5),
    "propositional_logic": propositional_logic,
    "puzzle24": puzzle24,
    "quantum_lock": quantum_lock,
    "rearc": above(0.05),
    "rectangle_count": above(0.8),
    "sentence_reordering": above(0.5),
    "sokoban": sokoban,
    "spell_backward": spell_backward,
    "sudoku": above(0.3),
    "survo": above(0.0, _NUMBERS),
    "time_intervals": above(0.98, _DURATION),
    "tsumego": above(0.05),
    "word_ladder": above(0.5),
    "word_sorting": word_sorting,
}
"""What the ids without a version pay."""

PUBLISHED: Mapping[str, Scorer] = {**SAME, "countdown": published_countdown, "puzzle24": published_puzzle24}
"""What `-v0` pays; of all others, reasoning-gym's own score."""


def _joined(parts: list[str] | None, between: str) -> str | None:
    return None if parts is None else between.join(parts)
