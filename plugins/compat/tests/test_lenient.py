"""What upstream's programs do beside its documented interface: arguments, attributes and steps that it lets pass."""

from __future__ import annotations

import copy
import pickle
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import gem_compat as gem
import gem_core
from gem_compat.core import EnvWrapper
from gem_compat.envs.code_env import CodeEnv
from gem_compat.envs.math_env import MathEnv
from gem_compat.envs.qa_env import QaEnv
from gem_compat.tools.python_code_tool import PythonCodeTool
from gem_compat.tools.tool_env_wrapper import ToolEnvWrapper
from gem_compat.utils.constants import TERMINAL_STATE
from gem_compat.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper
from gem_compat.wrappers.wrapper_factory import WRAPPER_FACTORY
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError, ResetNeededError

datasets = pytest.importorskip("datasets")

EASY = "game:GuessTheNumber-v0-easy"
ADD = "```python\na, b = map(int, input().split())\nprint(a + b)\n```"
SUMS = [{"problem": f"What is {number} plus one?", "answer": str(number + 1)} for number in range(6)]
PEOPLE = [{"problem": f"Who is number {number}?", "answer": f"Person {number}"} for number in range(6)]
PROGRAMS = [
    {"problem": f"Add, {number}.", "tests": {"inputs": [f"{number} 1\n"], "outputs": [f"{number + 1}\n"]}}
    for number in range(4)
]
GAMES = [
    "GuessTheNumber",
    "Mastermind",
    "Minesweeper",
    "FifteenPuzzle",
    "Sudoku",
    "TowerofHanoi",
    "Game2048",
    "Sokoban",
]


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets of upstream's names, made here."""

    def load_dataset(name: str) -> Any:
        kind = name.lower()
        rows = PROGRAMS if "taco" in kind else PEOPLE if "hotpot" in kind or "natural" in kind else SUMS
        splits = ["math", "amc"] if "eval" in kind else ["train"]
        return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split in splits})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


def boxed(answer: Any) -> str:
    return f"So \\boxed{{{answer}}}."


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [EASY, "math:GSM8K", "qa:HotpotQA", "code:Taco8k", "rg:gcd", "eval:MATH500"])
def test_arguments_that_an_environment_does_not_have_are_ignored(env_id: str) -> None:
    if env_id.startswith("rg:"):
        pytest.importorskip("reasoning_gym")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gem.make(env_id, max_turns=2, load_from_cache_file=False, use_mp=False, foo=None, verbose=True)
    env.reset()


def test_one_that_is_nearly_right_is_ignored_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"ignores max_turn=3, as gem-llm does. Did you mean 'max_turns'"):
        assert gem.make(EASY, max_turn=3).max_turns == 4


def test_a_vector_of_several_kinds_takes_the_arguments_of_each() -> None:
    vec = gem.make_vec([EASY, "math:GSM8K"], max_turns=1, load_from_cache_file=False)
    vec.reset()
    assert vec.step([boxed(3)] * 2)[2].tolist() == [True, True]


def test_the_core_is_as_strict_as_it_was() -> None:
    with pytest.raises(EnvKwargsError):
        gem_core.make(EASY, foo=1)
    with pytest.raises(NotFoundError):
        gem.make("game:NoSuchGame-v0", foo=1)
    env = gem_core.make(EASY)
    with pytest.raises(ResetNeededError):
        env.step(boxed(3))


@pytest.mark.parametrize("seed", [1_790_000_000_123_456_789, 26_850_000_001_851_851_835, 2**31, -3])
def test_a_clock_is_a_seed(seed: int) -> None:
    gem.make(EASY, seed=seed).reset()
    math = gem.make("math:GSM8K", seed=seed)
    assert math.seed == seed
    assert math.reset()[0] == gem.make("math:GSM8K", seed=seed).reset()[0]
    vec = gem.make_vec([EASY], seed=seed)
    vec.reset(seed=seed)
    vec.step([boxed(3)])
    pytest.importorskip("reasoning_gym")
    env = gem.make("rg:gcd", seed=seed, size=10**12)
    assert (env.seed, env.size, env.name) == (seed, 10**12, "gcd")
    assert env.reset()[0] == gem.make("rg:gcd", seed=seed).reset()[0]


# -- steps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["easy", "random"])
@pytest.mark.parametrize("game", GAMES)
def test_a_game_goes_on_after_its_end_and_begins_with_its_construction(game: str, level: str) -> None:
    env = gem.make(f"game:{game}-v0-{level}", max_turns=2)
    assert isinstance(env.max_turns, int)
    action, ended = "", False
    while not ended:
        action = env.sample_random_action()
        ended = any(env.step(action)[2:4])
    assert [len(env.step(action)) for _ in range(3)] == [5] * 3
    assert env.unwrapped is env


def test_what_is_only_known_after_a_reset_is_known_at_once() -> None:
    assert isinstance(gem.make("game:GuessTheNumber-v0-random").max_turns, int)


def test_wrappers_pass_such_steps_on() -> None:
    class Own(EnvWrapper):
        pass

    for wrap in (Own, EpisodeTrackingWrapper, WRAPPER_FACTORY["concat"], partial(ToolEnvWrapper, tools=[])):
        env = wrap(gem.make(EASY, max_turns=1))
        env.reset()
        assert [env.step(boxed(3))[2] for _ in range(3)] == [True] * 3


def test_an_environment_of_ones_own_is_not_guarded() -> None:
    class Short(gem.Env):
        def reset(self, seed: int | None = None) -> Any:
            super().reset(seed)
            return "", {}

        def step(self, action: str) -> Any:
            return action, 1.0, True, False, {}

    env = Short()
    assert [env.step(one)[0] for one in "abc"] == ["a", "b", "c"]


def test_an_answer_is_graded_again_and_again() -> None:
    env = gem.make("math:GSM8K")
    env.reset()
    steps = [env.step(boxed(answer)) for answer in (env.answer, "-1", env.answer)]
    assert [one[1] for one in steps] == [1.0, 0.0, 1.0]
    assert {one[0] for one in steps} == {TERMINAL_STATE}


# -- answers and tests that are set ------------------------------------------------------------------------------------


def test_an_answer_that_is_set_counts_without_a_reset() -> None:
    env = gem.make("eval:MATH500", verbose=True)
    rewards: list[float] = []
    for answer, said in [("8", "8"), ("9", "1"), (["3", "x"], "x"), (2.5, "2.5")]:
        env.answer = answer
        rewards.append(env.step(boxed(said))[1])
    assert rewards == [1.0, 0.0, 1.0, 1.0]


def test_a_set_answer_belongs_to_no_question() -> None:
    env = MathEnv(dataset=[{"problem": "How many centimeters long is it?", "answer": "5 cm"}])
    env.reset()
    assert env.step(boxed("5"))[1] == 1.0  # the question names the unit
    env.answer = "6 cm"
    assert [env.step(boxed(answer))[1] for answer in ("6", "6 cm")] == [0.0, 1.0]
    env.reset()
    assert env.step(boxed("5"))[1] == 1.0


def test_answers_of_a_few_words_are_set_too() -> None:
    env = gem.make("qa:HotpotQA")
    env.answer = ["Ada", "Grace"]
    assert env.step("<answer>grace</answer>")[1] == 1.0


def test_tests_that_are_set_are_run() -> None:
    env = gem.make("code:Taco8k", verbose=True)
    rewards: list[float] = []
    for tests in env.dataset[:3]["tests"]:
        env.tests = tests
        rewards.append(env.step(ADD)[1])
    env.tests = {"inputs": ["1 1\n"], "outputs": ["3\n"]}
    assert [*rewards, env.step(ADD)[1], env.step("no program")[1]] == [1.0, 1.0, 1.0, 0.0, -0.1]
    assert env.tests == {"inputs": ["1 1\n"], "outputs": ["3\n"]}
    env.tests = {"inputs": [1]}
    with pytest.raises(EnvError, match="tests: column 'tests' must hold"):
        env.step(ADD)
    env.close()


# -- data --------------------------------------------------------------------------------------------------------------


def test_the_data_is_in_the_order_in_which_it_is_asked_and_as_it_is_shown() -> None:
    for env_id in ("math:GSM8K", "qa:HotpotQA"):
        env = gem.make(env_id, seed=3)
        asked = [env.reset()[0] for _ in range(6)]
        assert list(env.dataset["problem"]) == asked
        assert len(env.dataset[:2]["answer"]) == 2
    assert asked[0].endswith("?\n")
    assert "Question: Who is number" in asked[0]
    assert "<answer>" in asked[0]


def test_data_that_is_set_is_asked_as_it_is() -> None:
    env = gem.make("qa:HotpotQA", max_turns=3)
    env.dataset = datasets.Dataset.from_list([{"problem": "Prompt: who?", "answer": "Ada"}])
    assert env.reset()[0] == "Prompt: who?"
    assert env.step("<answer>Ada</answer>")[1] == 1.0


def test_an_evaluation_ends_with_the_first_epoch() -> None:
    env = gem.make("math:GSM8K", seed=42)
    env.dataset = env.dataset.select(range(3))
    wrapped, asked = WRAPPER_FACTORY["concat"](env), list[str]()
    while True:
        observation, _ = wrapped.reset()
        if wrapped.unwrapped.epoch > 0:
            break
        asked.append(observation.strip())
        assert wrapped.step(boxed(wrapped.unwrapped.answer))[1] == 1.0
    assert asked == list(env.dataset["problem"])


def test_an_index_is_a_place_in_the_data() -> None:
    env = gem.make("math:GSM8K")
    assert env.reset(idx=4)[0] == env.first_obs == env.dataset[4]["problem"]
    assert env.idx == 5
    assert env.reset()[0] == env.dataset[5]["problem"]
    with pytest.raises(EnvError, match="no idx 6"):
        env.reset(idx=6)


@pytest.mark.parametrize("kind", [MathEnv, partial(QaEnv, question_key="problem")])
def test_classes_take_data_sets(kind: Callable[..., Any]) -> None:
    table = datasets.Dataset.from_list(SUMS)
    both = datasets.DatasetDict({"train": table, "test": table.select([0])})
    assert len(kind(dataset=table, dataset_name="mine").dataset) == 6
    assert len(kind(dataset=both, split="test").dataset) == 1
    assert len(kind("axon-rl/math-eval", "amc").dataset) == 6
    with pytest.raises(EnvError, match="Name one: split='train'"):
        kind(dataset=both)


def test_programs_take_data_sets() -> None:
    env = CodeEnv(dataset=datasets.Dataset.from_list(PROGRAMS), dataset_name="mine", test_key="tests")
    env.reset()
    assert env.step(ADD)[1] == 1.0
    env.close()


def test_data_replaces_that_of_an_id_and_no_data_does_not() -> None:
    table = datasets.Dataset.from_list([{"problem": "?", "answer": "1"}])
    assert len(gem.make("eval:MATH500", dataset=table).dataset) == 1
    assert len(gem.make("math:GSM8K", dataset=None).dataset) == 6


def test_the_classes_are_those_of_the_ids() -> None:
    class Half(MathEnv):
        def step(self, action: str) -> Any:
            observation, reward, *rest = super().step(action)
            return observation, reward / 2, *rest

    gem.register("half:Sums", Half, dataset_name="sums")
    env = gem.make("half:Sums")
    env.reset()
    assert env.step(boxed(env.answer))[1] == 0.5
    assert isinstance(gem.make("math:GSM8K"), MathEnv)
    assert (MathEnv.check_correct(boxed(2), ["1", "2"]), MathEnv.check_correct("2", "2")) == (True, False)
    assert QaEnv.check_correct("the Nile", "Nile")


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [EASY, "math:GSM8K", "qa:HotpotQA"])
def test_copies_play_alike(env_id: str) -> None:
    env = gem.make(env_id)
    env.reset(seed=3)
    state = env.get_state()
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.spawn(same_state=True), env.spawn(True)]
    action = f"{boxed(3)} <answer>x</answer>"
    expected = env.step(action)
    assert [twin.step(action) for twin in twins] == [expected] * 4
    env.set_state(state)
    assert env.step(action) == expected


def test_a_pool_has_seeds_of_its_own() -> None:
    parent = gem.make("math:GSM8K", seed=time.time_ns())
    pool = [parent.spawn(seed=parent.seed + number) for number in range(1, 4)]
    assert len({one.seed for one in pool}) == 3
    assert pool[0].env_id == "math:GSM8K"
    by_hand = MathEnv(dataset=datasets.Dataset.from_list(SUMS), seed=1)
    by_hand.reset()
    assert by_hand.spawn(same_state=True).step(boxed(by_hand.answer))[1] == 1.0


def test_a_tool_over_an_ended_game() -> None:
    env = ToolEnvWrapper(gem.make(EASY, max_turns=1), tools=[PythonCodeTool(timeout=5)])
    env.reset()
    env.step(boxed(1))
    assert "42" in env.step("<python>print(6 * 7)</python>")[0]
    env.close()
