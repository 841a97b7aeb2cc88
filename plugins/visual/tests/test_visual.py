"""`visual:` ids: drawn from the seed, solvable, and graded."""

from __future__ import annotations

from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_core.image import images_of
from gem_testing import check_env

pytest.importorskip("PIL")

from PIL import ImageColor

from gem_visual._shapes import COLORS

NAMES = ("Count", "Compare", "BarChart", "Geometry", "Maze")
IDS = [f"visual:{name}-v0-{size}" for name in NAMES for size in ("easy", "hard")]


@pytest.mark.parametrize("env_id", IDS)
def test_conformance(env_id: str) -> None:
    check_env(env_id)


@pytest.mark.parametrize("env_id", IDS)
def test_the_solution_gets_everything_and_another_answer_nothing(env_id: str) -> None:
    env: Any = gem_core.make(env_id)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        assert len(images_of(info)) == 1
        rewards, ended = [], False
        while not ended:
            _, reward, terminated, truncated, info = env.step(env.expert_action())
            rewards.append(reward)
            ended = terminated or truncated
        assert (sum(rewards), info["success"]) == (1.0, True)
        assert len(images_of(info)) == (1 if "Maze" in env_id else 0)
    for action in ("", "the answer is 3", r"\boxed{}", r"\boxed{nothing}"):
        env.reset(seed=1)
        _, reward, _, _, info = env.step(action)
        assert reward <= 0
        assert not info["success"]


@pytest.mark.parametrize("env_id", IDS)
def test_a_seed_draws_the_same_image_and_another_seed_another(env_id: str) -> None:
    env, twin = gem_core.make(env_id), gem_core.make(env_id)
    shown = [images_of(env.reset(seed=seed)[1])[0] for seed in range(12)]
    assert shown == [images_of(twin.reset(seed=seed)[1])[0] for seed in range(12)]
    assert len({one.uri for one in shown}) > 8
    assert {one.size for one in shown} == {(56, 56) if env_id.endswith("easy") else (112, 112)}


def test_the_last_box_counts() -> None:
    env: Any = gem_core.make("visual:Count-v0-easy")
    env.reset(seed=0)
    assert env.step(rf"\boxed{{99}} or rather {env.expert_action()}")[1] == 1
    env.reset(seed=0)
    assert env.step(rf"{env.expert_action()} or rather \boxed{{99}}")[1] == 0


def test_the_answer_is_in_the_image() -> None:
    """Circles on a white ground, counted as connected spots."""
    env: Any = gem_core.make("visual:Count-v0-easy")
    for seed in range(15):
        _, info = env.reset(seed=seed)
        image = images_of(info)[0].as_pil()
        dark = {(x, y) for x in range(56) for y in range(56) if image.getpixel((x, y)) != (255, 255, 255)}
        assert _spots(dark) == int(env.answer)


def test_bars_are_as_high_as_said() -> None:
    env: Any = gem_core.make("visual:BarChart-v0-easy")
    for seed in range(15):
        observation, info = env.reset(seed=seed)
        image = images_of(info)[0].as_pil()
        color = ImageColor.getrgb(COLORS[observation.split(" bar?")[0].split()[-1]])
        heights = [sum(image.getpixel((x, y)) == color for y in range(56)) for x in range(56)]
        assert round((max(heights) - 1) / 10) == int(env.answer)


def test_walls_stop_and_turns_run_out() -> None:
    env: Any = gem_core.make("visual:Maze-v0-easy", max_turns=3)
    _, before = env.reset(seed=0)
    free = {move for move in ("up", "down", "left", "right") if _is_free(env, move)}
    wall = next(move for move in ("up", "down", "left", "right") if move not in free)
    observation, reward, terminated, truncated, info = env.step(rf"\boxed{{{wall}}}")
    assert (observation, reward, terminated, truncated) == ("There is a wall.\n", 0.0, False, False)
    assert info["invalid_action"]
    assert info["images"] == before["images"]
    env.step(rf"\boxed{{{wall}}}")
    *_, truncated, info = env.step(rf"\boxed{{{wall}}}")
    assert truncated
    assert not info["success"]


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        ("visual:Count-v0-easy", {"most": 17}),
        ("visual:Count-v0-easy", {"kinds": 4}),
        ("visual:Compare-v0-easy", {"shapes": 5}),
        ("visual:BarChart-v0-easy", {"highest": 40}),
        ("visual:Geometry-v0-easy", {"task": "volume"}),
        ("visual:Maze-v0-easy", {"cells": 1}),
    ],
)
def test_what_cannot_be_drawn_is_refused(env_id: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        gem_core.make(env_id, **arguments)


def _is_free(env: Any, move: str) -> bool:
    row, column = env.place
    down, right = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[move]
    return ((row, column), (row + down, column + right)) in env.open


def _spots(dark: set[tuple[int, int]]) -> int:
    left = {*dark}
    count = 0
    while left:
        count += 1
        waiting = [left.pop()]
        while waiting:
            x, y = waiting.pop()
            around = {(x + dx, y + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))} & left
            left -= around
            waiting += around
    return count
