"""Numbers with their units: what is carried out, what is rounded, and what is the number without its unit."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

from gem_math import _evaluation as evaluation
from gem_math import _units as units
from gem_math._expressions import Node, number
from gem_math._tokens import Unread

_MIN_DIGITS, _MIN_SCIENTIFIC = 3, 2
"""Numbers of digits from which a decimal may be rounded: without a power of ten, and with one."""
_LONG = 8
"""Number of digits from which a decimal stands for the number that it approximates."""
_MANTISSA = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")


def equal(given: Node, reference: Node, positive: frozenset[str] = frozenset(), *, wants_decimal: bool = False) -> bool:
    """Is it the same quantity? A number has to be carried out, and may be more precise than a rounded reference.

    If the question `wants_decimal`, only a decimal may be, and not the exact number.
    """
    try:
        if evaluation.equal(given, reference, positive):
            return _is_carried_out(given, reference)
        if wants_decimal and decimal(given) is None:
            return False
        return rounds_to(given, reference) or _is_long_decimal_of(given, reference)
    except Unread:
        return False


def _is_carried_out(given: Node, reference: Node) -> bool:
    """Nothing is left to be done that is not left in the reference, too."""
    if _is_idle(given) and not _is_idle(reference):
        return False
    return is_plain(given) or not is_plain(reference) or _is_angle(reference) != _is_angle(given)


def _is_idle(tree: Node) -> bool:
    """Does it add nothing, or multiply, divide or raise by one?"""
    texts = [part.text for part in tree.parts]
    if tree.kind == "sum" and "0" in texts:
        return not any(map(_has_i, tree.parts))  # 0+2i
    if tree.kind == "product" and "1" in texts and not any(map(_is_named, tree.parts)):
        return True
    return (tree.kind in ("quotient", "power") and texts[1] == "1") or any(map(_is_idle, tree.parts))


def _has_i(tree: Node) -> bool:
    return tree.text == "i" or any(map(_has_i, tree.parts))


def _is_named(tree: Node) -> bool:
    """May a factor of one be written before it: `1 cm`, `1x`?"""
    base = tree.parts[0] if tree.kind == "power" else tree
    return base.kind in ("unit", "name") or _is_unit(tree) or _is_power_of_ten(tree)


def is_unfinished(given: Node, reference: Node) -> bool:
    """Is it a power, a factorial or a fraction that can be reduced, where the reference is not written so?

    Each is a number that is carried out, and one that can be made of another without computing its value.
    """
    given, reference = _unsigned(given), _unsigned(reference)
    if given.kind in ("power", "factorial"):
        return given.kind != reference.kind
    values = [part.value for part in map(_unsigned, given.parts)]
    if given.kind != "quotient" or not all(values) or any(each.denominator != 1 for each in values):
        return False
    return math.gcd(*map(int, values)) > 1


def without_unit(tree: Node) -> tuple[Node, list[str]]:
    """What is left without the units at the end and at the front, and the units. Words such as `million` are none."""
    if tree.kind == "negation":
        inner, found = without_unit(tree.parts[0])
        return replace(tree, parts=(inner,)), found
    if tree.kind in ("product", "quotient"):
        left, right = tree.parts
        if _is_unit(right):
            inner, found = without_unit(left)
            return inner, [*found, *_names(right)]
        if tree.kind == "product" and _is_unit(left):
            inner, found = without_unit(right)
            return inner, [*_names(left), *found]
    return tree, []


def units_below(tree: Node) -> list[str]:
    """The units that a quantity is divided by: `day` of dollars per day."""
    if tree.kind == "negation":
        return units_below(tree.parts[0])
    if tree.kind in ("product", "quotient") and _is_unit(tree.parts[1]):
        return [*units_below(tree.parts[0]), *(_names(tree.parts[1]) if tree.kind == "quotient" else ())]
    return []


def is_length(tree: Node) -> bool:
    """Is it a number of meters or the like, and not of a power of them?"""
    bare, found = without_unit(tree)
    return len(found) == 1 and units.unit(found[0]).base == "m" and not has_unit_power(tree) and bare is not tree


def has_unit_power(tree: Node) -> bool:
    """Is there a unit with an exponent, such as a square meter?"""
    if tree.kind == "power":
        return _is_unit(tree.parts[0])
    return tree.kind in ("negation", "product", "quotient") and any(map(has_unit_power, tree.parts))


def is_plain(tree: Node) -> bool:
    """Is it a number that is carried out: an integer, a decimal, a fraction, a mixed number, one power or factorial, a
    number times a power of ten, each with a sign and a unit?"""
    tree, _ = without_unit(tree)
    tree = _unsigned(_without_imaginary(tree))
    if tree.kind == "mixed":
        return True
    if tree.kind == "quotient":
        return all(_is_term(_unsigned(part)) for part in tree.parts) and not _is_whole(tree)
    if tree.kind == "product":
        left, right = tree.parts
        scale = right.kind == "unit" and right.text.lower().removesuffix("s") in units.SCALES
        return left.kind in ("number", "mixed") and (scale or _is_power_of_ten(right))
    return _is_term(tree)


def _without_imaginary(tree: Node) -> Node:
    """The real part of `5+0i`, which is how a complex number is written that is real."""
    if tree.kind != "sum" or len(tree.parts) != 2:
        return tree
    last = _unsigned(tree.parts[1])
    return tree.parts[0] if [part.text for part in last.parts] == ["0", "i"] else tree


def _is_term(tree: Node) -> bool:
    if tree.kind in ("power", "factorial"):
        values = [_unsigned(part).value for part in tree.parts if _unsigned(part).kind == "number"]
        return len(values) == len(tree.parts) and not {0, 1} & set(values)
    return tree.kind == "number"


def _is_whole(quotient: Node) -> bool:
    """A division that leaves no rest has to be carried out."""
    value = evaluation.exact(quotient)
    return value is not None and value.denominator == 1


def _unsigned(tree: Node) -> Node:
    return tree.parts[0] if tree.kind == "negation" else tree


def _is_power_of_ten(tree: Node) -> bool:
    return tree.kind == "power" and tree.parts[0].text == "10" and _unsigned(tree.parts[1]).kind == "number"


def _is_angle(tree: Node) -> bool:
    return "degree" in without_unit(tree)[1]


# -- units -----------------------------------------------------------------------------------------------------------


def _is_unit(tree: Node) -> bool:
    if tree.kind == "unit":
        return tree.text.lower().removesuffix("s") not in units.SCALES
    if tree.kind == "power":
        return _is_unit(tree.parts[0])
    return tree.kind in ("product", "quotient") and all(map(_is_unit, tree.parts))


def _names(tree: Node) -> list[str]:
    return [tree.text] if tree.kind == "unit" else [name for part in tree.parts for name in _names(part)]


# -- rounding --------------------------------------------------------------------------------------------------------


def rounds_to(given: Node, reference: Node) -> bool:
    """Raises `Unread`. The reference is a rounded decimal, and the answer is more precise and rounds to it."""
    literal = decimal(reference)
    if literal is None or "." not in literal.text:
        return False
    scientific = literal is not _unsigned(without_unit(reference)[0])
    if _digits(literal) < (_MIN_SCIENTIFIC if scientific else _MIN_DIGITS):
        return False
    if not is_plain(given) and evaluation.exact(without_unit(given)[0]) is not None:
        return False
    return within(given, reference, with_literal(reference, last_place(literal) / 2))


def _is_long_decimal_of(given: Node, reference: Node) -> bool:
    """The answer has eight digits of a reference that no decimal can be equal to."""
    literal = decimal(given)
    if literal is None or "." not in literal.text or _digits(literal) < _LONG or _has_decimal(reference):
        return False
    value = evaluation.exact(without_unit(reference)[0])
    if value is not None and not _repeats(value):
        return False
    return within(given, reference, with_literal(given, last_place(literal)))


def within(given: Node, reference: Node, distance: Node) -> bool:
    """Are two quantities no farther apart than a third? Raises `Unread`."""
    if evaluation.variables(given) != evaluation.variables(reference):
        return False
    apart = Node("sum", (given, Node("negation", (reference,))))
    return evaluation.at_most(Node("quotient", (apart, distance)), 1)


def decimal(tree: Node) -> Node | None:
    """The number that a plain quantity is written with, where it is a single one."""
    tree = _unsigned(without_unit(tree)[0])
    if tree.kind == "product" and _is_power_of_ten(tree.parts[1]):
        tree = tree.parts[0]
    return tree if tree.kind == "number" and "(" not in tree.text else None


def is_decimal(tree: Node) -> bool:
    """Is it written as one number with a point?"""
    literal = decimal(tree)
    return literal is not None and "." in literal.text


def with_literal(tree: Node, value: Fraction) -> Node:
    """The quantity with another number in it."""
    if tree.kind == "number":
        return replace(number("1"), value=value)
    if tree.kind == "quotient" or _is_unit(tree.parts[-1]) or _is_power_of_ten(tree.parts[-1]):
        return replace(tree, parts=(with_literal(tree.parts[0], value), *tree.parts[1:]))
    return replace(tree, parts=(*tree.parts[:-1], with_literal(tree.parts[-1], value)))


def _digits(literal: Node) -> int:
    match = _MANTISSA.fullmatch(literal.text)
    return len((match[1] + match[2]).lstrip("0")) if match else 0


def last_place(literal: Node) -> Fraction:
    """What one is worth in the last place of a decimal."""
    match = _MANTISSA.fullmatch(literal.text)
    places, exponent = (len(match[2]), int(match[3] or 0)) if match else (0, 0)
    return Fraction(10) ** (exponent - places)


def _has_decimal(tree: Node) -> bool:
    return (tree.kind == "number" and "." in tree.text) or any(map(_has_decimal, tree.parts))


def _repeats(value: Fraction) -> bool:
    """No decimal ends with it."""
    return (10 ** value.denominator.bit_length()) % value.denominator != 0
