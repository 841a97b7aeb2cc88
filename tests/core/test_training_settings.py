"""What adapters share: settings that cannot work together, tasks, and where turns stand in rows."""

from __future__ import annotations

from typing import Any

import pytest

import gem_core
from gem_core import Env
from gem_core.errors import EnvKwargsError, NotFoundError, SettingsError
from gem_core.training.metrics import announcement, rollout_metrics
from gem_core.training.settings import PlaySettings


class Still(Env):
    """Ends at once."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "Hello.", {}

    def step(self, action: str) -> Any:
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return ""


def setup_module() -> None:
    gem_core.register("test:Still-v0", Still)


def settings(**changes: Any) -> PlaySettings:
    return PlaySettings(**{"env": ["test:Still-v0"], **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"env": []}, "env has no environment id"),
        ({"env_weights": [1.0, 2.0]}, r"env_weights=\[1.0, 2.0\] for env=\['test:Still-v0'\]"),
        ({"env": ["a", "b"], "env_weights": [1.0, 0.0]}, "one weight above 0"),
        ({"env": ["a", "a"], "env_weights": [1.0, 1.0]}, "name each once"),
        ({"history": 1}, "history=1 drops .*Use view=turn, or leave history out"),
        ({"history": 0, "view": "turn"}, "at least 1 observation, not 0"),
        ({"vector_backend": "sync", "env_timeout": 5.0}, "cannot enforce env_timeout=5.0; use vector_backend=process"),
        ({"vector_backend": "sync", "vector_workers": 2}, "vector_workers=2 has no effect"),
        ({"vector_workers": 0}, "vector_workers=0 is not at least 1"),
        ({"eval_episodes": 0}, "eval_episodes=0 is not at least 1"),
        ({"env_timeout": 0.0}, "timeout must be None or above 0"),
    ],
)
def test_what_cannot_work(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        settings(**changes).check()


def test_names_are_those_of_the_framework() -> None:
    class Flags(PlaySettings, frozen=True):
        @staticmethod
        def spelled(name: str, value: object = None) -> str:
            return f"--{name}" if value is None else f"--{name} {value}"

    with pytest.raises(SettingsError, match=r"--history 1 drops .*Use --view turn, or leave --history out"):
        Flags(env=["a"], history=1).check()
    with pytest.raises(SettingsError, match="--modules: cannot import 'no_such_module'"):
        Flags(env=["a"], modules=["no_such_module"]).import_modules()
    with pytest.raises(SettingsError, match="--wrappers: cannot load 'json'"):
        Flags(env=["a"], wrappers=["json"]).load_wrappers()


def test_groups() -> None:
    settings().check_groups("rebn", 1, "n=1")
    settings().check_groups("grpo", 2, "n=2")
    with pytest.raises(SettingsError, match="grpo compares episodes of a task, so n=1 cannot work"):
        settings().check_groups("grpo", 1, "n=1")


def test_environments_are_built_once_before_anything_starts() -> None:
    settings().check_environments(4, "batch=4")
    with pytest.raises(NotFoundError, match="Stil-v0"):
        settings(eval_env=["test:Stil-v0"]).check_environments(4, "batch=4")
    with pytest.raises(EnvKwargsError, match="turns"):
        settings(env_kwargs={"turns": 3}).check_environments(4, "batch=4")
    two = ["test:Still-v0", "game:Corridor-v0"]
    with pytest.raises(SettingsError, match="batch=1: 2 environment ids for 1 places"):
        settings(env=two).check_environments(1, "batch=1")
    with pytest.raises(SettingsError, match="max_concurrent=1: 2 environment ids"):
        settings(env=two, max_concurrent=1).check_environments(4, "batch=4")


def test_a_process_has_room_for_each_environment() -> None:
    rare = settings(env=["a", "b"], env_weights=[9.0, 1.0])
    assert rare.concurrent("train", 3) == 10
    assert rare.concurrent("train", 64) == 64
    assert settings(max_concurrent=2).concurrent("eval", 64) == 2


def test_the_announcement_names_what_is_at_work() -> None:
    metrics = {"advantage/turns": 40.0, "advantage/return_mean": 0.5, "advantage/return_std": 0.25}
    line = announcement("rebn", 0.9, "turn", {**metrics, **rollout_metrics([], 3), "rollout/episodes": 8.0})
    assert line == (
        "rebn active: 40 turns from 8 episodes, return-to-go mean 0.500, std 0.250, gamma 0.9; a row is a turn"
    )
    assert rollout_metrics([], 3)["rollout/dropped"] == 3.0
