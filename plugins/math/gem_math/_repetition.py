"""Answers that repeat the question: what is to be computed stands there, and is no answer for having been copied."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from gem_math import _answers as answers
from gem_math import _evaluation as evaluation
from gem_math import _expressions as expressions
from gem_math._answers import Answer
from gem_math._expressions import Node
from gem_math._tokens import Token, Unread, tokens

_FORMULA = re.compile(r"\$+([^$]+)\$+|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_MAX_FORMULAS = 40
_UNMARKED = re.compile(r"\\(?:left|right|[,;!:]|displaystyle)(?![a-z])|[{}]")
_GAP = re.compile(r"\s+(?=\W)|(?<=\W)\s+")
_NUMBER_OR_NAME = re.compile(r"-?[\d,]+|\w")
_PLAIN_NUMBER = re.compile(r"(?<![\d./^])[0-9]{1,40}(?:\.[0-9]{1,40}|/[1-9][0-9]{0,40})?(?![\d/^]|\.\d)")
_ENDS = frozenset(("=", "<", ">", "le", "ge", "neq", ",", ";", ":"))


def repeats(given: str, question: str) -> bool:
    """Does an answer stand in the question as it is? A number or a name may, as they are short."""
    piece = _squeezed(given).strip("\0")
    if _NUMBER_OR_NAME.fullmatch(piece):
        return False
    return bool(re.search(rf"(?<![\w.]){re.escape(piece)}(?![\w^]|\.\d)", _squeezed(question)))


def rearranges(given: Node, question: str) -> bool:
    """Is an expression a part of a formula of the question, up to the order of terms and factors?"""
    if given.kind in ("number", "name", "unit"):
        return False
    wanted = _ordered(given)
    return any(wanted == _ordered(part) for formula in _formulas(question) for part in _parts(formula))


def has_value(given: Node, question: str) -> bool:
    """Does a number of the question, or a part of a formula there, have the value of an expression?"""
    value = evaluation.exact(given)
    numbers = map(Fraction, _PLAIN_NUMBER.findall(question))
    parts = (evaluation.exact(part) for tree in _formulas(question) for part in _parts(tree))
    return value is not None and any(value == each for each in itertools.chain(numbers, parts))


def formulas(question: str) -> Iterator[Answer]:
    """The formulas of a question, read as answers are: equations among them."""
    for match, _ in zip(_FORMULA.finditer(question), range(_MAX_FORMULAS), strict=False):
        try:
            yield from answers.read("".join(match.groups(default="")))
        except Unread:
            continue


def _squeezed(text: str) -> str:
    """Without markup, and without white space but between words; a delimiter of formulas is one character."""
    plain = text.replace("$", "\0").replace("\\(", "\0").replace("\\)", "\0").replace("\\dfrac", "\\frac")
    return _GAP.sub("", _UNMARKED.sub("", plain).strip())


def _formulas(question: str) -> Iterator[Node]:
    for match, _ in zip(_FORMULA.finditer(question), range(_MAX_FORMULAS), strict=False):
        try:
            found = tokens("".join(match.groups(default="")))
        except Unread:
            continue
        for side in _sides(found):
            try:
                yield expressions.read(side)
            except Unread:
                continue


def _sides(found: Sequence[Token]) -> Iterator[list[Token]]:
    side: list[Token] = []
    for token in [*found, Token("symbol", "=")]:
        if token.text in _ENDS:
            yield side
            side = []
        else:
            side.append(token)


def _parts(tree: Node) -> Iterator[Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting += node.parts
        yield node


def _ordered(tree: Node) -> str:
    """The expression as a text that does not depend on the order of terms and factors."""
    parts = [_ordered(part) for part in _operands(tree)]
    return f"{tree.kind} {tree.text}({','.join(sorted(parts) if tree.kind in ('sum', 'product') else parts)})"


def _operands(tree: Node) -> list[Node]:
    """The parts, with those of a product in a product."""
    if tree.kind != "product":
        return list(tree.parts)
    return [operand for part in tree.parts for operand in (_operands(part) if part.kind == "product" else [part])]
