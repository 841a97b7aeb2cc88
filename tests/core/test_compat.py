"""gem-llm's interface: all of it through gem_core.compat, most of it in gem_core itself, and hints for the rest."""

from __future__ import annotations

import pytest
from upstream_probes import PROBES

import gem_core
import gem_core.compat

OTHERWISE = {
    "the_list_of_environments": "gem-core list",
    "an_asynchronous_vector": "backend='thread'",
    "arguments_for_each_place": "env_kwargs={id: {...}}",
    "arguments_for_all_places": "env_kwargs={...}",
    "an_environment_of_ones_own": "kwargs={...}",
    "wrappers_by_name": "ObservationHistory",
    "the_python_tool": "gem_core.make_tool('python:Interpreter')",
}
"""Probes that gem_core answers with an error, and the replacement that it names."""


def test_there_are_twenty_two_of_which_fifteen_need_nothing() -> None:
    assert len(PROBES) == 22
    assert len(PROBES) - len(OTHERWISE) == 15


@pytest.mark.parametrize("name", PROBES)
def test_all_pass_through_compat(name: str) -> None:
    PROBES[name](gem_core.compat)


@pytest.mark.parametrize("name", PROBES)
def test_most_pass_on_the_core_and_the_others_name_the_replacement(name: str) -> None:
    if name not in OTHERWISE:
        PROBES[name](gem_core)
        return
    with pytest.raises((AttributeError, TypeError)) as caught:
        PROBES[name](gem_core)
    assert OTHERWISE[name] in str(caught.value)
