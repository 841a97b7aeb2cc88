"""Answers that repeat the question: what is to be computed stands there, and is no answer for having been copied."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction

from gem_math import _evaluation as evaluation
from gem_math._expressions import Node
from gem_math._keys import ordered
from gem_math._questions import Question, squeezed

_NUMBER_OR_NAME = re.compile(r"-?[\d,]+|\w")
_PLAIN_NUMBER = re.compile(r"(?<![\d./^])[0-9]{1,40}(?:\.[0-9]{1,40}|/[1-9][0-9]{0,40})?(?![\d/^]|\.\d)")


def repeats(given: str, question: Question) -> bool:
    """Does an answer stand in the question as it is? A number or a name may, as they are short."""
    piece = squeezed(given).strip("\0")
    if _NUMBER_OR_NAME.fullmatch(piece):
        return False
    return bool(re.search(rf"(?<![\w.]){re.escape(piece)}(?![\w^]|\.\d)", question.squeezed))


def rearranges(given: Node, question: Question) -> bool:
    """Is an expression a part of a formula of the question, up to the order of terms and factors?"""
    if given.kind in ("number", "name", "unit"):
        return False
    wanted = ordered(given)
    return any(wanted == ordered(part) for tree in question.trees for part in _parts(tree))


def is_task(given: Node, question: Question) -> bool:
    """Is an expression what the question asks to be computed?"""
    return ordered(given) in question.tasks


def has_value(given: Node, question: Question) -> bool:
    """Does a number of the question, or a part of a formula there, have the value of an expression?"""
    value = evaluation.exact(given)
    numbers = map(Fraction, _PLAIN_NUMBER.findall(question.text))
    parts = (evaluation.exact(part) for tree in question.trees for part in _parts(tree))
    return value is not None and any(value == each for each in itertools.chain(numbers, parts))


def _parts(tree: Node) -> Iterator[Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting += node.parts
        yield node
