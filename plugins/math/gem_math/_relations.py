"""Equations, inequalities and ratios: the same if they have the same solutions, up to a factor."""

from __future__ import annotations

import re

from gem_math import _evaluation as evaluation
from gem_math._answers import Answer, Named, Ratio, Relation, Scalar
from gem_math._expressions import Node
from gem_math._tokens import Unread


def of(answer: Answer) -> Relation | None:
    """An answer as an equation or an inequality, if it is one."""
    if isinstance(answer, Relation):
        return answer
    if isinstance(answer, Named) and answer.left is not None and isinstance(answer.answer, Scalar):
        return Relation(("=",), (answer.left, answer.answer.tree))
    return None


def same(given: Relation, reference: Relation) -> bool:
    """Have they the same solutions, up to a factor on both sides?"""
    if len(given.signs) != 1 or len(reference.signs) != 1:
        return given == reference
    (sign, one), (other_sign, other) = map(_difference, (given, reference))
    if sign != other_sign:
        return False
    try:
        ratio = evaluation.ratio(one, other)
    except Unread:
        return False
    return ratio is not None and (sign in ("=", "!=") or ratio > 0)


def _difference(relation: Relation) -> tuple[str, Node]:
    """Left minus right, or the other way round where the left is to be greater."""
    sign, (left, right) = relation.signs[0], relation.sides
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    return sign, Node("sum", (left, Node("negation", (right,))))


def same_ratio(given: Ratio, reference: Ratio, *, may_be_time: bool) -> bool:
    """`6:8` is `3:4`; `2:30`, which may be a time, is only itself."""
    if len(given.parts) != len(reference.parts):
        return False
    if may_be_time and any(map(_is_minutes, (given, reference))):
        return False
    if not all(evaluation.real(part) for part in given.parts):
        return given == reference
    first = given.parts[0], reference.parts[0]
    pairs = zip(given.parts[1:], reference.parts[1:], strict=True)
    return all(
        evaluation.same_value(Node("product", (one, first[1])), Node("product", (other, first[0])))
        for one, other in pairs
    )


def _is_minutes(ratio: Ratio) -> bool:
    last = ratio.parts[-1]
    while last.parts:
        last = last.parts[0]
    return bool(re.fullmatch(r"[0-5]\d", last.text))
