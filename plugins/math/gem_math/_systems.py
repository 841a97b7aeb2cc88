"""Values of several names, such as the solution of a system: `x = 3, y = 2` is the point `(3, 2)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from gem_math._answers import Answer, Listing, Named, System, Tuple

_INDEXED = re.compile(r"([A-Za-z]+)_([\d,/]+|[a-z])")


def of(parts: Sequence[Answer], breaks: Sequence[bool] = ()) -> Answer | None:
    """One system, or several where names come again; `None` where not all parts are values of two names or more.

    Args:
        parts: answers in their order.
        breaks: for each but the first, whether there is an "or" before it. Then another system has to begin.
    """
    groups: list[list[Named]] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Named) or part.is_claim:
            return None
        if not groups or part.name in {each.name for each in groups[-1]}:
            groups.append([])
        elif breaks and breaks[place - 1]:
            return None
        groups[-1].append(part)
    names = {frozenset(part.name for part in group) for group in groups}
    if len(names) != 1 or len(groups[0]) < 2:
        return None
    found = tuple(System(tuple(group)) for group in groups)
    return found[0] if len(found) == 1 else Listing(found)


def named(answer: Named) -> Named | System:
    """`(x, y) = (3, 2)` as a system."""
    names = answer.name.strip("( )").split(" , ") if answer.name.startswith("(") else []
    if not isinstance(answer.answer, Tuple) or len(names) != len(answer.answer.parts) or len({*names}) != len(names):
        return answer
    return System(tuple(map(Named, names, answer.answer.parts)), is_ordered=True)


def point(system: System, order_of: Callable[[Sequence[str]], tuple[str, ...] | None]) -> Tuple:
    """A system as a point: in the order of the question or its own, or in that of the alphabet."""
    values = {part.name: part.answer for part in system.parts}
    own = tuple(values) if system.is_ordered else tuple(sorted(values))
    return Tuple("()", tuple(values[name] for name in order_of(own) or own))


def letter(answer: Answer) -> str:
    """The one name of values without numbers."""
    parts = answer.parts if isinstance(answer, Listing) else (answer,)
    return next((part.name for part in parts if isinstance(part, Named)), "")


def unnumbered(answer: Answer, is_numbered: Callable[[str], bool]) -> Answer:
    """`x_1 = 1, x_2 = -2` as values of `x`, if the question does not number this."""
    parts = answer.parts if isinstance(answer, (System, Listing)) else (answer,)
    if not all(isinstance(part, Named) for part in parts):
        return answer
    found = [(part, _INDEXED.fullmatch(part.name)) for part in parts if isinstance(part, Named)]
    letters = {match[1] for _, match in found if match}
    if not all(match for _, match in found) or len(letters) != 1 or any(map(is_numbered, letters)):
        return answer
    plain = tuple(replace(part, name=match[1], left=None) for part, match in found if match)
    return Listing(plain) if len(plain) > 1 else next(iter(plain), answer)
