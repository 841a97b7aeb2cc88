"""What an answer is: a number or an expression, words, a point, a set, an interval, an equation, a matrix."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gem_math import _evaluation as evaluation
from gem_math import _expressions as expressions
from gem_math._expressions import Node
from gem_math._tokens import Token, Unread, tokens


@dataclass(frozen=True)
class Scalar:
    """A number or an expression."""

    tree: Node


@dataclass(frozen=True)
class Words:
    """A text, in lower case, its words apart by one space each."""

    text: str


@dataclass(frozen=True)
class Numeral:
    """A whole number that is written in another base than ten: what is asked for is how it is written."""

    value: int
    base: int


@dataclass(frozen=True)
class Tuple:
    """A point, a vector, or an interval: parts in their order, with brackets."""

    brackets: str
    parts: tuple[Answer, ...]


@dataclass(frozen=True)
class Listing:
    """Several answers; `braces` where they are written as a set."""

    parts: tuple[Answer, ...]
    braces: bool = False


@dataclass(frozen=True)
class Matrix:
    """Rows of equal length."""

    rows: tuple[tuple[Answer, ...], ...]


@dataclass(frozen=True)
class Named:
    """A name, and what it is: `x = 5`."""

    name: str
    answer: Answer
    left: Node | None = None
    """The name as an expression, if it is one."""


@dataclass(frozen=True)
class Relation:
    """An equation or an inequality between expressions; several in a row are a chain."""

    signs: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True)
class Union:
    """Intervals and sets of numbers together."""

    parts: tuple[Answer, ...]


@dataclass(frozen=True)
class Ratio:
    """Numbers with colons between them."""

    parts: tuple[Node, ...]


Answer: TypeAlias = "Scalar | Words | Numeral | Tuple | Listing | Matrix | Named | Relation | Union | Ratio"

_OPENING, _CLOSING = frozenset(("(", "[", "{", "\\{")), frozenset((")", "]", "}", "\\}"))
_SEPARATORS = frozenset((",", ";"))
_JOINING = frozenset(("and", "or"))
_RELATIONS = {"=": "=", "<": "<", ">": ">", "le": "<=", "ge": ">=", "neq": "!=", "in": "in"}
_IN_WORDS = frozenset("'-/()")
_MATRICES = frozenset(("pmatrix", "bmatrix", "matrix", "Bmatrix", "array", "smallmatrix"))
_FACTORS = re.compile(r"[abckmnp-z]{2}|(?=.*[xyz])[abckmnp-z]{3}")
"""Letters that are multiplied where nothing else stands; others make up words such as `no` and names such as `ABC`."""
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "sixteen": 16}
_REALS = Tuple("()", (Scalar(Node("negation", (Node("name", text="infty"),))), Scalar(Node("name", text="infty"))))
_CALL = re.compile(r"[A-Za-z](?: \^ \{ - 1 \})?(?: \( [A-Za-z](?: , [A-Za-z])* \))?|\( [A-Za-z](?: , [A-Za-z])+ \)")
"""A function and its arguments, an inverse, or a point, as a name before a sign of equality."""
_MAX_DEPTH = 10


@functools.lru_cache(maxsize=256)  # a group of answers has one reference, and many are alike
def read(answer: str) -> tuple[Answer, ...]:
    """The ways to read an answer: with `1,234` there are two. Raises `Unread` where there is none."""
    found = tokens(answer)
    joined = _with_thousands(found, commas=True)
    found = _with_thousands(found, commas=False)
    ways = [joined] if joined == found else [joined, found]
    answers: list[Answer] = []
    for way in ways:
        try:
            answers.append(_Structure(0).read(way))
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

    def __init__(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise Unread("it nests too deep")
        self._depth = depth

    def read(self, found: Sequence[Token]) -> Answer:
        """Raises `Unread`."""
        for form in (
            self._in_braces,
            self._listing,
            self._words,
            self._union,
            self._relation,
            self._numeral,
            self._delimited,
            self._matrix,
            self._ratio,
        ):
            if (answer := form(found)) is not None:
                return answer
        return self._scalar(found)

    def _inner(self, found: Sequence[Token]) -> Answer:
        if not found:
            raise Unread("a part is empty")
        return _Structure(self._depth + 1).read(found)

    # -- forms: each gives `None` where the answer is not of this form -------------------------------------------------

    def _in_braces(self, found: Sequence[Token]) -> Answer | None:
        braced = found[0].text == "{" and found[-1].text == "}" and _balanced(found[1:-1])
        return self._inner(found[1:-1]) if braced else None

    def _listing(self, found: Sequence[Token]) -> Answer | None:
        parts = _split(_without_commas_before_words(found), _separates)
        return Listing(_flat([self._inner(part) for part in parts])) if len(parts) > 1 else None

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
        parts = _split(found, lambda token: token.kind == "command" and token.text == "cup")
        return Union(tuple(self._inner(part) for part in parts)) if len(parts) > 1 else None

    def _relation(self, found: Sequence[Token]) -> Answer | None:
        signs = tuple(_RELATIONS[token.text] for token in _outside(found) if _relates(token))
        if not signs:
            return None
        sides = _split(found, _relates)
        if signs in (("=",), ("in",)):
            if (left := _name(sides[0])) is not None:
                return Named(left[0], self._inner(sides[1]), left[1])
            if signs == ("=",) and (right := _name(sides[1])) is not None:
                return Named(right[0], self._inner(sides[0]), right[1])
        if set(signs) == {"="} and len(signs) > 1:
            return self._chain(sides)
        if "in" in signs:
            raise Unread("what is in a set is not named")
        return Relation(signs, tuple(expressions.read(side) for side in sides))

    def _chain(self, sides: Sequence[Sequence[Token]]) -> Answer:
        """`x = 10/4 = 2.5`: what stands last, if it is equal to all before it."""
        name = _name(sides[0])
        trees = [expressions.read(side) for side in sides[name is not None :]]
        if not all(evaluation.equal(tree, trees[-1]) for tree in trees[:-1]):
            raise Unread("the sides of an equation differ")
        return Scalar(trees[-1]) if name is None else Named(name[0], Scalar(trees[-1]), name[1])

    def _numeral(self, found: Sequence[Token]) -> Answer | None:
        place = next((place for place, token in enumerate(found) if token.text == "_"), 0)
        digits, base = "".join(token.text for token in found[:place]), _base(found[place + 1 :])
        if not base or not digits.isalnum() or any(each.kind == "command" or each.spaced for each in found[1:place]):
            return None
        if not digits[0].isdigit() and not (base > 10 and len(digits) > 1):
            return None
        try:
            return Numeral(int(digits, base), base)
        except ValueError:
            raise Unread("it is no number in this base") from None

    def _delimited(self, found: Sequence[Token]) -> Answer | None:
        if [token.text for token in found] in (["emptyset"], ["\\{", "\\}"]):
            return Listing((), braces=True)
        if [token.text for token in found] == ["mathbb", "{", "R", "}"]:
            return _REALS
        first, last, inside = found[0].text, found[-1].text, found[1:-1]
        if first == "]" or last == "[":  # ]0, 1[
            first, last = first.replace("]", "("), last.replace("[", ")")
        if not inside or not _balanced(inside) or first + last not in ("()", "[]", "[)", "(]", "\\{\\}"):
            return None
        if first == "\\{":
            return self._set(inside)
        parts = _split(inside, lambda token: token.text in _SEPARATORS and token.kind == "symbol")
        if len(parts) == 1:
            inner = self._inner(inside)
            if found[-1].text == "[" or found[0].text == "]":
                raise Unread("an interval has two ends")
            return inner if first + last == "()" or isinstance(inner, Matrix) else Tuple(first + last, (inner,))
        return Tuple(first + last, tuple(self._inner(part) for part in parts))

    def _set(self, inside: Sequence[Token]) -> Answer:
        condition = _split(inside, lambda token: token.text in ("|", ":", "mid"))
        if len(condition) == 2 and _name(condition[0]) is not None:
            return self._inner(condition[1])
        parts = _split(inside, lambda token: token.text in _SEPARATORS and token.kind == "symbol")
        return Listing(_flat([self._inner(part) for part in parts]), braces=True)

    def _matrix(self, found: Sequence[Token]) -> Answer | None:
        if found[0] != Token("command", "begin", found[0].spaced):
            return None
        texts = [token.text for token in found]
        end = len(found) - 4
        if end < 4 or texts[1] != "{" or texts[2] not in _MATRICES or texts[end:] != ["end", "{", texts[2], "}"]:
            raise Unread("it is no matrix")
        inside = found[4:end]
        if texts[2] == "array" and inside and inside[0].text == "{":  # how columns are aligned
            inside = inside[texts.index("}", 4) - 3 :]
        rows = [row for row in _split(inside, lambda token: token.text == "\\\\") if row]
        cells = [_split(row, lambda token: token.text == "&") for row in rows]
        if not cells or len({len(row) for row in cells}) != 1:
            raise Unread("rows differ in length")
        return Matrix(tuple(tuple(self._inner(cell) for cell in row) for row in cells))

    def _ratio(self, found: Sequence[Token]) -> Answer | None:
        parts = _split(found, lambda token: token.text == ":")
        return Ratio(tuple(expressions.read(part) for part in parts)) if len(parts) > 1 else None

    def _scalar(self, found: Sequence[Token]) -> Answer:
        tree = expressions.read(found)
        if not _has_sign(tree):
            return Scalar(tree)
        return Listing(tuple(Scalar(_signed(tree, positive)) for positive in (True, False)))


# -- tokens ----------------------------------------------------------------------------------------------------------


def _outside(found: Sequence[Token]) -> list[Token]:
    """The tokens that stand in no bracket."""
    depth = 0
    outside: list[Token] = []
    for token in found:
        depth -= token.kind == "symbol" and token.text in _CLOSING
        if not depth:
            outside.append(token)
        depth += token.kind == "symbol" and token.text in _OPENING
    return outside


def _split(found: Sequence[Token], separates: Callable[[Token], bool]) -> list[Sequence[Token]]:
    """What stands between tokens that separate, outside of brackets."""
    separators = {id(token) for token in _outside(found) if separates(token)}
    parts: list[list[Token]] = [[]]
    for token in found:
        if id(token) in separators:
            parts.append([])
        else:
            parts[-1].append(token)
    return list(parts)


def _balanced(inside: Sequence[Token]) -> bool:
    depth = 0
    for token in inside:
        if token.kind == "symbol":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth < 0:
            return False
    return not depth


def _separates(token: Token) -> bool:
    if token.kind == "symbol":
        return token.text in _SEPARATORS
    return token.kind in ("letters", "word") and token.text in _JOINING


def _without_commas_before_words(found: Sequence[Token]) -> list[Token]:
    """`1, 2, and 3` has one separator between 2 and 3."""
    pairs = zip(found, [*found, Token("end", "")][1:], strict=True)
    return [token for token, after in pairs if not (token.text in _SEPARATORS and after.text in _JOINING)]


def _relates(token: Token) -> bool:
    return token.kind == ("symbol" if token.text in "=<>" else "command") and token.text in _RELATIONS


def _between_letters(found: Sequence[Token]) -> list[bool]:
    """For each token, whether letters stand before it and after it."""
    kinds = ["", *(token.kind for token in found), ""]
    return [{before, after} <= {"letters", "word"} for before, after in zip(kinds, kinds[2:], strict=False)]


def _is_product(token: Token) -> bool:
    return token.kind == "letters" and bool(_FACTORS.fullmatch(token.text))


def _name(found: Sequence[Token]) -> tuple[str, Node | None] | None:
    """The name that these tokens are, such as `x`, `f(x)`, `(x, y)` or `\\text{Area}`, and as an expression."""
    if not found:
        return None
    joined = " ".join(token.text for token in found)
    if all(token.kind == "word" for token in found):
        return joined.casefold(), None
    if joined in ("e", "i", "pi", "infty"):
        return None
    try:
        tree = expressions.read(found)
    except Unread:
        tree = None
    if tree is not None and tree.kind == "name":
        return tree.text, tree
    return (joined, None) if _CALL.fullmatch(joined) else None


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
