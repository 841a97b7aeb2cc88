"""Assertions as calls: `assert f(1, 2) == 3` wants 3 of `f` for 1 and 2.

An assertion is never run beside a program, which could make anything equal: the program is called, and what it returns
is compared elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

_MAX_LENGTH = 100_000
"""Characters of an assertion."""
THROUGH: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "frozenset": frozenset,
    "list": list,
    "set": set,
    "sorted": sorted,
    "tuple": tuple,
}
"""Functions that an assertion may apply to what was returned."""


class Assertion(NamedTuple):
    """What an assertion calls, and what it wants."""

    function: str
    arguments: list[Any]
    keywords: dict[str, Any]
    wanted: Any
    through: str | None = None
    """The function of `THROUGH` that is applied first."""


def assertions(text: str) -> Iterator[Assertion]:
    """The assertions of a text.

    Raises:
        ValueError: it has something else, or one that is no comparison of a call with a value.
    """
    try:
        statements = ast.parse(text[:_MAX_LENGTH]).body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r:.80} is no Python") from error
    if not statements:
        raise ValueError("a test is empty")
    for statement in statements:
        found = _read(statement.test) if isinstance(statement, ast.Assert) else None
        if found is None:
            raise ValueError(f"{ast.unparse(statement)!r:.80} is not of the form: assert function(values) == value")
        yield found


def _read(test: ast.expr) -> Assertion | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _called(test.operand, False, "bool")
    if not isinstance(test, ast.Compare):
        return _called(test, True, "bool")
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return None
    sides = (test.left, test.comparators[0])
    for call, value in (sides, sides[::-1]):
        through, inside = _unwrapped(call)
        wanted = _value(value)
        if wanted is not None and (found := _called(inside, wanted[0], through)):
            return found
    return None


def _called(call: ast.expr, wanted: Any, through: str | None) -> Assertion | None:
    if not isinstance(call, ast.Call):
        return None
    named = call.func
    if isinstance(named, ast.Attribute) and ast.unparse(named.value) == "Solution()":
        named = ast.Name(named.attr)
    arguments = [_value(each) for each in call.args]
    keywords = {each.arg: _value(each.value) for each in call.keywords}
    if not isinstance(named, ast.Name) or None in arguments or None in keywords or None in keywords.values():
        return None
    values = [each[0] for each in arguments if each]
    return Assertion(named.id, values, {str(name): each[0] for name, each in keywords.items() if each}, wanted, through)


def _unwrapped(call: ast.expr) -> tuple[str | None, ast.expr]:
    """A call without the function of `THROUGH` around it, and that function."""
    match call:
        case ast.Call(ast.Name(name), [ast.Call() as inside], []) if name in THROUGH:
            return name, inside
        case _:
            return None, call


def _value(node: ast.expr) -> tuple[Any] | None:
    """A value that stands in the text, if need be through one of these functions."""
    try:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
            return (THROUGH[node.func.id](ast.literal_eval(node.args[0])),)
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, LookupError, RecursionError, MemoryError):
        return None
