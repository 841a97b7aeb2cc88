"""Are two expressions equal? Rational numbers are computed exactly, all others on many digits, variables are drawn.

Two expressions that agree at random points agree everywhere, up to a negligible chance (Schwartz, JACM 27, 1980). Each
process draws points of its own, so no answer can be written to agree at these points only. Every number on the way is
limited in size, so no answer takes long. Those that are larger are computed on more digits, without functions that take
long there, or by their residues (`gem_math._residues`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from mpmath.ctx_mp import MPContext  # pyright: ignore  # sympy, and so math-verify, brings mpmath

from gem_math import _residues as residues
from gem_math import _units as units
from gem_math._expressions import Node
from gem_math._tokens import Unread

Value: TypeAlias = Any
"""A `Fraction`, or a real or complex number of mpmath."""

_SECRET = os.urandom(16)
_POINTS, _MAX_POINTS = 4, 24
_ROUGH, _FINE = 256, 3072
"""Bits of the two rounds: most answers that are wrong differ in the first."""
_FINEST = 49_152
"""Bits for numbers that are too large for these."""
_RATIONAL_BITS, _REAL_BITS, _LARGE_BITS = 30_000, 1000, 10_000
"""No number is larger or closer to zero than a power of two with this exponent, so the second round tells any two
apart that an answer can hold."""
_MAX_FACTORIAL = 1000
_SQUARE = 2
"""The only root that is taken of numbers that are too large for the second round."""
_MAX_CALLS, _MAX_LARGE_CALLS = 24, 6
"""Roots, functions and powers that are not whole, which take most of the time."""


class TooLarge(Unread):
    """A number is too large to compute with here."""


class _Digits:
    """Arithmetic on some number of bits."""

    def __init__(self, bits: int, largest: int = _REAL_BITS) -> None:
        self.bits = bits
        self.largest = largest
        """The exponent that bounds real numbers."""
        self.context: Any = MPContext()  # of our own: threads share it, and nobody changes its precision
        self.context.prec = bits

    def real(self, value: Value) -> Value:
        """A number of mpmath."""
        if not isinstance(value, Fraction):
            return value
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > self.largest:
            raise TooLarge("a number is too large to compute with")
        return self.context.mpf(value.numerator) / value.denominator

    def size(self, value: Value) -> float:
        """The exponent of the power of two that bounds a number."""
        if isinstance(value, Fraction):
            return value.numerator.bit_length() - value.denominator.bit_length() + 1 if value else -math.inf
        return float(self.context.mag(value))


_DIGITS = _Digits(_ROUGH), _Digits(_FINE)
_LARGE = _Digits(_ROUGH, _LARGE_BITS), _Digits(_FINEST, _LARGE_BITS)


def equal(one: Node, other: Node, positive: frozenset[str] = frozenset()) -> bool:
    """Do two expressions have the same value, whatever that of their variables? Raises `Unread`.

    Variables are positive at the first point. At the others they are not, but for those that are known to be
    `positive`, and these do not count where `other` has a root or a logarithm of a negative number. Variables in a
    factorial or a binomial coefficient are positive integers.
    """
    names = sorted({*variables(one), *variables(other)})
    points = _NOWHERE
    if names:
        points = _Points(names, positive, _counted(one) | _counted(other))
        points.keep_those_of(one, other)
    try:
        return _equal_on(_DIGITS, points, one, other)
    except TooLarge:
        pass
    try:
        return residues.equal(one, other, exact)
    except Unread:
        return _equal_on(_LARGE, points, one, other)


def _equal_on(rounds: Sequence[_Digits], points: _Points, one: Node, other: Node) -> bool:
    for digits in rounds:
        exact = True
        for point in points.numbers if digits is rounds[0] else points.signs:
            wanted, given = (_Evaluation(digits, point, points) for _ in range(2))
            second = wanted.of(other)
            if wanted.branched and point:
                continue
            first = given.of(one)
            agree = _agree(digits, first, second, max(given.largest, wanted.largest))
            if agree is False or (agree is None and digits is rounds[-1]):
                return False
            exact = exact and isinstance(first, Fraction) and isinstance(second, Fraction)
        if exact:  # more digits would say the same
            break
    return True


def ratio(one: Node, other: Node) -> Value | None:
    """The real number that `other` is multiplied with to give `one`, if it is one and not zero. Raises `Unread`."""
    points = _Points(sorted({*variables(one), *variables(other)}))
    if not points.names:
        return None
    first: Value | None = None
    for digits in _DIGITS:
        first = None
        for point in range(_POINTS):
            above, below = (_Evaluation(digits, point, points).of(each) for each in (one, other))
            if not above or not below:
                return None
            quotient = _divided(digits, above, below)
            first = quotient if first is None else first
            agree = _agree(digits, first, quotient, digits.size(first))
            if agree is False or (agree is None and digits is _DIGITS[-1]):
                return None
    return None if isinstance(first, _DIGITS[-1].context.mpc) else first


def same_value(one: Node, other: Node) -> bool:
    """As `equal`, and not where one of both has no value."""
    try:
        return equal(one, other)
    except Unread:
        return False


def at_most(tree: Node, bound: int) -> bool:
    """Is an expression real and no farther from zero than this, whatever its variables? Raises `Unread`."""
    points, digits = _Points(variables(tree)), _DIGITS[0]
    for point in points.numbers:
        found = _Evaluation(digits, point, points).of(tree)
        if isinstance(found, digits.context.mpc) or abs(found) > bound:
            return False
    return True


def exact(tree: Node) -> Fraction | None:
    """The value of an expression, if it is a rational number that can be computed exactly."""
    found = _constant(tree)
    return found if isinstance(found, Fraction) else None


def real(tree: Node) -> Value | None:
    """The value of an expression on many digits; `None` where it is not real or has variables."""
    found = _constant(tree)
    return None if found is None or isinstance(found, _DIGITS[0].context.mpc) else _DIGITS[0].real(found)


def _constant(tree: Node) -> Value | None:
    if variables(tree):
        return None
    try:
        return _Evaluation(_DIGITS[0], 0, _NOWHERE).of(tree)
    except Unread:
        return None


def variables(tree: Node) -> list[str]:
    """The names of what is drawn, each once, in alphabetical order."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting += node.parts
        if node.kind == "name" and node.text not in _CONSTANTS:
            found.add(node.text)
        elif node.kind == "value":
            found.add(f"{node.text}()")
        elif node.kind == "unit" and node.text not in _FACTORS:
            found |= set(units.unit(node.text).base.split("/")) - {""}
        elif node.kind == "call" and node.text == "log" and len(node.parts) == 1:
            found.add(_LOG_BASE)
    return sorted(found)


def has_variable_arguments(tree: Node) -> bool:
    """Does the value of a function depend on variables?"""
    return any(map(variables, tree.parts))


def _counted(tree: Node) -> frozenset[str]:
    """The names in factorials and binomial coefficients, which stand for whole numbers."""
    if tree.kind in ("factorial", "binomial"):
        return frozenset(variables(tree))
    return frozenset[str]().union(*map(_counted, tree.parts))


_CONSTANTS = frozenset(("pi", "e", "i"))
_FACTORS = frozenset(("%", "degree"))
_LOG_BASE = "the base of log"
"""Some write log for the natural logarithm, some for the one to base 10. So it is drawn."""


def _agree(digits: _Digits, one: Value, other: Value, largest: float) -> bool | None:
    """`None` where so much cancels out that these digits do not tell."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other
    one, other = digits.real(one), digits.real(other)
    size = max(digits.size(one), digits.size(other))
    certain = size - digits.bits * 3 / 4
    if largest + 20 - digits.bits > certain:
        return None
    return digits.size(one - other) <= certain


def _divided(digits: _Digits, one: Value, other: Value) -> Value:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one / other
    return digits.real(one) / digits.real(other)


class _Points:
    """Where variables are drawn."""

    def __init__(
        self, names: Sequence[str], positive: frozenset[str] = frozenset(), counted: frozenset[str] = frozenset()
    ) -> None:
        self.names = names
        self.numbers: Sequence[int] = range(_POINTS if names else 1)
        self._positive = positive
        self._counted = counted

    @property
    def signs(self) -> Sequence[int]:
        """Points with all signs of the variables: of one variable there are two."""
        return self.numbers[:2] if len(self.names) == 1 else self.numbers

    def keep_those_of(self, *trees: Node) -> None:
        """Where several names are counted, keep points at which expressions have values: `(n-k)!` has not at all."""
        if len(self._counted) > 1:
            found = (point for point in range(_MAX_POINTS) if all(_has_value(tree, point, self) for tree in trees))
            self.numbers = [*itertools.islice(found, _POINTS)]
            if not self.numbers:
                raise Unread("it has no value")

    def drawn(self, name: str, point: int) -> Fraction:
        """The value of a variable at one of the points."""
        if name in self._counted:
            return Fraction(_LEAST_COUNT + draw(name, point) % _COUNTS)
        drawn = 1 + Fraction(draw(name, point), 1 << 39)
        negative = point == 1 or (point > 1 and self.names.index(name) % 2 == point - 2)
        return -drawn if negative and name not in self._positive else drawn


def _has_value(tree: Node, point: int, points: _Points) -> bool:
    try:
        _Evaluation(_DIGITS[0], point, points).of(tree)
    except Unread:
        return False
    return True


_NOWHERE = _Points(())
_LEAST_COUNT, _COUNTS = 12, 37
"""Numbers that are counted are drawn from here: large enough to take a few from, small enough for a factorial."""


class _Evaluation:
    """Computes expressions at one point."""

    def __init__(self, digits: _Digits, point: int, points: _Points) -> None:
        self._digits = digits
        self._point = point
        self._points = points
        self.largest = -math.inf
        """The size of the largest number on the way."""
        self._calls = 0
        self.branched = False
        """There was a root or a logarithm of a negative number."""

    def of(self, node: Node) -> Value:
        """The value of an expression. Raises `Unread` where it has none, or one that is too large."""
        try:
            return self.value(node)
        except (ArithmeticError, ValueError) as error:
            raise Unread(f"it has no value: {error}") from error

    def value(self, node: Node) -> Value:
        """The value of a part. Raises `ArithmeticError` and `ValueError`, too."""
        found = self._computed(node)
        if isinstance(found, Fraction):
            if max(found.numerator.bit_length(), found.denominator.bit_length()) > _RATIONAL_BITS:
                raise TooLarge("a number is too large")
        elif found and abs(self._digits.size(found)) > self._digits.largest:
            raise TooLarge("a number is too large or too small")
        self.largest = max(self.largest, self._digits.size(found))
        return found

    def _computed(self, node: Node) -> Value:
        if node.kind == "number":
            return node.value
        if node.kind == "name":
            return self._name(node.text)
        if node.kind == "unit":
            return self._unit(node.text)
        if node.kind == "call":
            return self._call(node.text, [self.value(part) for part in node.parts])
        if node.kind == "value":
            return self._drawn(f"{node.text}()", *map(self.value, node.parts))
        if node.kind not in self._OPERATIONS:
            raise Unread(f"a {node.kind} has no value")
        return self._OPERATIONS[node.kind](self, *(self.value(part) for part in node.parts))

    # -- names ---------------------------------------------------------------------------------------------------------

    def _name(self, name: str) -> Value:
        context = self._digits.context
        if name in _CONSTANTS:
            return context.mpc(0, 1) if name == "i" else +getattr(context, name)
        return self._points.drawn(name, self._point)

    def _unit(self, name: str) -> Value:
        if name == "%":
            return Fraction(1, 100)
        if name == "degree":
            return self._digits.context.pi / 180
        factor, base, power = units.unit(name)
        above, _, below = base.partition("/")
        value: Value = factor * (self._name(above) ** power if above else 1)
        return value / self._name(below) if below else value

    # -- operations ----------------------------------------------------------------------------------------------------

    def _sum(self, *terms: Value) -> Value:
        total, *others = terms if self._rational(*terms) else map(self._digits.real, terms)
        for other in others:
            total += other
        return total

    def _count_call(self) -> None:
        self._calls += 1
        if self._calls > (_MAX_CALLS if self._digits.bits <= _FINE else _MAX_LARGE_CALLS):
            raise Unread("it has too many functions")

    def _product(self, one: Value, other: Value) -> Value:
        return one * other if self._rational(one, other) else self._digits.real(one) * self._digits.real(other)

    def _quotient(self, one: Value, other: Value) -> Value:
        return _divided(self._digits, one, other)

    def _negation(self, one: Value) -> Value:
        return -one

    def _power(self, base: Value, exponent: Value) -> Value:
        if not base:
            if not isinstance(exponent, Fraction) or exponent <= 0:
                raise Unread("a power of zero")
            return base
        if isinstance(base, Fraction) and isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, int(exponent))
            if exponent.denominator < 100 and (root := _exact_root(base, exponent.denominator)) is not None:
                return self._whole_power(root, exponent.numerator)
        if self._is_negative(base) and not (isinstance(exponent, Fraction) and exponent.denominator == 1):
            if isinstance(exponent, Fraction) and exponent.denominator % 2:  # x^{2/3} is the square of the real root
                return self._power(-base, exponent) * (-1) ** (exponent.numerator % 2)
            self.branched = True
        self._count_call()
        if self._digits.bits > _FINE and not (isinstance(exponent, Fraction) and exponent.denominator == _SQUARE):
            raise Unread("such a power of a number as large is not computed")
        base, exponent = self._digits.real(base), self._digits.real(exponent)
        if abs(exponent) * (abs(self._digits.size(base)) + 4) > 2 * self._digits.largest:
            raise TooLarge("a power is too large")
        return self._digits.context.power(base, exponent)

    def _whole_power(self, base: Fraction, exponent: int) -> Fraction:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if base not in (1, -1) and bits * abs(exponent) > _RATIONAL_BITS:
            raise TooLarge("a power is too large")
        if base in (1, -1):
            exponent %= 2
        return base**exponent

    def _root(self, radicand: Value, index: Value) -> Value:
        if not isinstance(index, Fraction) or index.denominator != 1 or not 2 <= index <= 100:
            return self._power(radicand, self._quotient(Fraction(1), index))
        degree = int(index)
        if isinstance(radicand, Fraction) and (root := _exact_root(radicand, degree)) is not None:
            return root
        self._count_call()
        if self._digits.bits > _FINE and degree > _SQUARE:
            raise Unread("such a root of a number as large is not computed")
        radicand = self._digits.real(radicand)
        if self._is_negative(radicand):
            if degree % 2:
                return -self._digits.context.root(-radicand, degree)
            self.branched = True
        return self._digits.context.root(radicand, degree)

    def _factorial(self, number: Value) -> Value:
        if isinstance(number, Fraction) and number.denominator == 1 and 0 <= number <= _MAX_FACTORIAL:
            return Fraction(math.factorial(int(number)))
        if isinstance(number, Fraction) and number.denominator == 1 and number < 0:
            raise Unread("a factorial of a negative number")
        return self._drawn("factorial", number)

    def _binomial(self, above: Value, below: Value) -> Value:
        if all(isinstance(each, Fraction) and each.denominator == 1 for each in (above, below)):
            if below >= 0 and 0 <= above <= _MAX_FACTORIAL:
                return Fraction(math.comb(int(above), int(below)))
            raise Unread("a binomial coefficient is too large")
        return self._drawn("binomial", above, below)

    def _drawn(self, name: str, *arguments: Value) -> Fraction:
        """A value for what is not computed, always the same for the same rational arguments."""
        if not self._rational(*arguments):
            raise Unread(f"the {name} of such a number is not computed")
        return 1 + Fraction(draw(f"{name} {arguments}", self._point), 1 << 39)

    _OPERATIONS: ClassVar[Mapping[str, Callable[..., Value]]] = {
        "sum": _sum,
        "mixed": _sum,
        "product": _product,
        "quotient": _quotient,
        "negation": _negation,
        "power": _power,
        "root": _root,
        "factorial": _factorial,
        "binomial": _binomial,
    }

    # -- functions -----------------------------------------------------------------------------------------------------

    def _call(self, name: str, arguments: Sequence[Value]) -> Value:
        self._count_call()
        first = arguments[0]
        if name == "abs":
            return abs(first)
        if name in ("floor", "ceil"):
            return self._whole(name, first)
        if name in ("ln", "log", "lg"):
            return self._logarithm(name, arguments)
        if self._digits.bits > _FINE:
            raise Unread("functions of numbers as large are not computed")
        context, number = self._digits.context, self._digits.real(first)
        if name in ("exp", "sinh", "cosh", "tanh") and abs(number) > _REAL_BITS:
            raise Unread("an exponent is too large")
        if name in ("cot", "sec", "csc"):
            return 1 / getattr(context, {"cot": "tan", "sec": "cos", "csc": "sin"}[name])(number)
        return getattr(context, name.replace("arc", "a"))(number)

    def _whole(self, name: str, number: Value) -> Fraction:
        if isinstance(number, self._digits.context.mpc):
            raise Unread("a complex number is not rounded")
        if isinstance(number, Fraction):
            return Fraction(math.floor(number) if name == "floor" else math.ceil(number))
        if self._digits.size(number) > 100:
            raise Unread("a number is too large to round")
        return Fraction(int(getattr(self._digits.context, name)(number)))

    def _logarithm(self, name: str, arguments: Sequence[Value]) -> Value:
        if self._digits.bits > _FINE:
            raise Unread("logarithms of numbers as large are not computed")
        number = self._digits.real(arguments[0])
        if not number:
            raise Unread("a logarithm of zero")
        self.branched = self.branched or self._is_negative(number)
        found = self._digits.context.log(number)
        if name == "ln":
            return found
        base = Fraction(10) if name == "lg" else abs(self._name(_LOG_BASE)) if len(arguments) == 1 else arguments[1]
        return found / self._digits.context.log(self._digits.real(base))

    def _is_negative(self, value: Value) -> bool:
        return not isinstance(value, self._digits.context.mpc) and value < 0

    @staticmethod
    def _rational(*values: Value) -> bool:
        return all(isinstance(value, Fraction) for value in values)


def _exact_root(radicand: Fraction, degree: int) -> Fraction | None:
    """The rational root, if there is one."""
    if radicand < 0:
        root = _exact_root(-radicand, degree) if degree % 2 else None
        return None if root is None else -root
    above, below = (_whole_root(each, degree) for each in (radicand.numerator, radicand.denominator))
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(number: int, degree: int) -> int | None:
    if number.bit_length() > _LARGE_BITS:
        return None
    root = integer_root(number, degree)
    return root if root**degree == number else None


def integer_root(number: int, degree: int) -> int:
    """The largest whole number whose power is not larger (Newton's method)."""
    if number < 2:
        return number
    root = 1 << -(-number.bit_length() // degree)
    while (smaller := ((degree - 1) * root + number // root ** (degree - 1)) // degree) < root:
        root = smaller
    return root


@functools.lru_cache(maxsize=4096)
def draw(name: str, point: int) -> int:
    """40 bits that nobody outside of this process knows, the same for the same name and point."""
    digest = hashlib.blake2b(f"{point} {name}".encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=5).digest()
    return int.from_bytes(digest, "big")
