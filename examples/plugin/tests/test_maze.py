"""The example's tests: what gem-core requires of every environment, and the rules of this one."""

from __future__ import annotations

import gem_example_mazes.plugin
import pytest

import gem_core
from gem_core import ErrorAction
from gem_core.errors import EnvError, EnvFailure, FailureKind
from gem_testing import EnvConformance, IsolatedPluginManager


class TestFork(EnvConformance):
    env_id = "maze:Fork-v0"


class TestLongFork(EnvConformance):
    env_id = "maze:Fork-v0-long"


def marked_way(observation: str) -> str:
    """The direction that the signs show."""
    if observation == "dead end":
        return "back"
    rule, _, signs = observation.partition(": ")
    colour = rule.removeprefix("follow ")
    return next(sign.split()[0] for sign in signs.split(", ") if sign.endswith(colour))


@pytest.mark.parametrize("seed", range(20))
def test_the_marked_way_leads_out(seed: int) -> None:
    env = gem_core.make("maze:Fork-v0")
    observation, _ = env.reset(seed=seed)
    rewards: list[float] = []
    terminated, info = False, {}
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(marked_way(observation))
        assert not truncated
        rewards.append(reward)
    assert (observation, rewards, info) == ("out", [0.0, 0.0, 1.0], {"success": True})


def test_a_wrong_turn_costs_two_turns() -> None:
    env = gem_core.make("maze:Fork-v0", forks=1, max_turns=3)
    fork, _ = env.reset(seed=0)
    right = marked_way(fork)
    wrong = "left" if right == "right" else "right"
    assert env.step(wrong) == ("dead end", 0.0, False, False, {"success": False})
    assert env.step("back") == (fork, 0.0, False, False, {"success": False})
    assert env.step(right) == ("out", 1.0, True, False, {"success": True})


def test_an_invalid_move_costs_a_tenth_and_the_turn() -> None:
    env = gem_core.make("maze:Fork-v0", forks=1, max_turns=1)
    fork, _ = env.reset(seed=0)
    assert env.step("back") == (fork, -0.1, False, True, {"success": False, "invalid_action": True})


def test_a_maze_without_a_way_out_is_refused() -> None:
    with pytest.raises(EnvError, match="forks=5 and max_turns=4"):
        gem_core.make("maze:Fork-v0", forks=5, max_turns=4)


def test_the_plugin_offers_both(gem_plugin_manager: IsolatedPluginManager) -> None:
    gem_plugin_manager.add_plugin("maze", gem_example_mazes.plugin)
    registrations = gem_plugin_manager.registrations("gem_envs", "maze")
    assert [registration.spec.id for registration in registrations] == ["maze:Fork-v0", "maze:Fork-v0-long"]


@pytest.mark.parametrize(
    ("kind", "attempt", "action"),
    [
        (FailureKind.LOST, 1, ErrorAction.RETRY),
        (FailureKind.TIMEOUT, 2, ErrorAction.RETRY),
        (FailureKind.LOST, 3, None),
        (FailureKind.RAISED, 1, None),
    ],
)
def test_what_the_machine_did_is_retried(
    gem_plugin_manager: IsolatedPluginManager, kind: FailureKind, attempt: int, action: ErrorAction | None
) -> None:
    gem_plugin_manager.add_plugin("maze", gem_example_mazes.plugin)
    gem_plugin_manager.enable("maze")
    error = EnvFailure("maze:Fork-v0", 0, kind, "gone")
    decided = gem_plugin_manager.decide("gem_env_error", error=error, spec=None, episode=None, attempt=attempt)
    assert decided is action
