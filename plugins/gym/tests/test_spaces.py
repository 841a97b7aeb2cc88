"""Spaces in words, and their values as JSON: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

pytest.importorskip("gymnasium")

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from gymnasium.utils.env_checker import data_equivalence

from gem_gym._spaces import NotInSpaceError, from_plain, in_words, shown, to_plain
from gem_gym.codec import Codec

SPACES: list[tuple[Any, str]] = [
    (spaces.Discrete(3, start=-1), "a whole number from -1 to 1"),
    (spaces.MultiDiscrete([3, 2]), "a list of 2 whole numbers: from 0 to 2, from 0 to 1"),
    (spaces.MultiDiscrete([[3, 2], [2, 2]]), "a list of 2 lists of 2 whole numbers from 0 to 2"),
    (spaces.MultiBinary(3), "a list of 3 whole numbers from 0 to 1"),
    (spaces.Box(0.0, 1.0, (), np.float64), "a number from 0 to 1"),
    (spaces.Box(-0.7, 0.1, (2,)), "a list of 2 numbers from -0.7 to 0.1"),
    (
        spaces.Box(np.array([-1, 0], np.float32), np.array([np.inf, 2.5], np.float32)),
        "a list of 2 numbers: from -1, from 0 to 2.5",
    ),
    (spaces.Box(-np.inf, np.inf, (2, 3)), "a list of 2 lists of 3 numbers"),
    (spaces.Box(0, 255, (2, 2), np.uint8), "a list of 2 lists of 2 whole numbers from 0 to 255"),
    (spaces.Text(4, charset="ab"), "a text in double quotes, of 1 to 4 of the characters ab"),
    (
        spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (2,)))),
        "a list of 2 items: (1) a whole number from 0 to 1; (2) a list of 2 numbers from 0 to 1",
    ),
    (
        spaces.Dict(a=spaces.Discrete(2), b=spaces.Text(3, charset="ab")),
        'an object with these keys: "a": a whole number from 0 to 1; '
        '"b": a text in double quotes, of 1 to 3 of the characters ab',
    ),
]
NOTHING = ["true", "null", "{}", "[]", "[true, false]", "[1e400, 0]", f"[{10**400}, 0]", "[-300, 1]", "[[1], [2]]"]
NOTHING += ["[1e39, 1e39]", '{"a": 0}', '{"a": 0, "b": "a", "c": 1}', '{"a": 0, "b": "c"}', '"abcab"', "[0, [1]]", "9"]


@pytest.mark.parametrize(("space", "words"), SPACES)
def test_words_and_values(space: Any, words: str) -> None:
    assert in_words(space) == words
    for seed in range(100):
        space.seed(seed)
        value = space.sample()
        again = from_plain(space, json.loads(json.dumps(to_plain(space, value))))
        if not isinstance(space, spaces.Discrete | spaces.Text):
            assert data_equivalence(flatten(space, value), flatten(space, again), exact=True)
        else:
            assert again == value
        assert isinstance(shown(space, value), str)


@pytest.mark.parametrize(("space", "_words"), SPACES)
@pytest.mark.parametrize("text", NOTHING)
def test_what_is_in_no_space_is_refused(space: Any, _words: str, text: str) -> None:
    with pytest.raises(NotInSpaceError):
        from_plain(space, json.loads(text))


def test_a_bound_that_is_no_exact_number_can_be_given_as_it_is_shown() -> None:
    assert from_plain(spaces.Box(-0.7, 0.1, (2,)), [-0.7, 0.1]).dtype == np.float32


def test_observations_are_short() -> None:
    assert shown(spaces.Box(-1, 1, (2,)), np.array([0.123456, 1.0], np.float32)) == "[0.1235, 1]"
    grid = spaces.Dict(grid=spaces.Box(0, 9, (2, 2), np.int64), text=spaces.Text(3))
    assert shown(grid, {"grid": np.array([[1, 2], [3, 4]]), "text": "abc"}) == "grid:\n1 2\n3 4\ntext: abc"


def test_braces_in_a_text_do_not_end_the_box() -> None:
    import gymnasium

    class Braces(gymnasium.Env[Any, Any]):
        action_space = spaces.Dict(a=spaces.Text(8, charset='{}"\\'))
        observation_space = spaces.Discrete(2)

    codec, rng = Codec(Braces()), random.Random(0)
    for _ in range(200):
        action = codec.sample(rng)
        written = codec.show(action)
        assert written[1:-1].count("{") == 0
        assert codec.parse(written) == action


@pytest.mark.parametrize("text", ["", "NaN", "[" * 20_000, "1" * 40_000, "0x1", "1 2", "'a'"])
def test_what_is_no_json_is_refused(text: str) -> None:
    import gymnasium

    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds, all of which the environment expects
        Codec(gymnasium.make("CartPole-v1")).parse(text)
