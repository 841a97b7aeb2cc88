"""Constants that a solution leaves open, such as that of integration: their names mean nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from gem_math import _evaluation as evaluation
from gem_math import _requests as requests
from gem_math._answers import Answer, Family
from gem_math._expressions import Node
from gem_math._questions import Question

T = TypeVar("T")

_NAME = re.compile(r"[A-DKMcdkm](?:_\w+)?|\\?(?:lambda|alpha|beta)")
_MAX_CONSTANTS = 3


def renamed(given: Node, reference: Node, question: Question) -> Iterator[Node]:
    """An answer with the names of the reference for its constants, in each way, if the question leaves them open."""
    own = [name for name in evaluation.variables(given) if _NAME.fullmatch(name)]
    if not own or not requests.has_family(question):
        return
    theirs = [name for name in evaluation.variables(reference) if _NAME.fullmatch(name)]
    is_named = requests.has_constant(question)
    own = [name for name in own if not _is_given(name, question)]
    theirs = [name for name in theirs if not _is_given(name, question) or (is_named and name in "CcKk")]
    if len(own) != len(theirs) or not 0 < len(own) <= _MAX_CONSTANTS:
        return
    for names in itertools.permutations(theirs):
        if [*names] != own:
            yield with_names(given, dict(zip(own, names, strict=True)))


def of_family(family: Family, names: Sequence[str]) -> Answer:
    """A family with other names for its letters."""
    return _renamed(family.answer, dict(zip(family.names, names, strict=True)))


def _renamed(value: T, names: Mapping[str, str]) -> T:
    if isinstance(value, Node):
        return cast("T", with_names(value, names))
    if isinstance(value, tuple):
        return cast("T", tuple(_renamed(part, names) for part in cast("tuple[Any, ...]", value)))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {field.name: _renamed(getattr(value, field.name), names) for field in fields(value)}
    return cast("T", replace(cast("Any", value), **changed))


def _is_given(name: str, question: Question) -> bool:
    return question.has_name(name) or question.has_letter(name)


def with_names(tree: Node, names: Mapping[str, str]) -> Node:
    """An expression with other names for its variables."""
    if tree.kind == "name":
        return replace(tree, text=names.get(tree.text, tree.text))
    return replace(tree, parts=tuple(with_names(part, names) for part in tree.parts)) if tree.parts else tree
