"""Our codecs: what a policy reads of the toy-text family and of MiniGrid."""

from __future__ import annotations

import pytest

pytest.importorskip("gymnasium")

import gem_core
from gem_core.env import Env, shown_text
from gem_testing import check_env

ROOM = "gym:minigrid:MiniGrid-DoorKey-5x5-v0"


def played(env: Env, *actions: str) -> str:
    return [shown_text(step[0], step[4]) for step in (env.step(rf"\boxed{{{action}}}") for action in actions)][-1]


def test_frozen_lake() -> None:
    with gem_core.make("gym:FrozenLake-v1", is_slippery=False) as env:
        env.reset(seed=0)
        assert played(env, "down", "down", "right") == (
            "You are at row 3, column 2.\nS F F F\nF H F H\nF @ F H\nH F F G"
        )
        assert played(env, "down", "right", "right") == (
            "You reached the goal at row 4, column 4.\nS F F F\nF H F H\nF F F H\nH F F @"
        )
    with gem_core.make("gym:FrozenLake-v1", is_slippery=False, reward_schedule=(0.5, -1, 0)) as env:
        env.reset(seed=0)
        played(env, "down", "down", "right", "down", "right")
        assert env.step(r"\boxed{right}")[4]["success"] is True
        env.reset(seed=0)
        assert [env.step(r"\boxed{left}") for _ in range(100)][-1][4]["success"] is False
    with gem_core.make("gym:FrozenLake-v1", success_rate=0.8) as env:
        assert "80% of your moves go where you want" in env.reset(seed=0)[0]


def test_taxi() -> None:
    with gem_core.make("gym:Taxi-v4") as env:
        first = shown_text(*env.reset(seed=3))
        assert first.endswith(
            "The taxi is at row 1, column 3. The passenger is at R. The destination is Y.\n"
            "+---------+\n|R: |T: :G|\n| : | : : |\n| : : : : |\n| | : | : |\n|Y| : |B: |\n+---------+"
        )
        seen = played(env, "south", "south", "west", "west", "north", "north", "pickup")
        assert seen.startswith("The taxi is at row 1, column 1. The passenger sits in the taxi. The destination is Y.")
        played(env, "south", "south", "south", "south")
        _, reward, terminated, _, info = env.step(r"\boxed{dropoff}")
        assert (reward, terminated, info["success"]) == (20.0, True, True)


def test_cliff_walking() -> None:
    with gem_core.make("gym:CliffWalking-v1") as env:
        env.reset(seed=0)
        assert env.step(r"\boxed{right}")[1] == -100
        assert "slippery" not in env.reset(seed=0)[0]
        assert played(env, "up", *["right"] * 11).startswith("You are at row 3, column 12.\n. . .")
        observation, reward, terminated, _, info = env.step(r"\boxed{down}")
        assert (observation, reward) == ("You reached the goal at row 4, column 12.", -1)
        assert (terminated, info["success"]) == (True, True)
        assert info["suffix"].splitlines()[3] == ". C C C C C C C C C C @"
    with gem_core.make("gym:CliffWalkingSlippery-v1") as env:
        assert "The ground is slippery" in env.reset(seed=0)[0]


def test_blackjack() -> None:
    with gem_core.make("gym:Blackjack-v1") as env:
        first, _ = env.reset(seed=3)
        assert first.endswith("You have 7, without a usable ace. The dealer shows 10.")
        _, reward, terminated, _, info = env.step(r"\boxed{stick}")
        assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_minigrid() -> None:
    pytest.importorskip("minigrid")
    with gem_core.make(ROOM) as env:
        first = shown_text(*env.reset(seed=3))
        assert "Mission: use the key to open the door and then get to the goal. You look east." in first
        assert "a yellow key (0 ahead, 1 to the right), a locked yellow door (1 ahead, 1 to the left)." in first
        assert first.endswith("? # D # # # ?\n? # . ^ K # ?")
        assert "You carry" not in first
        assert "You look south. You see a yellow key (1 ahead)" in played(env, "right")
        assert "You carry a yellow key." in played(env, "pickup")


def test_a_grid_that_is_only_walked_has_no_other_actions() -> None:
    pytest.importorskip("minigrid")
    with gem_core.make("gym:minigrid:MiniGrid-Dynamic-Obstacles-5x5-v0") as env:
        assert "An action is one of left, right, forward. Put" in env.reset(seed=0)[0]
        assert env.step(r"\boxed{pickup}")[4]["invalid_action"]


def test_minigrid_keeps_the_contract() -> None:
    pytest.importorskip("minigrid")
    check_env(ROOM, max_steps=30)
