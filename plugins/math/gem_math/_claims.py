"""Quantities by name: `f(2) = 3` is an answer to "Find f(2)", and `a+b = 25` is none to "Find a^2+b^2"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from gem_math import _constants as constants
from gem_math import _evaluation as evaluation
from gem_math import _quantities as quantities
from gem_math._answers import Answer, Listing, Named, Relation, Scalar, System
from gem_math._expressions import Node
from gem_math._keys import ordered
from gem_math._questions import Question

_ENDS = 2
"""Letters of a segment."""
_DEFINITION = re.compile(r"([A-Za-z]+) \( ([A-Za-z](?: , [A-Za-z])*) \)")
_OPERATION = re.compile(r" [A-Za-z]+ \(| \\(?:int|sum|lim|prod|max|min|gcd|lcm|det|deg|dim|ker|mathbb|Pr)\b")
"""Of a side that is not read: what makes it a number that can be named, such as an integral or a probability."""


def of(answer: Answer) -> Named | None:
    """What an equation says that a quantity is; `None` where neither side is a value."""
    if isinstance(answer, Named):
        return answer
    if not isinstance(answer, Relation) or answer.signs != ("=",):
        return None
    left, right = answer.sides
    if evaluation.variables(right) and not evaluation.variables(left):
        left, right = right, left
    return Named(ordered(left), Scalar(right), left, is_claim=True)


def is_identity(answer: Answer) -> bool:
    """Is it an equation that always holds, so that its last side is a value?"""
    if not isinstance(answer, Relation) or answer.signs != ("=",):
        return False
    return evaluation.same_value(*answer.sides)


def may_be_named(claim: Named, question: Question) -> bool:
    """May an answer say that this is what it found?"""
    if not claim.is_claim:
        return not any(is_other(claim, question) for is_other in (_is_part, _is_function, _is_another))
    key = _key(claim)
    if key in question.asked:
        return True
    if key in question.given:
        return False
    if key in question.mentioned:
        return not question.asked
    return _is_unheard_of(claim, question)


def may_be_left_out(claim: Named, question: Question) -> bool:
    """May an answer leave this out where the reference has it?"""
    if not claim.is_claim:
        return True
    key = _key(claim)
    if key in question.asked or (key in question.mentioned and not question.asked and key not in question.given):
        return True
    return claim.left is not None and _is_number(claim.left) and _is_unheard_of(claim, question)


def same_definition(one: Named, other: Named) -> tuple[Answer, Answer] | None:
    """What two functions of one name are, with the same names for their arguments; `None` where they are none.

    One of both may have no argument: `y = Ce^x` is `y(x) = Ce^x`.
    """
    first, second = (_DEFINITION.fullmatch(each.name) for each in (one, other))
    if (first is None) != (second is None) and (first or second) is not None:
        defined, plain = (first, other) if first else (second, one)
        return (one.answer, other.answer) if defined and defined[1] == plain.name else None
    if first is None or second is None or first[1] != second[1]:
        return None
    names = first[2].split(" , "), second[2].split(" , ")
    if len(names[0]) != len(names[1]) or not isinstance(one.answer, Scalar) or not isinstance(other.answer, Scalar):
        return None
    bound = [{name: f"argument {place}" for place, name in enumerate(each)} for each in names]
    return _bound(one.answer, bound[0]), _bound(other.answer, bound[1])


def _bound(answer: Scalar, names: Mapping[str, str]) -> Scalar:
    return replace(answer, tree=constants.with_names(answer.tree, names))


def _key(claim: Named) -> str:
    return claim.name if claim.left is None else ordered(claim.left)


def _is_part(claim: Named, question: Question) -> bool:
    """Does the question ask for something that is made of this name, so that it is not the name's value?"""
    if claim.left is None:
        return False
    key = ordered(claim.left)
    return key not in question.asked and any(key in task for task in question.tasks)


def _is_function(claim: Named, question: Question) -> bool:
    """Is it a function or an argument of the question, which asks for a value of a function?"""
    if not any(task.startswith("value ") for task in question.tasks) or _key(claim) in question.asked:
        return False
    return claim.name in question.functions or question.has_name(claim.name)


def _is_another(claim: Named, question: Question) -> bool:
    """Is it a segment, an angle or another capital that the question gives as a number, and does not ask for?"""
    if not claim.name.removeprefix("angle ")[:1].isupper() or _key(claim) in question.asked:
        return False
    formulas = (each.parts if isinstance(each, (System, Listing)) else (each,) for each in question.formulas)
    return any(
        isinstance(each, Named)
        and _key(each) == _key(claim)
        and isinstance(each.answer, Scalar)
        and quantities.is_plain(each.answer.tree)
        for parts in formulas
        for each in parts
    )


def _is_unheard_of(claim: Named, question: Question) -> bool:
    """Is it one number by its form, of a kind that the question has no other of?"""
    tree = claim.left
    if tree is None:
        operation = _OPERATION.search(claim.name)
        return operation is not None and operation[0].replace(" ", "") not in question.squeezed.casefold()
    if tree.kind == "value":
        return f"{tree.text}(" not in question.squeezed and not any(key.startswith("value ") for key in question.asked)
    return _is_length(tree) and "|" not in question.text


def _is_number(tree: Node) -> bool:
    """Is it the value of a function at a number, or the length of a segment?"""
    if tree.kind == "value":
        return not evaluation.has_variable_arguments(tree)
    return _is_length(tree) and len(tree.parts[0].text) == _ENDS and tree.parts[0].text.isupper()


def _is_length(tree: Node) -> bool:
    return tree.kind == "call" and tree.text == "abs" and tree.parts[0].kind == "name"
