"""What an answer is made of, read from the outside in: lists, sets, points and equations down to expressions."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from gem_math import _binomials as binomials
from gem_math import _chains as chains
from gem_math import _expressions as expressions
from gem_math import _groups as groups
from gem_math import _keys as keys
from gem_math import _numbersets as numbersets
from gem_math import _parameters as parameters
from gem_math import _systems as systems
from gem_math._answers import (
    Answer,
    Difference,
    Family,
    Listing,
    Matrix,
    Named,
    Numeral,
    Ratio,
    Relation,
    Scalar,
    Tuple,
    Union,
    Words,
)
from gem_math._expressions import Node
from gem_math._tokens import Token, Unread, tokens

_IN_WORDS = frozenset("'-/()")
_SYSTEMS = frozenset(("cases", "aligned", "gathered", "array"))
_MATRICES = _SYSTEMS | {"pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix"}
_ALL_REALS = ["mathbb", "{", "R", "}"]
_FACTORS = re.compile(r"[abckmnp-z]{2}|(?=.*[xyz])[abckmnp-z]{3}")
"""Letters that are multiplied where nothing else stands; others make up words such as `no` and names such as `ABC`."""
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "sixteen": 16}
_REALS = Tuple("()", (Scalar(Node("negation", (Node("name", text="infty"),))), Scalar(Node("name", text="infty"))))
_ZERO = Scalar(expressions.number("0"))
_HALVES = {
    **dict.fromkeys(("+", ">0"), Tuple("()", (_ZERO, _REALS.parts[1]))),
    **dict.fromkeys(("-", "<0"), Tuple("()", (_REALS.parts[0], _ZERO))),
    **dict.fromkeys(("ge0", "+0"), Tuple("[)", (_ZERO, _REALS.parts[1]))),
    **dict.fromkeys(("le0", "-0"), Tuple("(]", (_REALS.parts[0], _ZERO))),
    **dict.fromkeys(("times", "neq0"), Difference(_REALS, (_ZERO,))),
}
"""The real numbers with a mark behind their sign, `\\mathbb{R}^+`, by this mark."""
_NO_BRACES = str.maketrans("", "", "{}")
_CONSTANTS = frozenset(("e", "i", "pi", "infty"))
_CALL = re.compile(r"[A-Za-z](?: \^ \{ - 1 \})?(?: \( [A-Za-z](?: , [A-Za-z])* \))?|\( [A-Za-z](?: , [A-Za-z])+ \)")
"""A function and its arguments, an inverse, or a point, as a name before a sign of equality."""
_MAX_DEPTH = 10


@functools.lru_cache(maxsize=256)  # a group of answers has one reference, and many are alike
def read(answer: str, functions: frozenset[str] = frozenset()) -> tuple[Answer, ...]:
    """The ways to read an answer: with `1,234` there are two. Raises `Unread` where there is none.

    Args:
        answer: the text.
        functions: letters that are functions and no factors before brackets.
    """
    found, names, kind = parameters.split(tokens(answer))
    if kind:
        return tuple(Family(each, names, kind) for each in _read(found, functions))
    return _read(found, functions)


def _read(found: Sequence[Token], functions: frozenset[str]) -> tuple[Answer, ...]:
    if len(found) == 1 and found[0].kind == "number":
        return (Scalar(expressions.number(found[0].text)),)
    ways: list[Sequence[Token]] = [found]
    if any(token.kind == "number" and _is_group(token) for token in found):
        ways = [_with_thousands(found, commas=commas) for commas in (True, False)]
        ways = ways[: 1 if ways[0] == ways[1] else 2]
    if any("C" in token.text for token in found) and (written := binomials.written_out(found)) != [*found]:
        ways.append(written)
    answers: list[Answer] = []
    for way in ways:
        try:
            answers.append(_Structure(0, functions).read(way))
        except Unread:
            if way is ways[-1] and not answers:
                raise
    return tuple(answers)


def _with_thousands(found: Sequence[Token], *, commas: bool) -> list[Token]:
    """The tokens with `1 234` as one number, and where `commas` are thousands, with `1,234` outside of brackets."""
    merged: list[Token] = []
    depth = place = 0
    while place < len(found):
        token = found[place]
        depth += (token.text in ("(", "[", "\\{")) - (token.text in (")", "]", "\\}"))
        place += 1
        if token.kind == "number" and re.fullmatch(r"[1-9]\d{0,2}", token.text) and not _after_number(merged):
            text = token.text
            while "." not in text and (group := _thousands(found, place, commas=commas and not depth)):
                place += group
                text += found[place - 1].text
            token = token._replace(text=text)
        merged.append(token)
    return merged


def _after_number(merged: Sequence[Token]) -> bool:
    return bool(merged) and merged[-1].kind == "number"


def _thousands(found: Sequence[Token], place: int, *, commas: bool) -> int:
    """How many tokens the next group of three digits takes, with what stands before it."""
    ahead = [*found[place : place + 3], Token("end", ""), Token("end", ""), Token("end", "")]
    if commas and ahead[0] == Token("symbol", ",") and _is_group(ahead[1]) and not ahead[1].spaced:
        return 2
    return 1 if ahead[0].spaced and _is_group(ahead[0]) and ahead[1].text != "/" else 0


def _is_group(token: Token) -> bool:
    return token.kind == "number" and bool(re.fullmatch(r"\d{3}(?:\.\d+)?", token.text))


class _Structure:
    """Reads what an answer is made of, from the outside in."""

    def __init__(self, depth: int, functions: frozenset[str]) -> None:
        if depth > _MAX_DEPTH:
            raise Unread("it nests too deep")
        self._depth = depth
        self._functions = functions

    def read(self, found: Sequence[Token]) -> Answer:
        """Raises `Unread`."""
        for form in (
            self._in_braces,
            self._matrix,
            self._listing,
            self._words,
            self._union,
            self._difference,
            self._relation,
            self._numeral,
            self._delimited,
            self._ratio,
        ):
            if (answer := form(found)) is not None:
                return answer
        return self._scalar(found)

    def _inner(self, found: Sequence[Token]) -> Answer:
        if not found:
            raise Unread("a part is empty")
        return _Structure(self._depth + 1, self._functions).read(found)

    def _expression(self, found: Sequence[Token]) -> Node:
        return expressions.read(found, self._functions)

    def _expression_if_one(self, found: Sequence[Token]) -> Node | None:
        try:
            return self._expression(found)
        except Unread:
            return None

    # -- forms: each gives `None` where the answer is not of this form -------------------------------------------------

    def _in_braces(self, found: Sequence[Token]) -> Answer | None:
        braced = found[0].text == "{" and found[-1].text == "}" and groups.balanced(found[1:-1])
        return self._inner(found[1:-1]) if braced else None

    def _listing(self, found: Sequence[Token]) -> Answer | None:
        if not any(map(groups.separates, found)):
            return None
        parts = groups.split(_without_commas_before_words(found), groups.separates)
        if len(parts) == 1:
            return None
        listed = _flat([self._inner(part) for part in parts])
        outside = groups.outside(_without_commas_before_words(found))
        breaks = [_is_or(token) for token in outside if groups.separates(token)]
        words = {token.text if token.text in groups.JOINING else "" for token in outside if groups.separates(token)}
        is_decided = any(isinstance(part, Relation) for part in listed) or all(map(_is_word, listed))
        word = words.pop() if len(words) == 1 and is_decided else ""
        if any(breaks) and len(breaks) == len(listed) - 1:
            return systems.of(listed, breaks) or Listing(listed, either=True, word=word)
        return systems.of(listed) or Listing(listed, either=any(breaks), word=word)

    def _words(self, found: Sequence[Token]) -> Answer | None:
        letters = [token for token in found if token.kind in ("letters", "word")]
        symbols = {token.text for token in found if token not in letters}
        if not letters or any(token.kind not in ("letters", "word", "symbol") for token in found):
            return None
        if symbols - _IN_WORDS or (symbols and not any(len(token.text) > 3 for token in letters)):
            return None
        if len(letters) == 1 and (len(letters[0].text) == 1 or _is_product(letters[0])):
            return None
        if all(token.kind == "letters" and len(token.text) == 1 and token.text.islower() for token in letters):
            return None
        if any(token.text in "-/" and not joined for token, joined in zip(found, _between_letters(found), strict=True)):
            return None
        kept = [token.text.casefold() for token in found if token in letters or token.text == "/"]
        return Words(" ".join(kept))

    def _union(self, found: Sequence[Token]) -> Answer | None:
        if not _has(found, "cup") or _has(groups.outside(found), "=", "in", "approx"):  # x = [1,2) \\cup [3,4)
            return None
        parts = groups.split(found, lambda token: token.kind == "command" and token.text == "cup")
        return Union(tuple(self._inner(part) for part in parts)) if len(parts) > 1 else None

    def _difference(self, found: Sequence[Token]) -> Answer | None:
        if not _has(found, "setminus", "mathbb"):
            return None
        parts = groups.split(found, lambda token: token.kind == "command" and token.text == "setminus")
        if [token.text for token in found[:5]] == [*_ALL_REALS, "-"]:
            parts = [found[:4], found[5:]]
        if len(parts) == 1:
            return None
        whole, *removed = map(self._inner, parts)
        return Difference(whole, tuple(removed))

    def _relation(self, found: Sequence[Token]) -> Answer | None:
        if not any(map(groups.relates, found)):
            return None
        signs = tuple(groups.RELATIONS[token.text] for token in groups.outside(found) if groups.relates(token))
        if not signs:
            return None
        sides = groups.split(found, groups.relates)
        if {*signs} <= {"=", "~"}:
            return self._equality(signs, sides)
        if signs == ("in",) and (name := self._name(sides[0])) is not None:
            return Named(name[0], self._inner(sides[1]), name[1])
        if "in" in signs or "~" in signs:
            raise Unread("what is in a set is not named")
        trees = tuple(map(self._expression, sides))
        if signs == ("!=",) and _has_sign(trees[1]):
            return Listing(tuple(Relation(signs, (trees[0], _signed(trees[1], each))) for each in (True, False)))
        return Relation(signs, trees)

    def _equality(self, signs: tuple[str, ...], sides: Sequence[Sequence[Token]]) -> Answer:
        """A name and its value, an equation, or a chain that ends in a value."""
        if not sides[0]:  # \\approx 5
            signs, sides = signs[1:], sides[1:]
            return self._equality(signs, sides) if signs else self._inner(sides[0])
        if (name := self._name(sides[0])) is not None:
            names = [name, *filter(None, map(self._name, sides[1:-1]))]
            if len(names) == len(sides) - 1 > 1:  # x = y = 2
                value = self._inner(sides[-1])
                return systems.of([Named(each[0], value, each[1]) for each in names]) or value
            if len(sides) > 2 and _has(list(itertools.chain(*sides[1:])), name[0]):
                raise Unread("a name is said by itself")
            return systems.named(Named(name[0], self._value(signs[1:], sides[1:]), name[1]))
        first = self._expression_if_one(sides[0])
        is_value = first is not None and first.kind == "value"  # I(0) = I_0 says what I(0) is
        if signs == ("=",) and not is_value and (name := self._name(sides[1])) is not None:
            return Named(name[0], self._inner(sides[0]), name[1])
        if first is None:
            return Named(keys.key(sides[0], self._functions), self._value(signs[1:], sides[1:]), is_claim=True)
        if len(sides) > 2 or signs[0] == "~":
            trees = (first, *map(self._expression, sides[1:]))
            return chains.chain(signs, trees, keys.key(sides[0], self._functions))
        second = self._expression_if_one(sides[1])
        if second is None:
            return Named(keys.key(sides[0], self._functions), self._inner(sides[1]), first, is_claim=True)
        return chains.equation(first, second)

    def _value(self, signs: tuple[str, ...], sides: Sequence[Sequence[Token]]) -> Answer:
        """What a name is: an answer, or a chain that ends in it."""
        return chains.value(signs, [*map(self._expression, sides)]) if signs else self._inner(sides[0])

    def _numeral(self, found: Sequence[Token]) -> Answer | None:
        place = next((place for place, token in enumerate(found) if token.text == "_"), 0)
        if not place:
            return None
        base = _base(found[place + 1 :])
        if place > 2 and (found[0].text, found[place - 1].text) == ("(", ")"):  # (101)_2
            found, place = found[1 : place - 1], place - 2
        digits = "".join(token.text for token in found[:place])
        whole, _, part = digits.partition(".")
        if (
            not base
            or not (whole + part).isalnum()
            or any(each.kind == "command" or each.spaced for each in found[1:place])
        ):
            return None
        if not digits[0].isdigit() and not (base > 10 and len(digits) > 1):
            return None
        try:
            return Numeral(Fraction(int(whole + part, base), base ** len(part)), base)
        except ValueError:
            raise Unread("it is no number in this base") from None

    def _delimited(self, found: Sequence[Token]) -> Answer | None:
        if [token.text for token in found] in (["emptyset"], ["\\{", "\\}"]):
            return Listing((), braces=True)
        if [token.text for token in found[:4]] == _ALL_REALS:
            return self._of_reals("".join(token.text for token in found[4:]).translate(_NO_BRACES))
        first, last, inside = found[0].text, found[-1].text, found[1:-1]
        if first == "]" or last == "[":  # ]0, 1[
            first, last = first.replace("]", "("), last.replace("[", ")")
        if not inside or not groups.balanced(inside) or first + last not in ("()", "[]", "[)", "(]", "\\{\\}"):
            return None
        if first == "\\{":
            return self._set(inside)
        parts = groups.split(inside, lambda token: token.text in groups.SEPARATORS and token.kind == "symbol")
        if len(parts) == 1:
            inner = self._inner(inside)
            if found[-1].text == "[" or found[0].text == "]":
                raise Unread("an interval has two ends")
            return inner if first + last == "()" or isinstance(inner, Matrix) else Tuple(first + last, (inner,))
        inner = tuple(map(self._inner, parts))
        return (systems.of(inner) if first + last == "()" else None) or Tuple(first + last, inner)

    def _of_reals(self, mark: str) -> Answer | None:
        """All real numbers, or those of a sign: `\\mathbb{R}^+`."""
        return _REALS if not mark else _HALVES.get(mark[1:])

    def _set(self, inside: Sequence[Token]) -> Answer:
        outside = [id(token) for token in groups.outside(inside) if token.kind == "symbol" and token.text in "|:"]
        place = next((place for place, token in enumerate(inside) if id(token) in outside[:1]), 0)
        if place and self._is_real(inside[:place]):
            found = self._inner(inside[place + 1 :])
            return Union((found,)) if numbersets.is_one(found) else found  # the name means nothing outside
        parts = groups.split(inside, lambda token: token.text in groups.SEPARATORS and token.kind == "symbol")
        listed = _flat([self._inner(part) for part in parts])
        return systems.of(listed) or Listing(listed, braces=True)

    def _is_real(self, found: Sequence[Token]) -> bool:
        """Is it a name, or one of a real number: `x\\in\\mathbb{R}`?"""
        name, *sets = groups.split(found, lambda token: token.kind == "command" and token.text == "in")
        if sets and [token.text for token in sets[0]] != _ALL_REALS:
            return False
        return self._name(name) is not None

    def _matrix(self, found: Sequence[Token]) -> Answer | None:
        if found[0] != Token("command", "begin", found[0].spaced):
            return None
        texts = [token.text for token in found]
        end = len(found) - 4
        if end < 4 or texts[2] not in _MATRICES or texts[end:] != ["end", "{", texts[2], "}"] or "end" in texts[:end]:
            return None
        inside = found[4:end]
        if texts[2] in ("array", "cases") and inside and inside[0].text == "{":  # how columns are aligned
            inside = inside[texts.index("}", 4) - 3 :]
        rows = [row for row in groups.split(inside, lambda token: token.text == "\\\\") if row]
        if texts[2] in _SYSTEMS and (system := self._system(rows)) is not None:
            return system
        cells = [groups.split(row, lambda token: token.text == "&") for row in rows]
        if not cells or len({len(row) for row in cells}) != 1:
            raise Unread("rows differ in length")
        return Matrix(tuple(tuple(self._inner(cell) for cell in row) for row in cells))

    def _system(self, rows: Sequence[Sequence[Token]]) -> Answer | None:
        plain = [[token for token in row if token.text != "&"] for row in rows]
        if not all(any(token.text == "=" for token in row) for row in plain):
            return None
        try:
            return systems.of([self._inner(row[:-1] if row[-1].text == "," else row) for row in plain])
        except Unread:
            return None

    def _ratio(self, found: Sequence[Token]) -> Answer | None:
        if not _has(found, ":"):
            return None
        parts = groups.split(found, lambda token: token.text == ":")
        return Ratio(tuple(map(self._expression, parts))) if len(parts) > 1 else None

    def _scalar(self, found: Sequence[Token]) -> Answer:
        tree = self._expression(found)
        if not _has_sign(tree):
            return Scalar(tree)
        return Listing(tuple(Scalar(_signed(tree, positive)) for positive in (True, False)))

    def _name(self, found: Sequence[Token]) -> tuple[str, Node | None] | None:
        """The name that these tokens are, such as `x`, `f(x)`, `(x, y)` or `\\text{Area}`, and as an expression."""
        if not found:
            return None
        joined = " ".join(token.text for token in found)
        if all(token.kind == "word" for token in found):
            return joined.casefold(), None
        if joined in _CONSTANTS:
            return None
        if _CALL.fullmatch(joined) and len(found) > 1:
            return joined, None
        tree = self._expression_if_one(found)
        return (tree.text, tree) if tree is not None and tree.kind == "name" else None


# -- tokens ----------------------------------------------------------------------------------------------------------


def _has(found: Sequence[Token], *texts: str) -> bool:
    return any(token.text in texts for token in found)


def _is_or(token: Token) -> bool:
    return token.kind in ("letters", "word") and token.text == "or"


def _is_word(answer: Answer) -> bool:
    return isinstance(answer, Words) or (isinstance(answer, Scalar) and answer.tree.kind == "name")


def _without_commas_before_words(found: Sequence[Token]) -> list[Token]:
    """`1, 2, and 3` has one separator between 2 and 3."""
    pairs = zip(found, [*found, Token("end", "")][1:], strict=True)
    return [token for token, after in pairs if not (token.text in groups.SEPARATORS and after.text in groups.JOINING)]


def _between_letters(found: Sequence[Token]) -> list[bool]:
    """For each token, whether letters stand before it and after it."""
    kinds = ["", *(token.kind for token in found), ""]
    return [{before, after} <= {"letters", "word"} for before, after in zip(kinds, kinds[2:], strict=False)]


def _is_product(token: Token) -> bool:
    return token.kind == "letters" and bool(_FACTORS.fullmatch(token.text))


def _base(found: Sequence[Token]) -> int:
    """The base that an index says, or 0."""
    texts = [token.text for token in found]
    if len(texts) == 3 and (texts[0], texts[2]) == ("{", "}"):
        texts = texts[1:2]
    if len(texts) != 1:
        return 0
    base = int(texts[0]) if texts[0].isdigit() and len(texts[0]) < 3 else _BASES.get(texts[0].lower(), 0)
    return base if 2 <= base <= 36 else 0


# -- trees -----------------------------------------------------------------------------------------------------------


def _flat(parts: Sequence[Answer]) -> tuple[Answer, ...]:
    """Without listings in listings: `1 \\pm \\sqrt{2}, 3` are three answers."""
    flat: list[Answer] = []
    for part in parts:
        flat += part.parts if isinstance(part, Listing) and not part.braces else [part]
    return tuple(flat)


def _has_sign(tree: Node) -> bool:
    return tree.kind == "sign" or any(map(_has_sign, tree.parts))


def _signed(tree: Node, positive: bool) -> Node:
    """The expression with the upper or the lower signs of its plus-minus."""
    parts = tuple(_signed(part, positive) for part in tree.parts if part.kind != "sign")
    if len(parts) == len(tree.parts):
        return replace(tree, parts=parts)
    return parts[0] if positive == (tree.parts[0].text == "pm") else Node("negation", parts)
