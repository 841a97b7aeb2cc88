"""Comparing answers by their values: sums, products, quotients, powers and roots of numbers, pi and variables.

It takes a fraction of a millisecond, in this process, and evaluates nothing but arithmetic on 60 digits. What is not
certain to mean the same to math-verify is left to math-verify: words, units, sets, functions, mixed numbers, decimals
that may have been rounded.
"""

from __future__ import annotations

import decimal
import math
import random
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gem_math import _exact as exact

_CONTEXT = decimal.Context(
    prec=60, Emax=10_000, Emin=-10_000, traps=[decimal.Overflow, decimal.InvalidOperation, decimal.DivisionByZero]
)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
_NOTHING = Decimal("1e-40")
"""A difference that is due to rounding, in parts of the largest number on the way."""
_FAR = Decimal("1e-3")
"""A difference that no rounding of an answer explains, in parts of the larger value."""
_TINY = Decimal("1e-10")
"""A value that is so much smaller than a number on the way may be what rounding left of zero."""
_MAX_CHARACTERS, _MAX_TOKENS, _MAX_EXPONENT, _MAX_DEPTH = 200, 100, 100, 10

_TOKEN = re.compile(r"\d+(?:\.\d+)?|\.\d+|\\[a-z]+|sqrt(?=[({])|pi(?![a-z])|[A-Za-z+\-*/^(){}!]")
_NUMBER = re.compile(r"[\d.]+")
_MULTIPLIED = {"\\cdot", "\\times", "*"}
_VARIABLE = re.compile(r"[abeik-npqr-uw-zA-DM-Z]")
"""Letters that are no differentials, functions or intervals to anybody."""
_CONSTANTS = {"e", "i"}
"""Letters with values of their own: what is equal for any value is equal for theirs; what is not may be."""
_FACTORS = re.compile(r"[abkmnxyz)}]")
"""What may stand before a bracket as a factor, as in `n(n+1)`."""
_DICE = random.SystemRandom()
_POINTS = tuple(
    {letter: Decimal(_DICE.randrange(10**15, 3 * 10**15)).scaleb(-15) for letter in map(chr, range(65, 123))}
    for _ in range(2)
)
"""Values of the variables. Two expressions that agree at random points agree everywhere, up to a negligible chance
(Schwartz, JACM 27, 1980). Each process draws its own, so no answer can be written to agree at these points only."""
_SUBSCRIPT = re.compile(r"_\{(\w+)\}$")
_RELATION = re.compile(r"\\([lg]e)q(?![a-z])")
_SET = re.compile(r"\\\{[^{}]*\\\}")
_LIST = re.compile(r"[^,(){}\[\]]+(?:,[^,(){}\[\]]+)+")
_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")
_SEQUENCE = re.compile(r"([(\[])(.*)([)\]])", re.DOTALL)


class _Unclear(Exception):
    """It is nothing that is read here."""


class _Value(NamedTuple):
    at: tuple[Decimal, ...]
    """At the points."""
    size: Decimal
    """The largest number on the way."""
    variables: frozenset[str]


def equal(answer: str, gold: str) -> bool | None:
    """Do two answers have one value? `None` where that is for math-verify to say."""
    if max(len(answer), len(gold)) > _MAX_CHARACTERS:
        return None
    if _text(answer) == _text(gold):
        return True
    if (shares := _as_shares(answer, gold)) is not None:
        return True if _same(*shares, text=False) else None
    if (lists := _unordered(answer, gold)) is not None:
        return True if all(_same(*pair) for pair in zip(*lists, strict=True)) else None
    pairs = _components(answer, gold)
    if pairs is not None:
        outcomes = [_same(*pair) for pair in pairs]
        return None if None in outcomes else all(outcomes)
    return _same(answer, gold, text=False)


def _text(answer: str) -> str:
    """The text with one way to write subscripts and relations."""
    text = _SUBSCRIPT.sub(r"_\1", exact.plain(answer))
    return _RELATION.sub(r"\\\1", text)


def _as_shares(answer: str, gold: str) -> tuple[str, str] | None:
    """Where one of them is a number of percent: that as a fraction, and the other."""
    for one, other in ((answer, gold), (gold, answer)):
        number, percent, rest = exact.plain(one).partition("%")
        if percent and not rest and "%" not in exact.plain(other) and _NUMBER.fullmatch(number):
            return f"{number}/100", other
    return None


def _unordered(answer: str, gold: str) -> tuple[list[str], list[str]] | None:
    """The sorted elements of two sets, or of two lists without brackets, of one length."""
    one, other = exact.plain(answer), exact.plain(gold)
    if _SET.fullmatch(one) and _SET.fullmatch(other):
        one, other = one[2:-2], other[2:-2]
    if not all(_LIST.fullmatch(each) and not _THOUSANDS.search(each) for each in (one, other)):
        return None
    elements = sorted(one.split(",")), sorted(other.split(","))
    return elements if len(elements[0]) == len(elements[1]) else None


def _components(answer: str, gold: str) -> list[tuple[str, str]] | None:
    """Those of two points or intervals with the same brackets."""
    one, other = (_SEQUENCE.fullmatch(exact.plain(each)) for each in (answer, gold))
    if one is None or other is None or one[1] + one[3] != other[1] + other[3]:
        return None
    parts = one[2].split(","), other[2].split(",")
    if len(parts[0]) != len(parts[1]) or len(parts[0]) < 2 or not all(map(_closes, [*parts[0], *parts[1]])):
        return None
    return list(zip(*parts, strict=True))


def _closes(part: str) -> bool:
    depth = 0
    for character in part:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return not depth and bool(part)


def _same(answer: str, gold: str, *, text: bool = True) -> bool | None:
    if text and (outcome := exact.equal(answer, gold)) is not None:
        return outcome
    try:
        return _compared(_read(answer), _read(gold), rounded="." in answer + gold)
    except (_Unclear, decimal.DecimalException):
        return None


def _compared(one: _Value, other: _Value, *, rounded: bool) -> bool | None:
    if one.variables != other.variables or _may_be_zero(one) or _may_be_zero(other):
        return None
    distances = [_CONTEXT.abs(_CONTEXT.subtract(*pair)) for pair in zip(one.at, other.at, strict=True)]
    if all(distance <= _NOTHING * max(one.size, other.size) for distance in distances):
        return True
    if one.variables:
        return None if rounded or one.variables & _CONSTANTS else False
    return False if distances[0] > _FAR * max(one.at[0].copy_abs(), other.at[0].copy_abs()) else None


def _may_be_zero(value: _Value) -> bool:
    return any(each.copy_abs() <= _TINY * value.size for each in value.at)


def _read(text: str) -> _Value:
    cleaned = exact.plain(text)
    tokens = _TOKEN.findall(cleaned)
    if "".join(tokens) != cleaned.replace(" ", "") or not 0 < len(tokens) <= _MAX_TOKENS or " " in cleaned:
        raise _Unclear
    return _Reader(tokens).value()


def _factorial(number: str) -> Decimal:
    if not re.fullmatch(r"\d{1,2}", number):
        raise _Unclear
    return Decimal(math.factorial(int(number)))


class _Reader:
    """Reads and computes an expression by recursive descent. Raises `_Unclear` and `decimal.DecimalException`."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._size = Decimal(0)
        self._variables: set[str] = set()

    def value(self) -> _Value:
        """Of all tokens."""
        total = self._sum()
        if self._next < len(self._tokens):
            raise _Unclear
        return _Value(total, self._size, frozenset(self._variables))

    def _sum(self) -> tuple[Decimal, ...]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Unclear
        total = self._signed()
        while self._token in ("+", "-"):
            minus = self._take() == "-"
            term = self._product()
            total = self._each(_CONTEXT.subtract if minus else _CONTEXT.add, total, term)
        self._depth -= 1
        return total

    def _signed(self) -> tuple[Decimal, ...]:
        if self._token in ("+", "-"):
            minus = self._take() == "-"
            value = self._product()
            return tuple(each.copy_negate() for each in value) if minus else value
        return self._product()

    def _product(self) -> tuple[Decimal, ...]:
        value = self._power()
        while True:
            if self._token in _MULTIPLIED:
                self._take()
                value = self._each(_CONTEXT.multiply, value, self._power())
            elif self._token == "/":
                self._take()
                value = self._each(_CONTEXT.divide, value, self._power())
                if self._is_factor():  # 1/2x is read in two ways
                    raise _Unclear
            elif self._is_factor():
                value = self._each(_CONTEXT.multiply, value, self._power())
            else:
                return value

    def _is_factor(self) -> bool:
        """Is the next token multiplied with the one before, without a sign?"""
        token, before = self._token, self._tokens[self._next - 1]
        if token in ("(", "\\sqrt", "sqrt", "\\pi", "pi") or _VARIABLE.fullmatch(token):
            number = before[0].isdigit() or before[0] == "."
            if token == "(":
                return number or bool(_FACTORS.fullmatch(before))
            return number or before in (")", "}") or token == "\\sqrt"
        return False

    def _power(self) -> tuple[Decimal, ...]:
        base = self._atom()
        if self._token != "^":
            return base
        self._take()
        exponent = self._exponent()
        if self._token == "^":
            raise _Unclear
        return self._each(_CONTEXT.power, base, (Decimal(exponent),) * len(base))

    def _exponent(self) -> int:
        if self._token == "{":
            tokens = self._tokens[self._next + 1 : self._next + 4]
            signed = tokens[:2] if tokens[:1] == ["-"] else tokens[:1]
            self._next += len(signed) + 1
            self._expect("}")
            text = "".join(signed)
        else:
            text = self._take()
            if len(text) > 1:  # x^12 is x^1 2 in LaTeX
                raise _Unclear
        if not re.fullmatch(r"-?\d{1,3}", text) or abs(int(text)) > _MAX_EXPONENT:
            raise _Unclear
        return int(text)

    def _atom(self) -> tuple[Decimal, ...]:
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            if self._token == "!":
                self._take()
                return self._constant(_factorial(token))
            return self._constant(Decimal(token))
        if token in ("\\pi", "pi"):
            return self._constant(_PI)
        if _VARIABLE.fullmatch(token):
            self._variables.add(token)
            return tuple(point[token] for point in _POINTS)
        if token == "(" or token == "{":
            start = self._next
            value = self._inside(")" if token == "(" else "}")
            if token == "(" and self._next == start + 2 and _NUMBER.fullmatch(self._tokens[start]):
                raise _Unclear  # math-verify does not take (2)(3) for a product
            return value
        if token == "\\frac":
            return self._each(_CONTEXT.divide, self._group(), self._group())
        if token in ("\\sqrt", "sqrt"):
            value = self._group() if token == "\\sqrt" else self._inside(")" if self._take() == "(" else "}")
            return tuple(_CONTEXT.sqrt(each) for each in value)
        raise _Unclear

    def _inside(self, closing: str) -> tuple[Decimal, ...]:
        value = self._sum()
        self._expect(closing)
        return value

    def _group(self) -> tuple[Decimal, ...]:
        """What stands in braces, or a single digit."""
        if self._token == "{":
            return self._atom()
        token = self._take()
        if not re.fullmatch(r"\d", token):
            raise _Unclear
        return self._constant(Decimal(token))

    def _each(self, operation: Any, one: tuple[Decimal, ...], other: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
        values = tuple(operation(a, b) for a, b in zip(one, other, strict=True))
        self._size = max(self._size, *(value.copy_abs() for value in values))
        return values

    def _constant(self, value: Decimal) -> tuple[Decimal, ...]:
        self._size = max(self._size, value)
        return (value,) * len(_POINTS)

    @property
    def _token(self) -> str:
        """The next token, empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._token
        if not token:
            raise _Unclear
        self._next += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise _Unclear
