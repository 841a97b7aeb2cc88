"""Gymnasium's environments as ours: found by name, played in text, the same in every process."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("gymnasium")

import gem_core
from gem_core.env import Env, shown_text
from gem_core.errors import EnvError, EnvKwargsError, MissingExtraError, NotFoundError, PluginError
from gem_core.installation import install_line
from gem_core.plugins import manager
from gem_core.registry import provenance
from gem_core.vector import make_vec
from gem_gym.codec import Codec
from gem_testing import check_env

TOY_TEXT = [registration.spec.id for registration in manager.registrations("gem_envs", "gym")]
LONG = ["gym:CliffWalking-v1", "gym:CliffWalkingSlippery-v1", "gym:MountainCarContinuous-v0", "gym:Taxi-v4"]
VAULT = "gym:gymnasium_envs:Tests/Vault-v0"
HANDLE = "gym:gymnasium_envs:Tests/Handle-v0"


class Boxed(Codec):
    """Passes the box on."""

    def parse(self, text: str) -> Any:
        return rf"\boxed{{{text}}}"

    def show(self, action: Any) -> str:
        return "1"


def opening(env: Env, seed: int = 0) -> str:
    return shown_text(*env.reset(seed=seed))


# -- found by name -----------------------------------------------------------------------------------------------------


def test_any_registered_id_is_found() -> None:
    assert "gym:CartPole-v1" not in TOY_TEXT
    assert gem_core.spec("gym:CartPole-v1").kwargs == {"gymnasium_id": "CartPole-v1"}


@pytest.mark.parametrize(
    ("env_id", "error", "message"),
    [
        ("gym:CartPol-v1", NotFoundError, "Did you mean 'gym:CartPole-v1'"),
        ("gym:CliffWalking-v0", NotFoundError, "use `CliffWalking-v1` instead"),
        ("gym:gymnasium_envs:Tests/Vaul-v0", NotFoundError, f"Did you mean '{VAULT}'"),
        ("gym:Qzx-v0", NotFoundError, "write gym:<module>:Qzx-v0"),
        ("gym:.envs:Qzx-v0", NotFoundError, "Gymnasium has none of that name"),
        ("gym:no_such_module:A-v0", MissingExtraError, "'no_such_module', which is not installed"),
    ],
)
def test_an_unknown_id_says_what_to_do(env_id: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        gem_core.make(env_id)
    assert message in str(caught.value)


def test_without_gymnasium_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import gem_core\n"
        "for name in ('FrozenLake-v1', 'CartPole-v1'):\n"
        "    try: gem_core.make('gym:' + name)\n"
        "    except gem_core.errors.MissingExtraError as error: print(error)\n"
        "try: from gem_gym.exported import to_gymnasium\n"
        "except gem_core.errors.MissingExtraError as error: print(error)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.count(install_line("gym")) == 3


def test_versions_are_recorded() -> None:
    version = importlib.metadata.version("gymnasium")
    assert provenance("gym:CartPole-v1").libraries == (f"gymnasium {version}",)
    assert f"gymnasium {version}" in str(provenance("gym:FrozenLake-v1"))


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_arguments_reach_the_environment() -> None:
    with gem_core.make("gym:FrozenLake-v1", desc=["SF", "HG"], is_slippery=False, max_episode_steps=7) as env:
        shown = opening(env)
    assert shown.endswith("@ F\nH G")
    assert "not slippery" in shown
    assert "You have 7 turns." in shown


@pytest.mark.parametrize(
    ("env_id", "kwargs", "error", "message"),
    [
        ("gym:FrozenLake-v1", {"slippery": False}, EnvKwargsError, "Did you mean 'is_slippery'"),
        ("gym:FrozenLake-v1", {"max_episode_steps": "9"}, EnvKwargsError, "give int"),
        ("gym:FrozenLake-v1", {"max_episode_steps": 0}, EnvError, "give at least 1"),
        ("gym:FrozenLake-v1", {"invalid_reward": float("nan")}, EnvError, "is not finite"),
        ("gym:FrozenLake-v1", {"codec": "json:dumps"}, EnvError, "not a subclass of gem_gym.codec.Codec"),
        ("gym:FrozenLake-v1", {"codec": "Shouted"}, PluginError, "is not 'package.module:attribute'"),
        ("gym:FrozenLake-v1", {"map_name": None}, EnvError, "another map in each process"),
        (HANDLE, {"codec": "gem_gym.toy_text:Taxi"}, EnvError, "Taxi.actions has 6 names"),
        (VAULT, {"codec": "gem_gym.toy_text:Blackjack"}, EnvError, "Blackjack.actions has 2 names"),
        ("gym:phys2d/CartPole-v1", {}, MissingExtraError, "'jax', which is not installed"),
        ("gym:gymnasium_envs:Tests/Picture-v0", {}, EnvError, "observations have 100,800 numbers each"),
        ("gym:gymnasium_envs:Tests/Linked-v0", {}, EnvError, "actions are of the space Graph, which has no text"),
    ],
)
def test_arguments_that_cannot_work_are_refused(
    env_id: str, kwargs: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        gem_core.make(env_id, **kwargs)
    assert message in str(caught.value)


# -- play --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [*TOY_TEXT, "gym:CartPole-v1", "gym:MountainCarContinuous-v0", VAULT])
def test_the_contract_is_kept(env_id: str) -> None:
    # The check plays some hundred episodes, of which most would have 100 or 200 turns.
    check_env(env_id, **({"max_episode_steps": 30} if env_id in LONG else {}))


@pytest.mark.parametrize("env_id", ["gym:FrozenLake-v1", "gym:Taxi-v4", VAULT])
def test_processes_play_what_one_thread_plays(env_id: str) -> None:
    def play(backend: Any) -> list[Any]:
        with make_vec(env_id, 4, backend=backend, seed=5) as vec, gem_core.make(env_id) as twin:
            vec.reset()
            seen: list[Any] = []
            for turn in range(12):
                twin.reset(seed=turn)
                seen.append(vec.step([twin.sample_random_action() for _ in range(4)]))
        return [(*map(list, (one[0], one[1], one[2], one[3])), one[4]) for one in seen]

    assert play("process") == play("sync")


def test_seeds_are_those_of_gymnasium() -> None:
    import gymnasium

    theirs, _ = gymnasium.make("Taxi-v4").reset(seed=11)
    with gem_core.make("gym:Taxi-v4") as env:
        env.reset(seed=11)
        row, column, *_ = gymnasium.make("Taxi-v4").unwrapped.decode(theirs)  # type: ignore[attr-defined]
        assert f"row {row + 1}, column {column + 1}" in str(env.render())


def test_endings_are_those_of_gymnasium() -> None:
    with gem_core.make("gym:FrozenLake-v1", is_slippery=False, max_episode_steps=2) as env:
        env.reset(seed=0)
        assert env.step(r"\boxed{up}")[2:4] == (False, False)
        *_, terminated, truncated, info = env.step(r"\boxed{up}")
        assert (terminated, truncated, info["success"]) == (False, True, False)
        env.reset()
        env.step(r"\boxed{down}")
        observation, _, terminated, truncated, info = env.step(r"\boxed{right}")
        assert observation == "You fell into a hole at row 2, column 2."
        assert (terminated, info["success"]) == (True, False)


def test_success_is_the_registered_threshold() -> None:
    with gem_core.make("gym:CartPole-v1") as env:
        env.reset(seed=0)
        while True:
            *_, terminated, truncated, info = env.step(r"\boxed{0}")
            if terminated or truncated:
                break
    assert terminated
    assert info["success"] is False


@pytest.mark.parametrize("action", ["", "up", r"\boxed{", r"\boxed{}", r"\boxed{north}", r"\boxed{up} \boxed{4}"])
def test_an_invalid_action_ends_the_episode(action: str) -> None:
    with gem_core.make("gym:FrozenLake-v1") as env:
        env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.1, True, False)
    assert info == {"success": False, "invalid_action": True}
    assert "one of left, down, right, up" in observation


def test_an_invalid_action_never_pays() -> None:
    for env_id, least in (("gym:Taxi-v4", -200.0), ("gym:CliffWalking-v1", -100.0), ("gym:Blackjack-v1", -1.0)):
        with gem_core.make(env_id) as env:
            env.reset(seed=0)
            assert env.step("?")[1] == least
    with gem_core.make("gym:Taxi-v4", invalid_reward=-3.0) as env:
        env.reset(seed=0)
        assert env.step("?")[1] == -3.0
    for env_id in ("gym:Taxi-v4", "gym:CliffWalking-v1"):
        with gem_core.make(env_id, max_episode_steps=500) as env:
            env.reset(seed=0)
            assert env.step("?")[1] == -500.0


def test_infos_are_json_under_a_key_of_their_own() -> None:
    with gem_core.make(VAULT) as env:
        _, info = env.reset(seed=0)
        assert info == {"gymnasium": {"mask": [1, 1], "error": "none"}}
        info = env.step(env.sample_random_action())[4]
        assert json.dumps(info)
        assert isinstance(info["gymnasium"]["is_success"], bool)


def test_what_cannot_be_copied_refuses_snapshots() -> None:
    with gem_core.make(HANDLE) as env:
        env.reset(seed=0)
        with pytest.raises(NotImplementedError, match="cannot be copied: TypeError"):
            env.get_state()


def test_a_codec_of_ones_own() -> None:
    with gem_core.make(HANDLE, codec="gymnasium_envs:Shouted") as env:
        assert opening(env) == (
            "Go on until you are there. An action is one of Hold, Go on. Put it in a box, for example \\boxed{Go on}.\n"
            "NOT YET!"
        )
        assert env.step(r"\boxed{ go ON }")[0] == "YOU ARE THERE!"


def test_an_episode_of_ours_played_through_both_worlds() -> None:
    import gymnasium

    gymnasium.register(
        "Tests/Guess-v0",
        "gem_gym.exported:to_gymnasium",
        kwargs={"env_id": "game:GuessTheNumber-v0-easy"},
    )
    with (
        gem_core.make("gym:Tests/Guess-v0", codec=Boxed) as there,
        gem_core.make("game:GuessTheNumber-v0-easy") as here,
    ):
        assert opening(there, 3).endswith(opening(here, 3))
        for guess in ("1", "2", "10"):
            action = rf"\boxed{{{guess}}}"
            assert there.step(rf"\boxed{{{action}}}")[:4] == here.step(action)[:4]
