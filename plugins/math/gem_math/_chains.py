"""Chains: sides that are equal or nearly so, of which the last is the value, as in `4! \\times 3 = 72`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gem_math import _evaluation as evaluation
from gem_math import _quantities as quantities
from gem_math._answers import Answer, Named, Relation, Rounded, Scalar
from gem_math._expressions import Node
from gem_math._tokens import Unread

_HALF = Fraction(1, 2)


def equation(left: Node, right: Node) -> Answer:
    """An equation; the number on the right where both sides are numbers. Raises `Unread` where these differ."""
    if evaluation.variables(left) or evaluation.variables(quantities.without_unit(right)[0]):
        return Relation(("=",), (left, right))
    return value(("=",), (left, right))


def chain(signs: Sequence[str], trees: Sequence[Node], name: str) -> Answer:
    """The value of a chain, of which the first side may be a quantity that is not computed: `m+n = 5+6 = 11`."""
    if not evaluation.variables(trees[0]) or _holds(signs[0], trees[0], trees[1]):
        return value(signs, trees)
    return Named(name, value(signs[1:], trees[1:]), trees[0], is_claim=True)


def value(signs: Sequence[str], trees: Sequence[Node]) -> Answer:
    """The last side, if the chain holds; with what is exact where the last side is rounded. Raises `Unread`."""
    if not _has_letters(trees[-1]):  # a formula on the way is not computed: V = \\pi r^2 h = 12\\pi
        kept = [(sign, tree) for sign, tree in zip(("=", *signs), trees, strict=True) if not _has_letters(tree)]
        signs, trees = [sign for sign, _ in kept[1:]], [tree for _, tree in kept]
    pairs = [*zip(signs, trees, trees[1:], strict=False)]
    if not all(_holds(*pair) for pair in pairs):
        raise Unread("the sides of an equation differ")
    exact, last = Scalar(trees[0]), Scalar(trees[-1])
    rounds = [one for sign, one, other in pairs if sign == "~" and not evaluation.same_value(one, other)]
    if not rounds:
        return last
    is_rounded = quantities.decimal(trees[-1]) is not None
    return Rounded(Scalar(rounds[0]), last) if is_rounded else Rounded(last, exact)


def _has_letters(tree: Node) -> bool:
    if tree.kind in ("name", "value"):
        return bool(evaluation.variables(tree))
    return any(map(_has_letters, tree.parts))


def _holds(sign: str, one: Node, other: Node) -> bool:
    try:
        if sign == "~":
            return _is_near(one, other)
        return evaluation.equal(one, other) or quantities.rounds_to(one, other) or _gets_unit(one, other)
    except Unread:
        return False


def _gets_unit(one: Node, other: Node) -> bool:
    """Is it a number, and the same with its unit? A percent is no unit of this kind: 50 is not 50%."""
    (_, units), (bare, others) = map(quantities.without_unit, (one, other))
    return not units and bool(others) and "%" not in others and evaluation.equal(one, bare)


def _is_near(one: Node, other: Node) -> bool:
    """Is one of both the other one rounded? The unit may stand behind one of them only."""
    (bare, units), (rounded, others) = map(quantities.without_unit, (one, other))
    if (not units or not others) and "%" not in (*units, *others):
        one, other = bare, rounded
    if quantities.decimal(other) is None:
        one, other = other, one
    literal = quantities.decimal(other)
    if literal is None:
        return False
    distance = quantities.last_place(literal) * _HALF
    return quantities.within(one, other, quantities.with_literal(other, distance))
