"""Sets of real numbers, however they are written: intervals, unions, inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gem_math import _evaluation as evaluation
from gem_math import _quantities as quantities
from gem_math._answers import Answer, Listing, Named, Relation, Scalar, Tuple, Union
from gem_math._expressions import Node
from gem_math._tokens import Unread

_INFINITE = Node("name", text="infty")
_LEAST = Node("negation", (_INFINITE,))


class _Interval(NamedTuple):
    low: Node
    high: Node
    holds_low: bool
    holds_high: bool


def is_one(answer: Answer) -> bool:
    """Is it a set of real numbers and nothing else? A pair in brackets may be a point, and a list is one of answers."""
    if isinstance(answer, Named):
        return is_one(answer.answer)
    if isinstance(answer, Relation):
        return set(answer.signs) != {"="} and _of_relation(answer) is not None
    return isinstance(answer, Union)


def equal(one: Answer, other: Answer) -> bool:
    """Are two sets of numbers equal? A name that is given twice has to be the same."""
    names = {name for name in map(_name, (one, other)) if name}
    try:
        sets = _intervals(one), _intervals(other)
        if len(names) > 1 or sets[0] is None or sets[1] is None:
            return False
        first, second = map(_merged, (sets[0], sets[1]))
        return len(first) == len(second) and all(map(_same, first, second))
    except Unread:
        return False


def _name(answer: Answer) -> str:
    if isinstance(answer, Named):
        return answer.name
    if isinstance(answer, Listing) and answer.parts:
        return _name(answer.parts[0])
    if isinstance(answer, Relation):
        return next((side.text for side in answer.sides if _is_name(side)), "")
    return ""


def _is_name(tree: Node) -> bool:
    return tree.kind == "name" and bool(evaluation.variables(tree)) and tree != _INFINITE


def _intervals(answer: Answer) -> list[_Interval] | None:
    if isinstance(answer, Named):
        return _intervals(answer.answer)
    if isinstance(answer, Relation):
        return _of_relation(answer)
    if isinstance(answer, Tuple) and len(answer.parts) == 2:
        low, high = answer.parts
        if isinstance(low, Scalar) and isinstance(high, Scalar):
            return [_Interval(low.tree, high.tree, answer.brackets[0] == "[", answer.brackets[1] == "]")]
    if isinstance(answer, Listing) and answer.braces and all(isinstance(part, Scalar) for part in answer.parts):
        return [_Interval(part.tree, part.tree, True, True) for part in answer.parts if isinstance(part, Scalar)]
    if isinstance(answer, Listing) and not answer.braces:
        return _apart(answer.parts)
    if isinstance(answer, Union):
        parts = [_intervals(part) for part in answer.parts]
        return None if None in parts else [interval for part in parts for interval in part or ()]
    return None


def _apart(parts: Sequence[Answer]) -> list[_Interval] | None:
    """Of inequalities for one name that have no number in common: `x < -2 or x > 2`, which cannot hold together."""
    if not all(isinstance(part, Relation) and is_one(part) for part in parts) or len({*map(_name, parts)}) > 1:
        return None
    found = [interval for part in parts for interval in _intervals(part) or ()]
    return found if len(_merged(found)) == len(found) else None


def _of_relation(relation: Relation) -> list[_Interval] | None:
    """Of an inequality between a name and numbers."""
    signs, sides = relation.signs, relation.sides
    if len(signs) == 1 and _is_name(sides[1]):
        sides, signs = sides[::-1], (signs[0].translate(str.maketrans("<>", "><")),)
    if len(signs) == 1 and _is_name(sides[0]) and not evaluation.variables(sides[1]):
        return _of_bound(signs[0], sides[1])
    if len(signs) == 2 and _is_name(sides[1]) and not any(evaluation.variables(side) for side in sides[::2]):
        if all(sign[0] == ">" for sign in signs):
            sides, signs = sides[::-1], signs[::-1]
        elif not all(sign[0] == "<" for sign in signs):
            return None
        return [_Interval(sides[0], sides[2], "=" in signs[0], "=" in signs[1])]
    return None


def _of_bound(sign: str, bound: Node) -> list[_Interval] | None:
    below = _Interval(_LEAST, bound, False, sign == "<=")
    above = _Interval(bound, _INFINITE, sign == ">=", False)
    return {"<": [below], "<=": [below], ">": [above], ">=": [above], "!=": [below, above]}.get(sign)


def _merged(intervals: Sequence[_Interval]) -> list[_Interval]:
    """In order, with those together that touch. Raises `Unread` where one is no interval."""
    merged: list[_Interval] = []
    for interval in sorted(intervals, key=lambda each: (_place(each.low), not each.holds_low)):
        if _place(interval.low) > _place(interval.high):
            raise Unread("an interval is empty")
        if not merged or not _touch(merged[-1], interval):
            merged.append(interval)
            continue
        last = merged[-1]
        if _place(interval.high) > _place(last.high):
            merged[-1] = last._replace(high=interval.high, holds_high=interval.holds_high)
        elif _same_bound(interval.high, last.high):
            merged[-1] = last._replace(holds_high=last.holds_high or interval.holds_high)
    return merged


def _touch(one: _Interval, other: _Interval) -> bool:
    if _same_bound(one.high, other.low):
        return one.holds_high or other.holds_low
    return _place(other.low) < _place(one.high)


def _same(one: _Interval, other: _Interval) -> bool:
    """Are the ends of what is given the same quantities, carried out?"""
    if one[2:] != other[2:]:
        return False
    return all(
        given == wanted or quantities.equal(given, wanted)
        for given, wanted in ((one.low, other.low), (one.high, other.high))
    )


def _same_bound(one: Node, other: Node) -> bool:
    return one == other or evaluation.equal(one, other)


def _place(bound: Node) -> Any:
    if bound in (_INFINITE, _LEAST):
        return float("inf") if bound == _INFINITE else float("-inf")
    value = evaluation.real(bound)
    if value is None:
        raise Unread("the end of an interval is no number")
    return value
