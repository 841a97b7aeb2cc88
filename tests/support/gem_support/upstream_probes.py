"""Twenty-two uses of gem-llm's interface, for whatever module offers it: gem-llm, gem_compat, or gem_core itself.

A probe takes the module as `gem`, and raises where it does not do what gem-llm 0.1.0 does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Generator
from functools import reduce
from typing import Any

EASY = "game:GuessTheNumber-v0-easy"
HARD = "game:GuessTheNumber-v0-hard"
RANDOM = "game:GuessTheNumber-v0-random"
NOTHING = "I do not know."

PROBES: dict[str, Callable[[Any], None]] = {}


def probe(function: Callable[[Any], None]) -> Callable[[Any], None]:
    PROBES[function.__name__] = function
    return function


def part(gem: Any, path: str) -> Any:
    """A module of the package, or whatever it says about an attribute of that name."""
    try:
        return importlib.import_module(f"{gem.__name__}.{path}")
    except ModuleNotFoundError:
        return reduce(getattr, path.split("."), gem)


@contextlib.contextmanager
def closed(vec: Any) -> Generator[Any]:
    """Close a vector afterwards; gem-llm's cannot be closed."""
    try:
        yield vec
    finally:
        if hasattr(vec, "close"):
            vec.close()


def box(guess: int) -> str:
    return f"\\boxed{{{guess}}}"


def played(env: Any, actions: list[str], seed: int | None = None) -> list[Any]:
    """What an environment shows until its end."""
    shown: list[Any] = [env.reset(seed=seed)[0]]
    for action in actions:
        shown.append(env.step(action)[:4])
        if shown[-1][2] or shown[-1][3]:
            break
    return shown


# -- one environment ---------------------------------------------------------------------------------------------------


@probe
def make_and_reset(gem: Any) -> None:
    observation, info = gem.make(EASY).reset()
    assert isinstance(observation, str)
    assert observation
    assert isinstance(info, dict)


@probe
def a_seed_makes_an_episode_again(gem: Any) -> None:
    guesses = [box(guess) for guess in (25, 12, 37, 6, 18)]
    first, second = (played(gem.make(HARD), guesses, seed=7) for _ in range(2))
    assert first == second


@probe
def step_gives_five_values(gem: Any) -> None:
    env = gem.make(EASY)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(box(5))
    assert isinstance(observation, str)
    assert 0 <= float(reward) <= 1
    assert type(terminated) is type(truncated) is bool
    assert isinstance(info, dict)


@probe
def arguments_override_those_of_an_id(gem: Any) -> None:
    guesses = [box(guess) for guess in (1, 50, 2, 49)]
    assert len(played(gem.make(HARD, max_turns=2), guesses, seed=3)) <= 3


@probe
def the_loop_of_the_readme(gem: Any) -> None:
    env = gem.make(EASY)
    observation, _ = env.reset()
    for _turn in range(4):
        observation, _, terminated, truncated, _ = env.step(env.sample_random_action())
        if terminated or truncated:
            break
    assert terminated or truncated
    assert isinstance(observation, str)


@probe
def unwrapped_is_the_environment(gem: Any) -> None:
    env = gem.make(EASY)
    assert env.unwrapped is env


@probe
def a_state_can_be_restored(gem: Any) -> None:
    env = gem.make("rg:letter_counting")
    env.reset(seed=1)
    state = env.get_state()
    first = env.step(box(2))[:4]
    env.set_state(state)
    assert env.step(box(2))[:4] == first


@probe
def spawn_in_the_same_state(gem: Any) -> None:
    env = gem.make("rg:letter_counting")
    env.reset(seed=1)
    twin = env.spawn(same_state=True)
    assert twin.step(box(2))[:4] == env.step(box(2))[:4]


@probe
def a_text_without_a_box_ends_the_episode(gem: Any) -> None:
    env = gem.make(EASY)
    env.reset()
    _, reward, terminated, _, _ = env.step(NOTHING)
    assert (reward, terminated) == (-0.1, True)


@probe
def a_data_set_of_some_size(gem: Any) -> None:
    env = gem.make("rg:letter_counting", size=5)
    questions = set()
    for _ in range(3):
        questions.add(env.reset()[0])
        _, reward, terminated, truncated, _ = env.step(box(1))
        assert 0 <= reward <= 1
        assert (terminated, truncated) == (True, True)
    assert len(questions) > 1


# -- vectors -----------------------------------------------------------------------------------------------------------


@probe
def a_vector_gives_arrays(gem: Any) -> None:
    with closed(gem.make_vec([EASY, HARD, EASY], seed=0)) as vec:
        observations, infos = vec.reset()
        assert (vec.num_envs, len(observations), len(infos)) == (3, 3, 3)
        observations, rewards, terminated, truncated, infos = vec.step([NOTHING] * 3)
        assert rewards.shape == (3,)
        assert round(rewards.sum(), 6) == -0.3
        assert (terminated | truncated).all()
        assert (len(observations), len(infos)) == (3, 3)


@probe
def a_step_of_some_environments(gem: Any) -> None:
    with closed(gem.make_vec([HARD] * 3)) as vec:
        vec.reset(seed=0)
        observations, rewards, _, _, _ = vec.step({2: box(25), 0: box(25)})
        assert (len(observations), rewards.shape) == (2, (2,))


@probe
def a_seed_for_each_place(gem: Any) -> None:
    with closed(gem.make_vec([RANDOM] * 3)) as vec:
        first, _ = vec.reset(seed=[5, 6, 7])
        again, _ = vec.reset(seed=[5, 6, 7])
        assert first == again
        assert len(set(first)) > 1


@probe
def one_seed_for_all_places(gem: Any) -> None:
    with closed(gem.make_vec([RANDOM] * 3)) as vec:
        first, _ = vec.reset(seed=5)
        again, _ = vec.reset(seed=5)
        assert first == again
        assert len(set(first)) > 1


@probe
def an_ended_episode_gives_way_to_the_next(gem: Any) -> None:
    with closed(gem.make_vec([EASY] * 2)) as vec:
        openings, _ = vec.reset()
        observations, _, terminated, _, _ = vec.step([NOTHING, NOTHING])
        assert terminated.all()
        # The rest of an opening has an example, which may be drawn.
        assert [one.partition(".")[0] for one in observations] == [one.partition(".")[0] for one in openings]


# -- what gem_core itself does in another way --------------------------------------------------------------------------


@probe
def the_list_of_environments(gem: Any) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        gem.print_envs()
    assert EASY in printed.getvalue()


@probe
def an_asynchronous_vector(gem: Any) -> None:
    with closed(gem.make_vec([EASY] * 3, async_mode=True)) as vec:
        vec.reset(seed=0)
        _, rewards, _, _, _ = vec.step([NOTHING] * 3)
        assert rewards.tolist() == [-0.1] * 3


@probe
def arguments_for_each_place(gem: Any) -> None:
    with closed(gem.make_vec([HARD] * 2, vec_kwargs=[{"max_turns": 1}, {"max_turns": 5, "max_number": 3}])) as vec:
        vec.reset(seed=0)
        _, _, _, truncated, _ = vec.step([NOTHING] * 2)
        assert truncated.tolist() == [True, False]


@probe
def arguments_for_all_places(gem: Any) -> None:
    with closed(gem.make_vec([HARD] * 2, max_turns=1)) as vec:
        vec.reset(seed=0)
        _, _, _, truncated, _ = vec.step([NOTHING] * 2)
        assert truncated.all()


@probe
def an_environment_of_ones_own(gem: Any) -> None:
    class Count(gem.Env):
        def __init__(self, size: int = 1, **_: Any) -> None:
            super().__init__()
            self.size = size

        def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
            super().reset(seed)
            self.turn = 0
            return "Count.", {}

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            self.turn += 1
            return action, self.turn == self.size, self.turn == self.size, False, {}

    with contextlib.suppress(ValueError):  # gem-llm registers an id once
        gem.register("probe:Count-v0", Count, size=2)
    assert len(played(gem.make("probe:Count-v0"), ["1", "2", "3"])) == 3
    assert len(played(gem.make("probe:Count-v0", size=3), ["1", "2", "3"])) == 4
    with closed(gem.make_vec(["probe:Count-v0"] * 2, seed=1)) as vec:
        vec.reset()
        vec.step(["1", "1"])
        assert vec.step(["2", "2"])[2].all()


@probe
def wrappers_by_name(gem: Any) -> None:
    wrappers = part(gem, "wrappers.wrapper_factory").get_wrapper_fns("concat_with_action,episode_tracking")
    with closed(gem.make_vec([HARD], wrappers=wrappers)) as vec:
        vec.reset(seed=0)
        [observation], _, _, _, [info] = vec.step(["I say \\boxed{1}"])
        assert "I say" in observation
        assert info["step_counter"] == 1


@probe
def the_python_tool(gem: Any) -> None:
    tool = part(gem, "tools.python_code_tool").PythonCodeTool(timeout=5)
    found, failed, answer, parsed = tool.execute_action("Let me see. <python>print(6 * 7)</python> And then?")
    assert (found, failed, "42" in answer) == (True, False, True)
    assert parsed.endswith("</python>")
    wrapper = part(gem, "tools.tool_env_wrapper").ToolEnvWrapper
    env = wrapper(gem.make(HARD), tools=[tool], tool_reward=0.05, tool_success_reward=0.25, max_tool_uses=5)
    assert "python" in env.reset(seed=0)[0]
    observation, reward, terminated, _, info = env.step("<python>print(6 * 7)</python>")
    assert ("42" in observation, round(reward, 6), terminated) == (True, 0.3, False)
    assert (info["tool_use_counter"], info["tool_success_counter"]) == (1, 1)
    assert env.step(NOTHING)[2]
