"""What an answer may be: a number, a table, an expression. All are parsed; nothing here evaluates a text.

Every function gives `None` for a text that is none of these. Each takes time in proportion to the text, but for what
the operators of `Language` take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
Table: TypeAlias = "list[Table] | str"
"""Lists of lists, numbers and texts; numbers as they were written."""

MAX_NUMBER_LENGTH = 400
"""Characters."""
MAX_EXPRESSION_LENGTH = 2_000
"""Characters."""
DEEPEST = 40
"""Operators and brackets of an expression that may stand in one another."""

_UNSIGNED = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(rf"[+-]?{_UNSIGNED}(?:[eE][+-]?[0-9]{{1,3}})?")
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]*[1-9][0-9]*")
_CELL = re.compile(r"\s*(?:([\[(])|([\])])|(,)|'([^'\\]*)'|\"([^\"\\]*)\"|(-?[0-9]+(?:\.[0-9]+)?))\s*")
_TOKEN = re.compile(rf"\s*({_UNSIGNED}|[A-Za-z][A-Za-z0-9_]*|\*\*|[-+*/()])\s*")
_PAIRS = {"[": "]", "(": ")"}


def number(text: str) -> Fraction | None:
    """A decimal number, with or without an exponent, or a ratio of whole numbers. No nan, no infinity."""
    text = text.strip()
    if len(text) > MAX_NUMBER_LENGTH or not (_NUMBER.fullmatch(text) or _RATIO.fullmatch(text)):
        return None
    return Fraction(text)


def table(text: str) -> Table | None:
    """Lists as Python and JSON write them: brackets or parentheses, either quotation marks, or commas alone."""
    opened: list[tuple[str, list[Table]]] = [("", [])]
    place, ready, commas = 0, True, False
    while place < len(text):
        found = _CELL.match(text, place)
        if found is None:
            return None
        place = found.end()
        bracket, closing, comma, *values = found.groups()
        if (bracket or not (closing or comma)) and not ready:  # two values without a comma
            return None
        if bracket:
            opened.append((bracket, []))
        elif closing:
            kind, cells = opened.pop()
            if not opened or _PAIRS[kind] != closing:
                return None
            opened[-1][1].append(cells)
            ready = False
        elif comma:
            if ready:
                return None
            ready = True
            commas = commas or len(opened) == 1
        else:
            opened[-1][1].append(next(value for value in values if value is not None))
            ready = False
    if len(opened) != 1:
        return None
    cells = opened[0][1]
    if commas:
        return cells
    return cells[0] if cells and not _NUMBER.fullmatch(text.strip()) else None


def rows(text: str) -> list[str] | None:
    """The rows of a table, the cells of each with a space between."""
    read = table(text)
    if not isinstance(read, list) or not all(_is_flat(row) for row in read):
        return None
    return [" ".join(str(cell) for cell in row) for row in read]


def cells(text: str) -> list[str] | None:
    """The cells of a table of one row, or the letters of a text in quotation marks."""
    read = table(text)
    return [str(cell) for cell in read] if read is not None and _is_flat(read) else None


def _is_flat(row: Table) -> bool:
    return all(isinstance(cell, str) for cell in row)


@dataclass(frozen=True)
class Language(Generic[T]):
    """Expressions with `+ - * / ** ( )`, and what their parts mean."""

    number: Callable[[str], T]
    """Of an unsigned decimal number."""
    names: Mapping[str, T] = field(default_factory=dict[str, T])
    functions: Mapping[str, Callable[[T], T]] = field(default_factory=dict[str, Callable[[T], T]])
    power: Callable[[T, T], T] | None = None
    """`None` if there is no `**`."""

    def read(self, text: str) -> T | None:
        """The meaning of an expression."""
        if len(text) > MAX_EXPRESSION_LENGTH:
            return None
        tokens, place = list[str](), 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                return None
            tokens.append(found[1])
            place = found.end()
        try:
            return _Reading(self, tokens).whole()
        except (_NotOfTheLanguage, ArithmeticError):
            return None


class _NotOfTheLanguage(Exception):
    pass


class _Reading(Generic[T]):
    """Reads tokens from left to right, one function for each strength of an operator."""

    def __init__(self, language: Language[T], tokens: list[str]) -> None:
        self._language = language
        self._tokens = [*tokens, ""]
        self._place = 0
        self._depth = 0

    def whole(self) -> T:
        value = self._sum()
        if self._next() != "":
            raise _NotOfTheLanguage
        return value

    def _sum(self) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _NotOfTheLanguage
        value: Any = self._product()
        while self._next() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        self._depth -= 1
        return value

    def _product(self) -> T:
        value: Any = self._signed()
        while self._next() in ("*", "/"):
            value = value * self._signed() if self._take() == "*" else value / self._signed()
        return value

    def _signed(self) -> T:
        signs = ""
        while self._next() in ("+", "-"):
            signs += self._take()
        value: Any = self._power()
        return -value if signs.count("-") % 2 else value

    def _power(self) -> T:
        base = self._atom()
        if self._next() != "**":
            return base
        if self._language.power is None:
            raise _NotOfTheLanguage
        self._take()
        self._depth += 1
        if self._depth > DEEPEST:
            raise _NotOfTheLanguage
        exponent = self._signed()
        self._depth -= 1
        return self._language.power(base, exponent)

    def _atom(self) -> T:
        token = self._take()
        if token == "(":
            return self._closed()
        if token[:1].isalpha():
            if self._next() == "(" and token in self._language.functions:
                self._take()
                return self._language.functions[token](self._closed())
            if token in self._language.names:
                return self._language.names[token]
        elif token[:1].isdigit() or token[:1] == ".":
            return self._language.number(token)
        raise _NotOfTheLanguage

    def _closed(self) -> T:
        value = self._sum()
        if self._take() != ")":
            raise _NotOfTheLanguage
        return value

    def _next(self) -> str:
        return self._tokens[self._place]

    def _take(self) -> str:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token


def arithmetic(text: str) -> tuple[Fraction, list[int]] | None:
    """The exact value of an expression of whole numbers with `+ - * / ( )`, and these numbers in their order."""
    used: list[int] = []

    def whole(token: str) -> Fraction:
        if not token.isdigit() or token != str(int(token)):
            raise _NotOfTheLanguage
        used.append(int(token))
        return Fraction(token)

    value = Language(whole).read(text)
    return None if value is None else (value, used)
