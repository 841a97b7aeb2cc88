"""Formulas: parsed by our grammar, and compared by sympy, which sees objects and never a text."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import sympy as typed_sympy  # pyright: ignore[reportMissingTypeStubs]

from gem_reasoning_gym._grammar import Language

sympy: Any = typed_sympy

_HIGHEST = 64
"""A power that is a number; reasoning-gym's are below 20."""
_DIGITS = 50
"""Of a number."""
_MAX_BASE = 10**_DIGITS
"""Of a number that is raised to a power."""
_FUNCTIONS = (
    "exp log ln sqrt sin cos tan cot sec csc asin acos atan acot asec acsc sinh cosh tanh coth asinh acosh atanh"
)
_CONSTANTS = "C C0 C1 C_0 C_1 c c1 c_1 K k D const constant"
"""Names of the constant of integration."""


def is_antiderivative(answer: str, integrand: str, variable: str) -> bool:
    """Is its derivative the integrand? The answer may have a constant, of the usual names."""
    x: Any = sympy.Symbol(variable)
    names = {**{name: sympy.Symbol(name) for name in _CONSTANTS.split()}, "pi": sympy.pi, "E": sympy.E, variable: x}
    language = Language(_number, names, _functions(), _power)
    found, wanted = language.read(answer), language.read(integrand)
    if found is None or wanted is None:
        return False
    difference: Any = sympy.diff(found, x) - wanted
    return sympy.simplify(difference) == 0


def is_polynomial(answer: str, polynomial: str, variables: Iterable[str]) -> bool:
    """Is it this polynomial, multiplied out? Terms may come in any order."""
    names: dict[str, Any] = {name: sympy.Symbol(name) for name in variables}
    language = Language(_number, names, power=_power)
    found, wanted = language.read(answer), language.read(polynomial)
    return found is not None and found == wanted


def _number(token: str) -> Any:
    if len(token) > _DIGITS:
        raise OverflowError
    return sympy.Rational(token)


def _power(base: Any, exponent: Any) -> Any:
    if exponent.is_number and not (exponent.is_Rational and abs(exponent) <= _HIGHEST and exponent.q <= _HIGHEST):
        raise OverflowError
    if base.is_Rational and exponent.is_Rational and max(abs(base.p), base.q) > _MAX_BASE:
        raise OverflowError
    return base**exponent


@functools.cache
def _functions() -> dict[str, Any]:
    return {
        **{name: getattr(sympy, name) for name in _FUNCTIONS.split()},
        **{f"arc{name}": getattr(sympy, f"a{name}") for name in ("sin", "cos", "tan")},
    }
