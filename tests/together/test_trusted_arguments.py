"""Marks of arguments that choose code, paths, addresses or permissions."""

from __future__ import annotations

import inspect
import re

import pytest

from gem_core.errors import MissingExtraError
from gem_core.match import Match
from gem_core.plugins import manager
from gem_core.specs import EnvSpec

HARMLESS = {
    "answer",
    "database",
    "domain",
    "form",
    "images",
    "instruction",
    "only",
    "question",
    "simplifications",
    "split",
    "subset",
    "template",
    "variant",
}
"""Text that is compared with a fixed list, names a column or a part of the data, or is shown."""
LIMITS = {"memory", "disk", "processes", "allow_unsafe"}


_SPECS = [one.spec for one in manager.all_registrations("gem_envs") if one.spec.trusting is not None]
MARKED = list({(one.entry_point, one.trusting): one for one in _SPECS}.values())
"""A spec of each class and mark."""


def is_plain(annotation: str) -> bool:
    """Whether the type has nothing but numbers, and texts of a fixed list."""
    types = re.findall(r"\w+", re.sub(r"Literal\[.*?\]", "", annotation))
    return {*types} <= {"int", "float", "bool", "None", "Sequence"}


@pytest.mark.parametrize("spec", MARKED, ids=lambda spec: spec.id)
def test_what_chooses_code_paths_addresses_or_limits_is_marked(spec: EnvSpec) -> None:
    try:
        kind = spec.resolve()
    except MissingExtraError as error:
        pytest.skip(str(error))
    arguments = inspect.signature(kind).parameters.values()
    assert all(one.kind is not one.VAR_KEYWORD for one in arguments), "arguments of a library cannot be known"
    text = {one.name for one in arguments if not is_plain(one.annotation)} - HARMLESS
    limits = {one.name for one in arguments} & LIMITS
    opponents = {"opponents"} if issubclass(kind, Match) else set[str]()
    assert text | limits | opponents <= set(spec.trusting or ())


def test_every_kind_is_looked_at() -> None:
    assert {one.namespace for one in MARKED} >= {"desk", "eval", "game", "match", "math", "qa", "terminal"}
