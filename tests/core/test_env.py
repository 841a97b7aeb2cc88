"""The contract itself: generators of one's own, snapshots, and wrappers that never go stale."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

import gem_core
from gem_core import Env, Wrapper
from gem_core.errors import EnvKwargsError, ResetNeededError
from gem_core.wrappers import TurnLimit


class Dice(Env):
    """Throws a die each turn; six ends it."""

    def __init__(self, sides: int = 6) -> None:
        self.sides = sides
        self.thrown: list[int] = []
        self.closed = 0

    def reset(self, seed: int | None = None, *, colour: str = "", **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.thrown = []
        return f"a {colour}die of {self.sides} sides", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.thrown.append(self.rng.randint(1, self.sides))
        done = len(self.thrown) == 50
        return str(self.thrown[-1]), float(self.thrown[-1]), done, False, {"success": done}

    def sample_random_action(self) -> str:
        return self.rng.choice(["throw", "roll"])

    def close(self) -> None:
        self.closed += 1

    def render(self) -> str:
        return f"thrown {self.thrown}"


class Plain(Wrapper):
    """Changes nothing."""


def throws(env: Env, count: int) -> list[str]:
    return [env.step("throw")[0] for _ in range(count)]


# -- generators --------------------------------------------------------------------------------------------------------


def test_a_seed_and_actions_give_one_episode() -> None:
    one, other = Dice(), Dice()
    other.reset(seed=1)
    throws(other, 3)
    one.reset(seed=5)
    other.reset(seed=5)
    assert throws(one, 10) == throws(other, 10)


def test_no_seed_goes_on_with_the_present_generator() -> None:
    one, other = Dice(1000), Dice(1000)
    for env in (one, other):
        env.reset(seed=5)
        throws(env, 2)
        env.reset()
    following = throws(one, 5)
    assert throws(other, 5) == following
    one.reset(seed=5)
    assert throws(one, 5) != following


def test_environments_share_no_generator_with_each_other_or_the_process() -> None:
    random.seed(0)
    before = random.getstate()
    alone = Dice(1000)
    alone.reset(seed=5)
    expected = throws(alone, 5)
    env, neighbour = Dice(1000), Dice(1000)
    env.reset(seed=5)
    neighbour.reset(seed=9)
    seen: list[str] = []
    for _ in range(5):
        seen += throws(env, 1)
        throws(neighbour, 3)
        neighbour.sample_random_action()
    assert seen == expected
    assert random.getstate() == before


def test_an_environment_never_reset_still_has_a_generator() -> None:
    assert Dice().sample_random_action() in ("throw", "roll")


def test_the_contract_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Env()  # type: ignore[abstract]


def test_a_with_block_closes() -> None:
    with Dice() as env:
        env.reset(seed=0)
    assert env.closed == 1


def test_text_of_an_environment_names_its_class_and_id() -> None:
    gem_core.register("demo:Dice-v0", Dice)
    assert repr(Dice()) == "<Dice>"
    assert repr(gem_core.make("demo:Dice-v0")) == "<Dice demo:Dice-v0>"
    assert repr(Plain(gem_core.make("demo:Dice-v0"))) == "<Plain <Dice demo:Dice-v0>>"


# -- snapshots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [Dice, lambda: Plain(Plain(Dice()))], ids=["env", "wrapped"])
def test_a_snapshot_can_be_gone_back_to_again_and_again(build: Any) -> None:
    env = build()
    env.reset(seed=3)
    throws(env, 2)
    state = env.get_state()
    following = throws(env, 6)
    for _ in range(3):
        env.set_state(state)
        assert len(env.thrown) == 2
        assert throws(env, 6) == following


@pytest.mark.parametrize("build", [Dice, lambda: Plain(Plain(Dice()))], ids=["env", "wrapped"])
def test_a_snapshot_moves_to_another_instance_and_process(build: Any) -> None:
    env = build()
    env.reset(seed=3)
    throws(env, 2)
    other = build()
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    assert throws(other, 6) == throws(env, 6)


@pytest.mark.parametrize("build", [Dice, lambda: Plain(Plain(Dice()))], ids=["env", "wrapped"])
def test_pickling_keeps_everything(build: Any) -> None:
    env = build()
    env.reset(seed=3)
    throws(env, 2)
    other = pickle.loads(pickle.dumps(env))
    assert repr(other) == repr(env)
    assert throws(other, 6) == throws(env, 6)


class Handle(Dice):
    """Holds what cannot be copied, and says itself what its state is."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def get_state(self) -> Any:
        return list(self.thrown), self.rng.getstate()

    def set_state(self, state: Any) -> None:
        self.thrown = list(state[0])
        self.rng.setstate(state[1])


class NoState(Dice):
    def get_state(self) -> Any:
        raise NotImplementedError("the server keeps it")


def test_a_wrapper_leaves_the_snapshot_to_the_environment() -> None:
    env = Plain(Plain(Handle()))
    lock = env.lock
    env.reset(seed=3)
    state = env.get_state()
    following = throws(env, 6)
    env.set_state(state)
    assert throws(env, 6) == following
    assert env.lock is lock
    with pytest.raises(NotImplementedError, match="the server keeps it"):
        Plain(NoState()).get_state()


# -- wrappers ----------------------------------------------------------------------------------------------------------


def test_attributes_are_looked_up_each_time() -> None:
    inner = Dice()
    env = Plain(Plain(inner))
    env.reset(seed=0)
    throws(env, 1)
    assert env.thrown is inner.thrown
    inner.sides = 20
    inner.thrown = [1, 2]
    inner.later = "added"
    assert (env.sides, env.thrown, env.later) == (20, [1, 2], "added")
    assert env.rng is inner.rng
    assert env.unwrapped is inner


def test_an_attribute_set_on_a_wrapper_is_its_own() -> None:
    inner = Dice()
    env = Plain(inner)
    env.sides = 3
    assert (env.sides, inner.sides) == (3, 6)


def test_attributes_that_nobody_has_are_attribute_errors() -> None:
    env = Plain(Dice())
    assert not hasattr(env, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = env.no_such_name
    assert not hasattr(env, "_private")


def test_everything_is_passed_on() -> None:
    inner = Dice()
    env = Plain(inner)
    assert env.reset(seed=3, colour="red ") == ("a red die of 6 sides", {})
    assert env.step("throw")[0] == str(inner.thrown[-1])
    assert env.sample_random_action() in ("throw", "roll")
    assert env.render() == inner.render()
    env.close()
    assert inner.closed == 1


def test_the_spec_is_the_wrapped_environments() -> None:
    gem_core.register("demo:Dice-v0", Dice)
    env = Plain(gem_core.make("demo:Dice-v0", sides=8))
    assert env.spec is not None
    assert env.spec is env.unwrapped.spec
    assert env.spec.kwargs == {"sides": 8}


def test_an_id_whose_entry_point_gives_a_wrapped_environment_is_spawned_whole() -> None:
    gem_core.register("demo:Dice-v0", Dice)
    gem_core.register("demo:Capped-v0", lambda sides=6: Cap(gem_core.make("demo:Dice-v0", sides=sides), "shared"))
    env = Plain(gem_core.make("demo:Capped-v0", sides=1000))
    assert env.spec is not None
    assert (env.spec.id, env.spec.kwargs) == ("demo:Capped-v0", {"sides": 1000})
    env.reset(seed=3)
    throws(env, 2)
    twin, fresh = env.spawn(same_state=True), env.spawn(sides=2000)
    assert repr(twin) == repr(env)
    assert (twin.turns, fresh.turns, fresh.sides) == ([2], [0], 2000)
    assert throws(twin, 4) == throws(env, 4)


class Cap(Wrapper):
    """Keeps a count of its own."""

    def __init__(self, env: Env, shared: object) -> None:
        super().__init__(env)
        self.turns = [0]
        self.shared = shared

    def step(self, action: str) -> Any:
        self.turns[0] += 1
        return self.env.step(action)


def test_spawn_puts_the_same_wrappers_around_a_new_environment() -> None:
    gem_core.register("demo:Dice-v0", Dice)
    env = Cap(Plain(gem_core.make("demo:Dice-v0", sides=1000)), "shared")
    env.reset(seed=3)
    throws(env, 2)
    twin, wider = env.spawn(same_state=True), env.spawn(sides=2000)
    assert repr(twin) == repr(env)
    assert twin.unwrapped is not env.unwrapped
    assert twin.turns == [2]
    assert wider.sides == 2000
    following = throws(env, 4)
    assert throws(twin, 4) == following
    assert (env.turns, twin.turns) == ([6], [6])


def test_a_wrapper_restores_its_own_state_with_the_environments() -> None:
    env = Cap(Dice(1000), "shared")
    env.reset(seed=3)
    throws(env, 2)
    state = env.get_state()
    following = throws(env, 3)
    env.set_state(state)
    assert env.turns == [2]
    assert throws(env, 3) == following
    env.set_state(state)
    assert env.turns == [2]


# -- the order of calls ------------------------------------------------------------------------------------------------


class OneTurn(Env):
    """Calls nothing of its base class, and keeps a state of its own making."""

    left = 0

    def reset(self, seed: int | None = None, level: int = 1, **options: Any) -> tuple[str, dict[str, Any]]:
        if level < 0:
            raise ValueError("no such level")
        self.left = level
        return f"level {level}", {}

    def step(self, action: str) -> Any:
        self.left -= 1
        return "", 0.0, self.left <= 0, False, {}

    def sample_random_action(self) -> str:
        return "a"

    def get_state(self) -> int:
        return self.left

    def set_state(self, state: int) -> None:
        self.left = state


class Continues(OneTurn):
    """Plays the game of its base class twice."""

    def reset(self, seed: int | None = None, games: int = 2, **options: Any) -> tuple[str, dict[str, Any]]:
        self.games = games
        return super().reset(seed=seed, **options)

    def step(self, action: str) -> Any:
        observation, reward, done, truncated, info = super().step(action)
        if done and self.games > 1:
            self.games -= 1
            super().reset()
            done = False
        return observation, reward, done, truncated, info


class Opens(OneTurn):
    """Plays a turn itself before the policy's first."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(level=2)
        return self.step("a")[0], {}


class Garbage(OneTurn):
    def step(self, action: str) -> Any:
        return 7


@pytest.mark.parametrize(
    "build", [OneTurn, Continues, Opens, lambda: Plain(OneTurn()), lambda: TurnLimit(OneTurn(), 9)]
)
def test_a_step_needs_an_episode(build: Callable[[], Env]) -> None:
    env = build()
    for why in ("before reset", "after its episode ended"):
        for _ in range(2):
            with pytest.raises(ResetNeededError, match=rf"was stepped {why}.*Call reset\(\) first"):
                env.step("a")
        env.reset(seed=1)
        for _ in range(2 if isinstance(env, Continues) else 1):
            _, _, terminated, truncated, _ = env.step("a")
        assert terminated
        assert not truncated


def test_a_truncated_episode_has_ended() -> None:
    env = TurnLimit(Dice(), 1)
    env.reset(seed=1)
    assert env.step("throw")[3]
    with pytest.raises(ResetNeededError, match="after its episode ended"):
        env.step("throw")


def test_a_reset_that_raised_began_nothing() -> None:
    env = OneTurn()
    with pytest.raises(ValueError, match="no such level"):
        env.reset(level=-1)
    with pytest.raises(ResetNeededError, match="before reset"):
        env.step("a")


@pytest.mark.parametrize("kind", [Dice, OneTurn])
def test_a_snapshot_may_be_played_on(kind: type[Env]) -> None:
    env, twin = kind(), kind()
    env.reset(seed=1, **({"level": 3} if kind is OneTurn else {}))
    env.step("a")
    twin.set_state(env.get_state())
    assert twin.step("a") == env.step("a")


def test_what_is_no_transition_reaches_the_caller() -> None:
    env = Garbage()
    env.reset()
    assert env.step("a") == env.step("a") == 7


@pytest.mark.parametrize("build", [Dice, Continues, lambda: Plain(OneTurn())])
def test_a_reset_refuses_options_that_nobody_names(build: Callable[[], Env]) -> None:
    env = build()
    with pytest.raises(EnvKwargsError, match=r"no reset option 'idx' \(given 3\).*It takes: .*seed"):
        env.reset(seed=1, idx=3)
    with pytest.raises(ResetNeededError):
        env.step("a")


def test_options_of_all_its_classes_are_known() -> None:
    assert Continues().reset(seed=1, level=3, games=1)[0] == "level 3"
    assert Plain(Continues()).reset(seed=1, level=3)[0] == "level 3"
    with pytest.raises(EnvKwargsError, match="Did you mean 'level'"):
        Continues().reset(levle=3)


class Hinted(OneTurn):
    """Has a parameter of its own, steps its base twice, and recovers from its base's errors."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        try:
            super().reset(seed=seed)
            super().step("warm up")
            raise ValueError("the level is broken")
        except ValueError:
            return "another level", {}

    def step(self, action: str, hint: str = "") -> Any:
        super().step(action)
        observation, reward, _, truncated, info = super().step(action)
        return f"{observation}{hint}", reward, False, truncated, info

    def set_state(self, state: Any) -> None:
        raise OSError("no such snapshot")


def test_an_environment_may_call_its_base_as_it_likes() -> None:
    env = Hinted()
    with pytest.raises(OSError, match="no such snapshot"):
        env.set_state({})
    with pytest.raises(ResetNeededError, match="before reset"):
        env.step("a")
    assert env.reset(seed=0)[0] == "another level"
    for _ in range(3):
        assert env.step("a", hint="!")[0].endswith("!")


def test_an_option_that_the_wrapped_environment_refuses_ends_no_episode() -> None:
    env = TurnLimit(Hinted(), 9)
    env.reset(seed=0)
    with pytest.raises(EnvKwargsError, match="no reset option 'idx'"):
        env.reset(idx=3)
    env.step("a")
