"""Answers that reasoning-gym has wrong, and how they are found instead: by what the question says.

plugins/reasoning_gym/gold_audit.py finds such data sets.
"""

from __future__ import annotations

import datetime as dates
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from gem_core.errors import EnvError
from gem_reasoning_gym._entries import Entry
from gem_reasoning_gym._grammar import arithmetic

Correction: TypeAlias = Callable[[Entry], Mapping[str, Any]]
"""What is different in an entry: its answer, or also its metadata."""
Model: TypeAlias = tuple[frozenset[str], ...]
"""The things that there are, each by the words that name it."""
Knights: TypeAlias = tuple[frozenset[str], frozenset[str], str]
"""The squares of the white and of the black ones, and who moves."""
Lock: TypeAlias = tuple[int, str]
"""The number, and the color of the light."""
_State = TypeVar("_State")

_STATEMENT = re.compile(r"(All|No|Some) (\w+) are (not )?(\w+)")
_CARDS = re.compile(r"initial cards ([A-Z]+)")
_ROUND = re.compile(r"Add an? ([A-Z]) card and remove an? ([A-Z]) card")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) \(\w+\) (\d\d:\d\d:\d\d [+-]\d{4})")


def basic_arithmetic(entry: Entry) -> Mapping[str, Any]:
    """The value to four digits, where it is not whole: reasoning-gym rounds some divisions by brackets down."""
    read = arithmetic(entry["metadata"]["expression"])
    return {} if read is None or read[0] == Fraction(entry["answer"]) else {"answer": f"{float(read[0]):.4f}"}


def syllogism(entry: Entry) -> Mapping[str, Any]:
    """Whether the conclusion is true in every model of the premises in which each word names something.

    reasoning-gym's own rules take `Some A are not C` for a consequence of `All A are B. Some B are not C`. That a word
    names something is its convention: from `All A are B` follows `Some B are A`.
    """
    read = [(one, other, word, bool(negative)) for one, other, negative, word in _STATEMENT.findall(entry["question"])]
    if len(read) != 3:
        raise EnvError(f"rg:syllogism: this release of reasoning-gym asks otherwise: {entry['question']!r:.200}")
    words = sorted({word for _, one, other, _ in read for word in (one, other)})
    follows = all(
        _holds(read[2], model) for model in _models(words) if _holds(read[0], model) and _holds(read[1], model)
    )
    return {"answer": "Yes" if follows else "No"}


def mahjong_puzzle(entry: Entry) -> Mapping[str, Any]:
    """The result of the last round, whatever it was meant to be.

    reasoning-gym says Pass of any card that it has drawn without an intention, and overlooks a sequence in which a
    letter stands twice.
    """
    cards, result = [*_first(_CARDS, entry["question"])], "Pass"
    for added, removed in _ROUND.findall(entry["question"]):
        runs = [{chr(ord(added) + step) for step in two} for two in ((-2, -1), (-1, 1), (1, 2))]
        result = "Peng" if cards.count(added) >= 2 else "Chi" if any(run <= {*cards} for run in runs) else "Pass"
        cards.append(added)
        cards.remove(removed)
    return {"answer": result}


def time_intervals(entry: Entry) -> Mapping[str, Any]:
    """The time between, to the millisecond, and with the times of day behind a weekday in brackets.

    reasoning-gym loses a millisecond to rounding, and reads nothing behind the brackets.
    """
    told = entry["metadata"]
    moments = [" ".join(one) for one in _MOMENT.findall(entry["question"])]
    if len(moments) == 2:
        start, end = (dates.datetime.strptime(one, "%Y-%m-%d %H:%M:%S %z") for one in moments)
        days, seconds = (end - start).days, (end - start).seconds
        answer = f"{days} days, {seconds // 3600:02}:{seconds // 60 % 60:02}"
        return {"answer": answer + (f":{seconds % 60:02}" if told["expected_format"].endswith("SS") else "")}
    if told["expected_format"] != "HH:MM:SS.mmm":
        return {}
    start, end = (dates.datetime.fromisoformat(told[name]) for name in ("start_time", "end_time"))
    seconds, thousandths = divmod((end - start) // dates.timedelta(milliseconds=1), 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return {"answer": f"{clock}.{thousandths:03}"}


def quantum_lock(entry: Entry) -> Mapping[str, Any]:
    """A shortest sequence, if every press toggles the light, as the question says.

    In reasoning-gym, one that changes nothing does not toggle it.
    """
    target = entry["metadata"]["target_value"]
    start = (entry["metadata"]["initial_value"], entry["metadata"]["initial_state"])
    buttons = {button["name"]: button for button in entry["metadata"]["buttons"]}
    way = _shortest(start, lambda state: state[0] == target, lambda state: _presses(state, buttons))
    return {"answer": " \u2192 ".join(way or ())}


def pressed(entry: Entry, names: Iterable[str]) -> int:
    """The number after some buttons of a quantum lock. Raises `KeyError` for a button that it does not have."""
    state: Lock = (entry["metadata"]["initial_value"], entry["metadata"]["initial_state"])
    buttons = {button["name"]: button for button in entry["metadata"]["buttons"]}
    for name in names:
        state = dict(_presses(state, buttons))[name]
    return state[0]


def knight_swap(entry: Entry) -> Mapping[str, Any]:
    """With every move of a knight, as the question says.

    reasoning-gym makes puzzles impossible by taking a move away without saying so.
    """
    told = entry["metadata"]
    if told["is_possible"]:
        return {}
    squares: dict[str, str | None] = told["pieces"]
    board = {one: [other for other in squares if _is_jump(one, other)] for one in squares}
    white, black = (frozenset(one for one, piece in squares.items() if piece == color) for color in "wB")
    start: Knights = (white, black, told["start_turn"])
    way = _shortest(start, lambda state: state[:2] == (black, white), lambda state: _knight_moves(state, board))
    if way is None:
        return {}
    solution = [move.split(",") for move in way]
    return {
        "answer": json.dumps(way),
        "metadata": {**told, "board": board, "is_possible": True, "solution": solution, "num_steps": len(way)},
    }


CORRECTED: Mapping[str, Correction] = {
    "basic_arithmetic": basic_arithmetic,
    "knight_swap": knight_swap,
    "mahjong_puzzle": mahjong_puzzle,
    "quantum_lock": quantum_lock,
    "syllogism": syllogism,
    "time_intervals": time_intervals,
}
"""By data set: what is right in an entry."""


def corrected(name: str, entry: Entry) -> Entry:
    """The entry of a data set, with the right answer."""
    return {**entry, **CORRECTED[name](entry)} if name in CORRECTED else entry


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise EnvError(f"this release of reasoning-gym asks otherwise: {text!r:.200}")
    return match[1]


def _models(words: list[str]) -> list[Model]:
    """Every model in which each word names something; a thing without a name would change nothing."""
    things = [frozenset(each) for size in range(1, len(words) + 1) for each in itertools.combinations(words, size)]
    models = (model for size in range(1, len(things) + 1) for model in itertools.combinations(things, size))
    return [model for model in models if all(any(word in thing for thing in model) for word in words)]


def _holds(statement: tuple[str, str, str, bool], model: Model) -> bool:
    quantifier, one, other, is_negative = statement
    found = [(other in thing) != is_negative for thing in model if one in thing]
    return any(found) if quantifier == "Some" else all(found) if quantifier == "All" else not any(found)


def _shortest(
    start: _State, is_end: Callable[[_State], bool], moves: Callable[[_State], Iterable[tuple[str, _State]]]
) -> list[str] | None:
    """The names of the fewest moves that reach an end, or `None`; the first ones of those that are as few."""
    ways: dict[_State, list[str]] = {start: []}
    waiting = [start]
    while waiting:
        reached: list[_State] = []
        for state in waiting:
            if is_end(state):
                return ways[state]
            for name, after in moves(state):
                if after not in ways:
                    ways[after] = [*ways[state], name]
                    reached.append(after)
        waiting = reached
    return None


def _presses(state: Lock, buttons: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Lock]]:
    number, color = state
    toggled = "green" if color == "red" else "red"
    for name, button in buttons.items():
        value = button["value"]
        made = {"add": number + value, "subtract": number - value, "multiply": number * value}[button["type"]]
        yield name, (made if button["active_state"] in (color, "any") else number, toggled)


def _is_jump(one: str, other: str) -> bool:
    return {abs(ord(one[0]) - ord(other[0])), abs(int(one[1:]) - int(other[1:]))} == {1, 2}


def _knight_moves(state: Knights, board: Mapping[str, list[str]]) -> Iterator[tuple[str, Knights]]:
    white, black, turn = state
    movers = white if turn == "w" else black
    for one in sorted(movers):
        for other in board[one]:
            if other in white or other in black:
                continue
            moved = movers - {one} | {other}
            after: Knights = (moved, black, "B") if turn == "w" else (white, moved, "w")
            yield f"{turn},{one},{other}", after
