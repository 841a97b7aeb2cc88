"""Tokens in groups: what stands outside of brackets, and between separators there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gem_math._tokens import Token

_OPENING, _CLOSING = frozenset(("(", "[", "{", "\\{")), frozenset((")", "]", "}", "\\}"))
SEPARATORS = frozenset((",", ";"))
"""Signs between answers."""
JOINING = frozenset(("and", "or"))
"""Words between answers."""
RELATIONS = {"=": "=", "<": "<", ">": ">", "le": "<=", "ge": ">=", "neq": "!=", "in": "in", "approx": "~"}
"""Signs between the sides of an equation or an inequality."""


def outside(found: Sequence[Token]) -> list[Token]:
    """The tokens that stand in no bracket."""
    depth = 0
    outside: list[Token] = []
    for token in found:
        depth -= token.kind == "symbol" and token.text in _CLOSING
        if not depth:
            outside.append(token)
        depth += token.kind == "symbol" and token.text in _OPENING
    return outside


def split(found: Sequence[Token], separates: Callable[[Token], bool]) -> list[Sequence[Token]]:
    """What stands between tokens that separate, outside of brackets."""
    separators = {id(token) for token in outside(found) if separates(token)}
    parts: list[list[Token]] = [[]]
    for token in found:
        if id(token) in separators:
            parts.append([])
        else:
            parts[-1].append(token)
    return list(parts)


def balanced(inside: Sequence[Token]) -> bool:
    """Does each bracket close?"""
    depth = 0
    for token in inside:
        if token.kind == "symbol":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth < 0:
            return False
    return not depth


def separates(token: Token) -> bool:
    """Does it stand between answers?"""
    if token.text in SEPARATORS:
        return token.kind == "symbol"
    return token.text in JOINING and token.kind in ("letters", "word")


def relates(token: Token) -> bool:
    """Is it a sign between the sides of an equation or an inequality?"""
    return token.text in RELATIONS and token.kind == ("symbol" if token.text in "=<>" else "command")
