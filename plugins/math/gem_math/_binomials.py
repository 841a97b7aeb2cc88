"""Binomial coefficients as they are written by hand: `C_n^k`, `C(n, k)`, `{}_nC_k`."""

from __future__ import annotations

from collections.abc import Sequence

from gem_math import _groups as groups
from gem_math._tokens import Token

_LETTER = "C"
_EMPTY = ["{", "}"]
_MARKS = ("_", "^")


def written_out(found: Sequence[Token]) -> list[Token]:
    """The tokens with `\\binom{n}{k}` for such a coefficient. What stands first, as index or exponent, is `n`."""
    found = [letter for token in found for letter in _letters(token)]
    kept: list[Token] = []
    place = 0
    while place < len(found):
        coefficient = _at(found, place)
        if coefficient is None:
            kept.append(found[place])
            place += 1
            continue
        above, below, place = coefficient
        kept += [Token("command", "binom", True), *_group(above), *_group(below)]
    return kept


def _letters(token: Token) -> list[Token]:
    """`nC` of `_nC_k` as two letters."""
    if token.kind != "letters" or len(token.text) > 2 or _LETTER not in token.text:
        return [token]
    return [Token("letters", letter, token.spaced and not place) for place, letter in enumerate(token.text)]


def _at(found: Sequence[Token], place: int) -> tuple[Sequence[Token], Sequence[Token], int] | None:
    """`n`, `k` and where the coefficient ends that begins here, if one does."""
    start = place
    if [token.text for token in found[place : place + 2]] == _EMPTY:
        place += 2
    if _text(found, place) in _MARKS:  # {}_n C_k
        above, place = _argument(found, place + 1)
        if not above or not _is_letter(found, place) or _text(found, place + 1) != "_":
            return None
        below, place = _argument(found, place + 2)
        return (above, below, place) if below else None
    if place > start or not _is_letter(found, place):
        return None
    if _text(found, place + 1) == "(":
        return _in_brackets(found, place + 1)
    first, second = _text(found, place + 1), ""
    if first in _MARKS:
        above, place = _argument(found, place + 2)
        second = _text(found, place)
        if above and {first, second} == {*_MARKS}:
            below, place = _argument(found, place + 1)
            return (above, below, place) if below else None
    return None


def _in_brackets(found: Sequence[Token], place: int) -> tuple[Sequence[Token], Sequence[Token], int] | None:
    end = next((end for end in range(place, len(found)) if groups.balanced(found[place : end + 1])), 0)
    parts = groups.split(found[place + 1 : end], lambda token: token.text == ",")
    return (parts[0], parts[1], end + 1) if len(parts) == 2 and all(parts) else None


def _argument(found: Sequence[Token], place: int) -> tuple[Sequence[Token], int]:
    """The content of braces, or one token, and where it ends."""
    if _text(found, place) != "{":
        one = found[place : place + 1]
        return (one, place + 1) if one and one[0].kind in ("number", "letters") else ((), place)
    end = next((end for end in range(place, len(found)) if groups.balanced(found[place : end + 1])), 0)
    return found[place + 1 : end], end + 1


def _is_letter(found: Sequence[Token], place: int) -> bool:
    return _text(found, place) == _LETTER and found[place].kind in ("letters", "word")


def _text(found: Sequence[Token], place: int) -> str:
    return found[place].text if place < len(found) else ""


def _group(inside: Sequence[Token]) -> list[Token]:
    return [Token("symbol", "{"), *inside, Token("symbol", "}")]
