"""Numbers that are too large to be written out, such as 2^{100000}: their residues by a large prime.

Two numbers that differ have different residues but for a negligible share of primes, and each process has a prime of
its own that nobody knows (Freivalds, MFCS 1979). Exponents are computed exactly, as residues do not give them.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import ClassVar, TypeAlias

from gem_math._expressions import Node
from gem_math._tokens import Unread

_PRIME_BITS = 127
_EXPONENT_BITS = 4096
_MAX_FACTORIAL = 1000
_WITNESSES = 24


_Exact: TypeAlias = Callable[[Node], Fraction | None]
"""The value of a rational expression, written out."""


def equal(one: Node, other: Node, exact: _Exact) -> bool:
    """Are two expressions of rational numbers and variables equal? Raises `Unread` where they are not such."""
    return _Residues(_prime(), exact).of(one) == _Residues(_prime(), exact).of(other)


class _Residues:
    def __init__(self, prime: int, exact: _Exact) -> None:
        self._prime = prime
        self._exact = exact

    def of(self, node: Node) -> int:
        """The residue of an expression."""
        if node.kind == "number":
            return self._quotient(node.value.numerator, node.value.denominator)
        if node.kind == "name" and node.text not in ("pi", "e", "i", "infty"):
            return _draw(node.text)
        if node.kind == "power":
            return self._power(*node.parts)
        if node.kind == "factorial":
            return math.factorial(self._whole(node.parts[0], _MAX_FACTORIAL)) % self._prime
        if node.kind not in self._OPERATIONS:
            raise Unread(f"a {node.kind} has no residue")
        return self._OPERATIONS[node.kind](self, *map(self.of, node.parts)) % self._prime

    def _power(self, base: Node, exponent: Node) -> int:
        residue, power = self.of(base), self._whole(exponent, 1 << _EXPONENT_BITS)
        if not residue and power <= 0:
            raise Unread("a power of zero")
        return pow(residue, power, self._prime)

    def _whole(self, tree: Node, largest: int) -> int:
        """The whole number that an expression is, in full."""
        value = self._exact(tree)
        if value is None or value.denominator != 1 or abs(value) > largest:
            raise Unread("an exponent is no whole number, or is too large")
        return int(value)

    def _sum(self, *terms: int) -> int:
        return sum(terms)

    def _product(self, one: int, other: int) -> int:
        return one * other

    def _quotient(self, one: int, other: int) -> int:
        if not other % self._prime:
            raise Unread("a division by zero")
        return one * pow(other, -1, self._prime) % self._prime

    def _negation(self, one: int) -> int:
        return -one

    _OPERATIONS: ClassVar[Mapping[str, Callable[..., int]]] = {
        "sum": _sum,
        "mixed": _sum,
        "product": _product,
        "quotient": _quotient,
        "negation": _negation,
    }


@functools.lru_cache(maxsize=1)
def _prime() -> int:
    draws = random.SystemRandom()
    while True:
        candidate = draws.getrandbits(_PRIME_BITS) | 1 << (_PRIME_BITS - 1) | 1
        if _is_prime(candidate, draws):
            return candidate


@functools.lru_cache(maxsize=1024)
def _draw(name: str) -> int:
    return random.SystemRandom().randrange(2, _prime())


def _is_prime(number: int, draws: random.Random) -> bool:
    """By the test of Miller and Rabin (Rabin, J. Number Theory 12, 1980)."""
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    odd = (number - 1) >> twos
    return all(_witnesses(number, pow(draws.randrange(2, number - 1), odd, number), twos) for _ in range(_WITNESSES))


def _witnesses(number: int, power: int, twos: int) -> bool:
    """Does this power not show that the number is composite?"""
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
