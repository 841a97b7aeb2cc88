"""gem-llm's interface: all of it through gem_compat, most of it in gem_core itself, and hints for the rest."""

from __future__ import annotations

import pytest

import gem_compat
import gem_core
from gem_compat.envs.registration import ENV_REGISTRY
from gem_compat.vector.sync_vector_env import SyncVectorEnv
from gem_support.upstream_probes import PROBES

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


class Short(gem_compat.Env):
    """Ends with its first turn."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, object]]:
        return "over", 1.0, True, False, {}

    def reset(self, seed: int | None = None, **options: object) -> tuple[str, dict[str, object]]:
        super().reset(seed)
        return "begun", {}


@pytest.mark.parametrize("actions", [["a"], ["a"] * 3, "aa", {0: "a", 5: "a"}])
def test_wrong_actions_open_no_next_episodes(actions: list[str]) -> None:
    vec = SyncVectorEnv(["Short"] * 2, [Short] * 2, "NextStep", seed=0)
    vec.reset(seed=0)
    assert list(vec.step(["a", "a"])[2]) == [True, True]
    with pytest.raises(ValueError, match=r"actions|no slots"):
        vec.step(actions)
    assert vec.step(["a", "a"])[0] == ["begun", "begun"]
    assert vec.step({1: "a"})[0] == ["over"]
    assert vec.step(["a", "a"])[0] == ["over", "begun"]
    vec.close()


@pytest.mark.parametrize("env_id", ["textarena:Chess-v0", "no_such:Game-v0", "Game-v0"])
def test_ids_that_are_not_there_are_not_in_the_registry(env_id: str) -> None:
    assert env_id not in ENV_REGISTRY
    assert ENV_REGISTRY.get(env_id) is None


def test_there_are_twenty_two_of_which_fifteen_need_nothing() -> None:
    assert len(PROBES) == 22
    assert len(PROBES) - len(OTHERWISE) == 15


@pytest.mark.parametrize("name", PROBES)
def test_all_pass_through_compat(name: str) -> None:
    PROBES[name](gem_compat)


@pytest.mark.parametrize("name", PROBES)
def test_most_pass_on_the_core_and_the_others_name_the_replacement(name: str) -> None:
    if name not in OTHERWISE:
        PROBES[name](gem_core)
        return
    with pytest.raises((AttributeError, TypeError)) as caught:
        PROBES[name](gem_core)
    assert OTHERWISE[name] in str(caught.value)
