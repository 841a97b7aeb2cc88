"""Sets of real numbers, however they are written: intervals, unions, inequalities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gem_math import _evaluation as evaluation
from gem_math import _quantities as quantities
from gem_math._answers import Answer, Difference, Listing, Named, Relation, Scalar, Tuple, Union
from gem_math._expressions import Node
from gem_math._tokens import Unread

_INFINITE = Node("name", text="infty")
_LEAST = Node("negation", (_INFINITE,))
_MAX_PAIRS = 100


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
    if isinstance(answer, Listing) and not answer.braces:
        has_one = any(isinstance(part, Relation) for part in answer.parts) and all(map(_is_condition, answer.parts))
        if len(answer.parts) > 1 and all(map(_is_interval, answer.parts)):
            return True
        return has_one and len({*map(_name, _with_names(answer.parts))}) == 1
    return isinstance(answer, (Union, Difference))


def _is_condition(part: Answer) -> bool:
    return isinstance(part, (Scalar, Named)) if not isinstance(part, Relation) else is_one(part)


def equal(one: Answer, other: Answer) -> bool:
    """Are two sets of numbers equal? A name that is given twice has to be the same."""
    names = {name for name in map(_name, (one, other)) if name}
    try:
        wanted = _intervals(other)
        if wanted == [] and isinstance(other, Listing):  # a reference says "and" of what has nothing in common
            wanted = _intervals(replace(other, word=""))
        if len(names) > 1 or wanted is None or (given := _intervals(one)) is None:
            return False
        first, second = map(_merged, (given, wanted))
        return len(first) == len(second) and all(map(_same, first, second))
    except Unread:
        return False


def _name(answer: Answer) -> str:
    if isinstance(answer, Named):
        return answer.name
    if isinstance(answer, Listing) and answer.parts:
        return _name(answer.parts[0])
    if isinstance(answer, Relation):
        sides = (side.parts[0] if _is_absolute(side) else side for side in answer.sides)
        return next((side.text for side in sides if _is_name(side)), "")
    return ""


def _is_name(tree: Node) -> bool:
    return tree.kind == "name" and bool(evaluation.variables(tree)) and tree != _INFINITE


def _intervals(answer: Answer) -> list[_Interval] | None:
    if isinstance(answer, Named):
        return None if answer.is_claim else _intervals(answer.answer)
    if isinstance(answer, Relation):
        return _of_relation(answer)
    if isinstance(answer, Tuple) and len(answer.parts) == 2:
        low, high = answer.parts
        if isinstance(low, Scalar) and isinstance(high, Scalar):
            return [_Interval(low.tree, high.tree, answer.brackets[0] == "[", answer.brackets[1] == "]")]
    if isinstance(answer, Listing) and answer.braces and all(isinstance(part, Scalar) for part in answer.parts):
        return [_Interval(part.tree, part.tree, True, True) for part in answer.parts if isinstance(part, Scalar)]
    if isinstance(answer, Listing) and not answer.braces:
        return _together(answer)
    if isinstance(answer, Difference):
        whole = _intervals(answer.whole)
        for each in map(_removed, answer.removed):
            whole = None if whole is None or each is None else _common(whole, _gaps(_merged(each)))
        return whole
    if isinstance(answer, Union):
        parts = [_intervals(part) for part in answer.parts]
        return None if None in parts else [interval for part in parts for interval in part or ()]
    return None


def _removed(answer: Answer) -> list[_Interval] | None:
    """Of a set that is taken away, or of one number."""
    if isinstance(answer, Scalar):
        return [_Interval(answer.tree, answer.tree, True, True)]
    return _intervals(answer)


def _together(listing: Listing) -> list[_Interval] | None:
    """Of inequalities for one name: what either holds for if they have no number in common, else what all hold for."""
    if all(map(_is_interval, listing.parts)):
        return [interval for part in listing.parts for interval in _intervals(part) or ()]
    conditions = [*_with_names(listing.parts)]
    if not all(isinstance(part, (Relation, Named)) and _intervals(part) for part in conditions):
        return None
    if len({*map(_name, conditions)}) > 1:
        return None
    sets = [_merged(_intervals(part) or ()) for part in conditions]
    union = _merged([interval for each in sets for interval in each])
    if listing.either or (listing.word != "and" and len(union) == sum(map(len, sets))):
        return union
    common = sets[0]
    for each in sets[1:]:
        common = _common(common, each)
    return common


def _is_interval(answer: Answer) -> bool:
    """Is it an interval by its form, and no point?"""
    if not isinstance(answer, Tuple) or len(answer.parts) != 2:
        return False
    ends = {part.tree for part in answer.parts if isinstance(part, Scalar)}
    return answer.brackets in ("[)", "(]") or bool(ends & {_INFINITE, _LEAST})


def _with_names(parts: Sequence[Answer]) -> Iterator[Answer]:
    """`x != 0, 5` is short for two."""
    first = parts[0]
    for part in parts:
        if (
            isinstance(first, Relation)
            and first.signs == ("!=",)
            and isinstance(part, Scalar)
            and _is_name(first.sides[0])
        ):
            yield Relation(("!=",), (first.sides[0], part.tree))
        else:
            yield part


def _gaps(intervals: Sequence[_Interval]) -> list[_Interval]:
    """What lies between intervals in their order, before and behind them."""
    gaps: list[_Interval] = []
    low, holds = _LEAST, False
    for interval in intervals:
        gaps.append(_Interval(low, interval.low, holds, not interval.holds_low))
        low, holds = interval.high, not interval.holds_high
    gaps.append(_Interval(low, _INFINITE, holds, False))
    return [gap for gap in gaps if not _is_empty(gap)]


def _common(one: Sequence[_Interval], other: Sequence[_Interval]) -> list[_Interval]:
    """What lies in both. Raises `Unread` where they are too many."""
    if len(one) * len(other) > _MAX_PAIRS:
        raise Unread("it has too many intervals")
    pairs = (_overlap(first, second) for first in one for second in other)
    return [overlap for overlap in pairs if not _is_empty(overlap)]


def _overlap(one: _Interval, other: _Interval) -> _Interval:
    low = max(one, other, key=lambda each: (_place(each.low), not each.holds_low))
    high = min(one, other, key=lambda each: (_place(each.high), each.holds_high))
    return _Interval(low.low, high.high, low.holds_low, high.holds_high)


def _is_empty(interval: _Interval) -> bool:
    low, high = _place(interval.low), _place(interval.high)
    return low > high or (low == high and not (interval.holds_low and interval.holds_high))


def _of_relation(relation: Relation) -> list[_Interval] | None:
    """Of an inequality between a name and numbers."""
    signs, sides = relation.signs, relation.sides
    if len(signs) == 1 and (_is_name(sides[1]) or _is_absolute(sides[1])):
        sides, signs = sides[::-1], (signs[0].translate(str.maketrans("<>", "><")),)
    if len(signs) == 1 and _is_name(sides[0]) and not evaluation.variables(sides[1]):
        return _of_bound(signs[0], sides[1])
    if len(signs) == 1 and _is_absolute(sides[0]) and not evaluation.variables(sides[1]):
        return _of_distance(signs[0], sides[1])
    if len(signs) == 2 and _is_name(sides[1]) and all(map(_is_bound, sides[::2])):
        if all(sign[0] == ">" for sign in signs):
            sides, signs = sides[::-1], signs[::-1]
        elif not all(sign[0] == "<" for sign in signs):
            return None
        return [_Interval(sides[0], sides[2], "=" in signs[0], "=" in signs[1])]
    return None


def _is_bound(tree: Node) -> bool:
    return tree in (_INFINITE, _LEAST) or not evaluation.variables(tree)


def _of_bound(sign: str, bound: Node) -> list[_Interval] | None:
    below = _Interval(_LEAST, bound, False, sign == "<=")
    above = _Interval(bound, _INFINITE, sign == ">=", False)
    return {"<": [below], "<=": [below], ">": [above], ">=": [above], "!=": [below, above]}.get(sign)


def _of_distance(sign: str, bound: Node) -> list[_Interval] | None:
    """Of `|x| < 3`, if the bound is positive."""
    negative = Node("negation", (bound,))
    if not _place(bound) > 0:
        return None
    if sign in ("<", "<="):
        return [_Interval(negative, bound, "=" in sign, "=" in sign)]
    if sign in (">", ">="):
        return [*(_of_bound(sign.replace(">", "<"), negative) or ()), *(_of_bound(sign, bound) or ())]
    return None


def is_of_distance(relation: Relation) -> bool:
    """Is it an inequality of the kind of `|x| < 3`?"""
    return any(map(_is_absolute, relation.sides))


def _is_absolute(tree: Node) -> bool:
    return tree.kind == "call" and tree.text == "abs" and _is_name(tree.parts[0])


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
