"""Programs and arguments that were written for gem-llm: what they meet here."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gem_compat as compat
import gem_core
from gem_compat.alias import install_alias
from gem_compat.core import Env, EnvWrapper
from gem_compat.envs.math_env import MathEnv
from gem_compat.envs.reasoning_gym import ReasoningGymEnv
from gem_compat.envs.registration import ENV_REGISTRY
from gem_compat.tools.base_tool import BaseTool
from gem_compat.tools.tool_env_wrapper import ToolEnvWrapper
from gem_compat.utils.parsing import (
    extract_code_from_model,
    extract_last_boxed_answer,
    extract_last_tagged_answer,
)
from gem_compat.vector.async_vector_env import AsyncVectorEnv
from gem_compat.vector.sync_vector_env import SyncVectorEnv
from gem_compat.vector.vector_env import AutoresetMode
from gem_compat.wrappers.observation_wrapper import ObservationWrapper
from gem_compat.wrappers.wrapper_factory import WRAPPER_FACTORY, get_wrapper_fns
from gem_core.errors import EnvFailure, EnvKwargsError
from gem_core.wrappers import ObservationHistory

EASY, HARD = "game:GuessTheNumber-v0-easy", "game:GuessTheNumber-v0-hard"
HERE = Path(__file__).parents[3]
PROGRAM = """
import sys

import gem
from gem.core import Env
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers.wrapper_factory import get_wrapper_fns

gem.print_envs()
env = gem.make(sys.argv[1])
observation, info = env.reset()
while True:
    action = env.sample_random_action()
    next_observation, reward, terminated, truncated, info = env.step(action)
    print("OBS", observation)
    print("ACT", action)
    observation = next_observation
    if terminated or truncated:
        break
print("END", isinstance(gem.core.Env, type), __name__)
"""


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gem_compat", *arguments], capture_output=True, text=True, timeout=240, **options
    )


# -- programs ----------------------------------------------------------------------------------------------------------


def test_a_program_that_imports_gem_runs_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run(str(program), "game:GuessTheNumber-v0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert EASY in done.stdout
    assert done.stdout.count("ACT \\boxed{") >= 1
    assert done.stdout.endswith("END True __main__\n")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nothing.py"))
    assert done.returncode == 1
    assert "usage: python -m gem_compat program.py" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_package_of_that_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gem", random)
    with pytest.raises(ImportError, match="'gem' is loaded already"):
        install_alias("gem")


def test_every_id_of_the_page_exists() -> None:
    page = (HERE / "plugins" / "compat" / "README.md").read_text().partition("## Ids")[2].partition("## What else")[0]
    found: list[str] = []
    for ids, rest in re.findall(r"^\| (.*?) \| (.*) \|$", page, re.MULTILINE):
        names = re.findall(r"`([^`]+)`", ids)
        if ids.startswith("`game:"):
            found += [names[0] + variant for variant in re.findall(r"`([^`]+)`", rest)]
        elif ids.startswith("`rg:`"):
            found += [f"rg:{name}" for name in names[1:]]
        elif ids != "`rg:composite`":
            found += names
    assert len(found) == len({*found}) == 171
    assert [one for one in found if one not in ENV_REGISTRY] == []


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: gem_core.make_vec(EASY, async_mode=True), "backend='thread'"),
        (lambda: gem_core.make_vec(EASY, vec_kwargs=[{}]), "env_kwargs="),
        (lambda: gem_core.make_vec(EASY, max_turns=3), "Arguments of the environments go into env_kwargs"),
        (lambda: gem_core.make_vec(EASY, num_env=3), "Did you mean 'num_envs'?"),
        (lambda: gem_core.register("a:B-v0", "a:B", size=3), "go into kwargs="),
        (lambda: gem_core.make(EASY, seed=3), "Use reset(seed=...)"),
        (lambda: gem_core.make("math:Sample", dataset_name="x"), "Use dataset=..."),
        (lambda: gem_core.make("math:Sample", use_mp=False), "Leave it out: answers are graded"),
        (lambda: gem_core.make("math:Sample").reset(idx=3), "Use reset(row=...)"),
        (lambda: gem_core.make("math:Sample", idx=3), "Use reset(row=...)"),
        (lambda: gem_core.make("game:Sokoban-v0-easy", room_size=(6, 6)), "Use dim_room="),
        (lambda: gem_core.make("rg:arc_1d", seed=3), "Use data_seed=..."),
        (lambda: gem_core.make("rg:arc_1d").reset(idx=3), "Use reset(row=...)"),
        (lambda: ObservationHistory(gem_core.make(EASY), max_history_length=3), "Use last=n+1"),
        (lambda: gem_core.make_tool("python:Interpreter", keep_error_last_line=True), "Use last_error_line="),
        (lambda: gem_core.make_tool("search:Passages", search_url="x"), "Use url=..."),
        (lambda: gem_core.make_tool("mcp:Servers", config={}), "Use servers=..."),
    ],
)
def test_an_argument_of_upstream_is_answered_with_ours(call: Any, hint: str) -> None:
    with pytest.raises(EnvKwargsError, match=re.escape(hint)) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("", "multiagent", "Use gem_core.Match"),
        ("vector", "AutoresetMode", "Use Autoreset"),
        ("wrappers", "EpisodeTrackingWrapper", "EpisodeStatistics"),
        ("tools", "ToolEnvWrapper", "ToolEnv(env, tools)"),
        ("tools", "Nonsense", "has no attribute 'Nonsense'"),
    ],
)
def test_a_name_of_upstream_is_answered_with_ours(module: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(hint)):
        getattr(getattr(gem_core, module) if module else gem_core, name)


def test_compat_takes_upstreams_arguments() -> None:
    env = compat.make("math:Sample", question_key="problem", use_mp=True, seed=3, eval=True)
    first, _ = env.reset(idx=0)
    assert first == gem_core.make("math:Sample").reset(row=0)[0]
    assert env.reset()[0] == gem_core.make("math:Sample").reset(row=1)[0]  # eval=True asks in the order of the data
    assert (env.env_id, env.entry_point) == ("math:Sample", "gem_math.env:MathEnv")


def test_classes_of_upstream_are_functions(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"ask": "1 + 1?", "say": "2"}\n')
    env = MathEnv(dataset_name=str(tmp_path / "rows.jsonl"), question_key="ask", answer_key="say")
    assert env.reset()[0] == "1 + 1?"
    assert ReasoningGymEnv("letter_counting", size=7, seed=5).data_size == 7


def test_an_id_without_a_namespace() -> None:
    class Mine(Env):
        def reset(self, seed: int | None = None) -> Any:
            super().reset(seed)
            return f"{random.random()}", {}

        def step(self, action: str) -> Any:
            return "", 1, True, False, {}

    compat.register("Mine-v0", Mine)
    assert "Mine-v0" in ENV_REGISTRY
    assert "gem:Mine-v0" in [*ENV_REGISTRY]
    env = compat.make("Mine-v0")
    assert env.reset(seed=3) == env.reset(seed=3)
    with pytest.raises(NotImplementedError, match="sample_random_action"):
        env.sample_random_action()


# -- vectors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_each_place_plays_what_its_seed_plays_alone(kind: type[SyncVectorEnv]) -> None:
    vec = kind([HARD] * 3, [lambda: compat.make(HARD)] * 3)
    try:
        for reset, seeds in ((40, [40, 41, 42]), ([7, 7, 9], [7, 7, 9])):
            openings, _ = vec.reset(seed=reset)
            answers = vec.step(["\\boxed{25}"] * 3)
            for place, seed in enumerate(seeds):
                alone = gem_core.make(HARD)
                assert openings[place] == alone.reset(seed=seed)[0]
                assert answers[1][place] == alone.step("\\boxed{25}")[1]
    finally:
        vec.close()


def test_the_next_step_opens_the_next_episode() -> None:
    vec = SyncVectorEnv([EASY] * 2, [lambda: compat.make(EASY)] * 2, AutoresetMode.NEXT_STEP)
    openings, _ = vec.reset(seed=0)
    shown, _, terminated, _, infos = vec.step({1: "no box"})
    assert terminated.tolist() == [True]
    assert shown[0] != openings[1]
    assert "final_observation" not in infos[0]
    shown, rewards, terminated, truncated, _ = vec.step(["no box", "not used"])
    assert rewards.tolist() == [-0.1, 0.0]
    assert (terminated | truncated).tolist() == [True, False]
    assert shown[1].partition(".")[0] == openings[1].partition(".")[0]
    assert vec.step({1: "no box"})[1].tolist() == [-0.1]
    vec.reset(seed=0)
    assert vec.step(["no box"] * 2)[1].tolist() == [-0.1] * 2


def test_an_environment_that_raises_stops_the_step_and_nothing_is_left_behind() -> None:
    class Fragile(Env):
        def reset(self, seed: int | None = None) -> Any:
            super().reset(seed)
            return "", {}

        def step(self, action: str) -> Any:
            return action, 1 / (action != "break"), False, False, {}

    vec = SyncVectorEnv(["one", "other"], [Fragile, Fragile])
    before = [*vec.envs]
    vec.reset()
    with pytest.raises(EnvFailure, match="ZeroDivisionError"):
        vec.step(["a", "break"])
    vec.reset()
    assert vec.step(["b", "c"])[0] == ["b", "c"]
    assert [one is other for one, other in zip(before, vec.envs, strict=True)] == [True, False]


def test_arguments_and_wrappers_of_each_place() -> None:
    vec = compat.make_vec([HARD] * 2, [EnvWrapper], [{"max_turns": 1}, {"max_turns": 2}], max_number=9)
    assert [(one.max_turns, one.max_number) for one in vec.envs] == [(1, 9), (2, 9)]
    with pytest.raises(ValueError, match="got 1 vec_kwargs for 2"):
        compat.make_vec([HARD] * 2, vec_kwargs=[{}])


# -- wrappers and tools ------------------------------------------------------------------------------------------------


class Template:
    """What the chat modes need of a tokenizer."""

    def apply_chat_template(self, conversation: Any, /, **_: Any) -> str:
        return "".join(f"<{one['role']}>{one['content']}" for one in conversation)


def test_every_name_of_the_factory_makes_a_wrapper() -> None:
    for name in WRAPPER_FACTORY:
        [wrap] = get_wrapper_fns(name, tokenizer=Template())
        assert wrap(gem_core.make(EASY)).unwrapped.spec.id == EASY
    assert get_wrapper_fns("") == []
    with pytest.raises(ValueError, match="Did you mean 'concat_chat'"):
        get_wrapper_fns("concat_chta")


def test_the_history_counts_earlier_turns() -> None:
    env = ObservationWrapper(gem_core.make(HARD), include_chat_template=False, max_history_length=1)
    env.reset(seed=0)
    env.step("first \\boxed{1}")
    shown = env.step("second \\boxed{2}")[0]
    assert "second" in shown
    assert "first" not in shown
    with pytest.raises(ValueError, match="at most one of them"):
        ObservationWrapper(gem_core.make(HARD), apply_chat_template_on_reset=True, tokenizer=Template())


def test_totals_of_the_last_episode() -> None:
    [wrap] = get_wrapper_fns("episode_tracking")
    env = wrap(gem_core.make(EASY))
    assert env.reset()[1]["prev_ep_step_counter"] == 0
    env.step("no box")
    _, info = env.reset()
    assert (info["prev_ep_step_counter"], info["prev_ep_cumulative_rewards"]) == (1, -0.1)
    assert (info["step_counter"], info["cumulative_rewards"]) == (0, 0.0)


class Echo(BaseTool):
    """A tool as a user of upstream writes it."""

    tool_type = "echo"

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def instruction_string(self) -> str:
        return f"Say {self.word}."

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        found = self.word in action
        return found, "!" in action, f"echo {self.word}", action


def test_tools_of_ones_own() -> None:
    env = ToolEnvWrapper(gem_core.make(HARD), [Echo("ping"), Echo("pong")], 0.1, 0.2, max_tool_uses=2)
    assert env.reset()[0].endswith("Say ping.\nSay pong.")
    observation, reward, _, _, info = env.step("pong")
    assert (observation, round(reward, 6), info["tool_type"], info["use_tool"]) == ("echo pong", 0.3, "echo", True)
    observation, reward, *_ = env.step("ping!")
    assert observation.startswith("echo ping\n\nThat was the last tool call")
    assert reward == 0.1
    assert env.step("ping")[1:3] == (-0.1, True)
    assert env.reset()[1]["prev_ep_tool_use_counter"] == 2


def test_answers_are_found_as_upstream_finds_them() -> None:
    text = "\\boxed{1} <answer> a </answer> \\boxed{\\frac{1}{2}} <answer>b</answer>\n```python\nprint(1)\n```\n"
    assert extract_last_boxed_answer(text) == "\\frac{1}{2}"
    assert extract_last_tagged_answer(text) == "b"
    assert extract_code_from_model(text) == "print(1)"
    assert (
        extract_last_boxed_answer("\\boxed{1") is extract_last_tagged_answer("") is extract_code_from_model("") is None
    )
