"""Our environments in Gymnasium."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

import gem_core
from gem_core.env import shown_text
from gem_core.errors import EnvKwargsError, NotFoundError, ResetNeededError
from gem_gym.exported import MAX_LENGTH, AnyText, GymnasiumEnv, to_gymnasium

GUESS = "game:GuessTheNumber-v0-easy"
NAME = "Tests/Interop-v0"

pytestmark = pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes")


@pytest.fixture(autouse=True)
def registered() -> None:
    if NAME not in gymnasium.registry:
        gymnasium.register(NAME, "gem_gym.exported:to_gymnasium", kwargs={"env_id": GUESS})


@pytest.mark.parametrize(
    "env_id", [GUESS, "game:Sokoban-v1-easy", "game:Mastermind-v0-easy", "game:TowerofHanoi-v0-easy"]
)
def test_gymnasiums_own_check_passes(env_id: str) -> None:
    check_env(to_gymnasium(env_id))


@pytest.mark.filterwarnings("error")
def test_gymnasiums_own_check_passes_without_a_warning_on_a_registered_id() -> None:
    check_env(gymnasium.make(NAME, disable_env_checker=True).unwrapped)


@pytest.mark.parametrize("env_id", [GUESS, "game:Sokoban-v1-easy", "game:TowerofHanoi-v0-easy"])
def test_transitions_are_the_same(env_id: str) -> None:
    ours, theirs = gem_core.make(env_id), to_gymnasium(env_id)
    for seed in range(5):
        observation, info = ours.reset(seed=seed)
        assert theirs.reset(seed=seed) == (shown_text(observation, info), info)
        terminated = truncated = False
        while not terminated and not truncated:
            action = ours.sample_random_action()
            assert theirs.env.sample_random_action() == action
            observation, reward, terminated, truncated, info = ours.step(action)
            assert theirs.step(action) == (shown_text(observation, info), reward, terminated, truncated, info)


def test_arguments_and_options_arrive() -> None:
    env = to_gymnasium(GUESS, max_turns=9)
    assert "in 9 guesses" in env.reset(seed=0)[0]
    with pytest.raises(EnvKwargsError, match="no reset option 'level'"):
        env.reset(options={"level": 3})
    with pytest.raises(NotFoundError, match="Did you mean"):
        to_gymnasium("game:GuessTheNumber-v0-eas")
    with pytest.raises(EnvKwargsError, match="Did you mean 'max_turns'"):
        to_gymnasium(GUESS, max_turn=9)


def test_a_step_needs_a_reset() -> None:
    with pytest.raises(ResetNeededError):
        to_gymnasium(GUESS).step("?")


def test_rendering() -> None:
    env = to_gymnasium("game:TowerofHanoi-v0-easy", render_mode="ansi")
    env.reset(seed=0)
    assert "A: 3 2 1" in str(env.render())
    assert to_gymnasium(GUESS).render() is None
    with pytest.raises(ValueError, match="render_mode='human' is not supported"):
        GymnasiumEnv(gem_core.make(GUESS), render_mode="human")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_vectors_play_them(mode: str) -> None:
    def play(**kwargs: Any) -> list[Any]:
        vec = gymnasium.make_vec(NAME, num_envs=2, vectorization_mode=mode, **kwargs)
        try:
            seen = [vec.reset(seed=4)[0], vec.step(("\\boxed{1}", "\\boxed{2}"))[:4]]
        finally:
            vec.close()
        return seen

    alone = [gem_core.make(GUESS).reset(seed=seed)[0] for seed in (4, 5)]
    kwargs = {"vector_kwargs": {"shared_memory": False}} if mode == "async" else {}
    assert list(play(**kwargs)[0]) == alone


def test_the_space_of_all_texts() -> None:
    space = AnyText(seed=0)
    for text in ("", "é▲\n\0", "\ud800", "a" * MAX_LENGTH):
        assert text in space
    assert "a" * (MAX_LENGTH + 1) not in space
    assert 3 not in space
    samples = [space.sample() for _ in range(50)]
    assert all(one in space and len(one) <= 32 for one in samples)
    assert samples == [twin.sample() for twin in [AnyText(seed=0)] for _ in range(50)]
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
    assert space != gymnasium.spaces.Text(MAX_LENGTH)
