"""Answers to questions of mathematics, made by rule: right spellings of a value, and wrong ones of another value.

A kind (`gem_support.math_kinds`) draws a value and has ways to spell it. Each spelling of the value is right. A mutant
is a spelling of a value that is certified to be another one: numbers, sets and lists as Python compares them,
expressions at random points by sympy with 50 digits. Nothing here uses `gem_math`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import sympy

Value: TypeAlias = Any
"""Numbers, texts and sympy's expressions, in tuples (ordered) and frozensets (not ordered)."""
Dice: TypeAlias = random.Random
Spell: TypeAlias = Callable[[Any], Sequence[str]]

_BLANK = re.compile(r"<([^<>]+)>")


class Case(NamedTuple):
    """An answer with its reference."""

    kind: str
    question: str
    reference: str
    answer: str
    right: bool


@dataclass(frozen=True)
class Item:
    """A question with its value: how it may be spelled, and which other values are near."""

    question: str
    value: Value
    spell: Spell
    near: Sequence[Value]
    wrong: Sequence[str] = ()
    """Texts that say something else: that another quantity has this value, a part of it, or what is not so."""
    reference: str = ""
    """If it is not the first spelling."""


KINDS: dict[str, Callable[[Dice], Item]] = {}


def kind(make: Callable[[Dice], Item]) -> Callable[[Dice], Item]:
    """Registers a kind by the name of the function that draws it."""
    KINDS[make.__name__] = make
    return make


# -- certificates ------------------------------------------------------------------------------------------------------


def differ(one: Value, other: Value) -> bool:
    """Are two values certainly different?"""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) != len(other) or any(map(differ, one, other))
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return len(one) != len(other) or any(all(differ(a, b) for b in other) for a in one)
    if isinstance(one, sympy.Basic) or isinstance(other, sympy.Basic):
        return _differ_at_points(sympy.sympify(one), sympy.sympify(other))
    return one != other


def _differ_at_points(one: Any, other: Any) -> bool:
    names = sorted(one.free_symbols | other.free_symbols, key=str)
    dice = random.Random(str(names))
    for _ in range(3):
        point = {name: sympy.Rational(dice.randrange(101, 997), 101) for name in names}
        if abs(sympy.N((one - other).subs(point), 50)) > sympy.Float("1e-30"):
            return True
    return False


# -- texts -------------------------------------------------------------------------------------------------------------


def fill(templates: str, **values: object) -> list[str]:
    """The texts between ` ;; `, each with its `<name>`s filled in."""
    return [_BLANK.sub(lambda match: str(values[match[1]]), text.strip()) for text in templates.split(";;")]


def frac(value: Fraction, command: str = "\\frac") -> str:
    """A fraction in LaTeX, an integer as it is."""
    sign = "-" if value < 0 else ""
    top, bottom = abs(value.numerator), value.denominator
    return f"{sign}{top}" if bottom == 1 else f"{sign}{command}{{{top}}}{{{bottom}}}"


def decimal(value: Fraction, places: int) -> str:
    """Rounded half up, exactly."""
    scaled = abs(value) * 10**places
    digits = str((2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


def rounded(value: Any, places: int) -> str:
    """A real number of sympy, rounded."""
    return decimal(Fraction(str(sympy.N(value, 40))), places)


def exact_decimal(value: Fraction) -> str:
    """The decimal that it is; a fraction where none ends with it."""
    places = next((each for each in range(1, 30) if (value * 10**each).denominator == 1), 0)
    return decimal(value, places) if places else frac(value)


def signed(value: int) -> str:
    """With a sign in front."""
    return f"+{value}" if value >= 0 else str(value)


def polynomial(value: Sequence[int], name: str = "x") -> str:
    """From the highest power down."""
    text = ""
    for power, factor in zip(range(len(value) - 1, -1, -1), value, strict=True):
        if factor:
            body = "" if not power else name if power == 1 else f"{name}^{power}"
            number = "" if abs(factor) == 1 and power else str(abs(factor))
            text += f"{'-' if factor < 0 else '+' if text else ''}{number}{body}"
    return text or "0"


def ascending(value: Sequence[int], name: str = "x") -> str:
    """From the lowest power up, with a plus before each minus."""
    names = ["", name, *(f"{name}^{{{power}}}" for power in range(2, len(value)))]
    return " + ".join(f"{factor}{body}" for factor, body in zip(reversed(value), names, strict=False) if factor)


# -- values ------------------------------------------------------------------------------------------------------------


def near_numbers(value: int) -> list[int]:
    """Off by one, by a digit, by the sign, by a factor of ten, with digits exchanged."""
    digits = str(abs(value))
    found = {value + 1, value - 1, -value, value * 10, value + 10, value + 100, 2 * value}
    if len(digits) > 1:
        found |= {int(digits[::-1]), int(digits[:-1]), int(digits[1:]), int(digits + digits[-1])}
        others = ((place, str((int(digit) + 1) % 10)) for place, digit in enumerate(digits))
        found |= {int(digits[:place] + other + digits[place + 1 :]) for place, other in others}
    return sorted(found - {value})


def near_fractions(value: Fraction) -> list[Fraction]:
    """Another numerator or denominator, another sign, the inverse."""
    top, bottom = value.numerator, value.denominator
    found = {Fraction(each, bottom) for each in (top + 1, top - 1, -top, top + bottom)}
    found |= {Fraction(top, each) for each in (bottom + 1, bottom + 2, 2 * bottom)} | {Fraction(bottom, top or 1)}
    return sorted(found - {value})


def near_tuples(value: tuple[int, ...], each: int = 6) -> list[tuple[int, ...]]:
    """One of the numbers is another, or two are exchanged."""
    places = range(len(value))
    near = ((place, other) for place in places for other in near_numbers(value[place])[:each])
    found = {(*value[:place], other, *value[place + 1 :]) for place, other in near}
    found |= {(*value[:place], value[place + 1], value[place], *value[place + 2 :]) for place in places[:-1]}
    return sorted(found - {value})


def whole(dice: Dice, low: int, high: int) -> int:
    """A whole number that is not zero."""
    return dice.choice([each for each in range(low, high) if each])


def proper(dice: Dice) -> Fraction:
    """A fraction between 0 and 1 that is not a half."""
    bottom = dice.choice((3, 4, 5, 7, 8, 9, 11, 12, 13))
    return dice.choice([each for top in range(1, bottom) if (each := Fraction(top, bottom)).denominator > 2])
