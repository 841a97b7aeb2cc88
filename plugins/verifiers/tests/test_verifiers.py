"""Environments of verifiers as ours: found by name, played by verifiers' own loop, refused where they cannot be."""

from __future__ import annotations

import importlib
import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import reasoning_gym

import gem_core
from gem_core.env import Env
from gem_core.errors import EnvError, EnvKwargsError, MissingExtraError, NotFoundError
from gem_core.installation import install_line
from gem_core.registry import provenance
from gem_core.vector import make_vec
from gem_support import real_tokenizers
from gem_support.waiting import wait_until
from gem_testing import check_env
from gem_train.rollout import BatchCollector, Completion, RolloutSettings

SUMS, GUESS, TOOLS = "verifiers:sum_quiz", "verifiers:higher_lower", "verifiers:tool_quiz"
REASONING = "verifiers:reasoning_quiz"
CALL = '<tool_call>{"name": "double", "arguments": {"number": 21}}</tool_call>'


def play(env: Env, actions: Sequence[str], **options: Any) -> list[Any]:
    """An episode: its opening and its transitions, up to its end."""
    seen: list[Any] = [env.reset(**options)]
    for action in actions:
        seen.append(env.step(action))
        if seen[-1][2] or seen[-1][3]:
            break
    return seen


# -- found by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [SUMS, "verifiers:sum-quiz", "verifiers:someone/sum-quiz"])
def test_installed_modules_are_found_in_any_spelling(env_id: str) -> None:
    with gem_core.make(env_id) as env:
        assert env.reset(row=3)[0] == "Write <answer>...</answer>.\n\nWhat is 3 + 3?"


@pytest.mark.parametrize(
    ("env_id", "error", "message"),
    [
        ("verifiers:sum_quizz", NotFoundError, "the module 'sum_quizz' is not installed. Did you mean 'sum_quiz'"),
        ("verifiers:", NotFoundError, "is not installed"),
        ("verifiers:json", EnvError, "'json' has no load_environment.*verifiers.v1"),
    ],
)
def test_an_id_that_cannot_be_says_what_to_do(env_id: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gem_core.make(env_id)


def test_versions_are_recorded() -> None:
    assert provenance(SUMS).libraries[1:] == ("gem-test-quizzes 1.2.3",)
    assert provenance(SUMS).libraries[0].startswith("verifiers 0.3")


def test_without_verifiers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith(("verifiers.", "gem_verifiers."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "verifiers", None)
    monkeypatch.delitem(sys.modules, "gem_verifiers.exported", raising=False)
    for module in ("gem_verifiers._library", "gem_verifiers.exported"):
        with pytest.raises(MissingExtraError, match=rf"Next: {re.escape(install_line('verifiers'))}"):
            importlib.import_module(module)


def test_the_command_line_finds_it() -> None:
    command = [sys.executable, "-m", "gem_core", "list", SUMS, "--json"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=240).stdout)
    assert [one["id"] for one in listed["environments"]] == [SUMS]


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_arguments_reach_load_environment() -> None:
    assert gem_core.make(SUMS, count=3).data_size == 3
    assert gem_core.make(SUMS, rows="eval").data_size == 2


@pytest.mark.parametrize(
    ("env_id", "arguments", "error", "message"),
    [
        (SUMS, {"coutn": 3}, EnvKwargsError, "no argument 'coutn' .* Did you mean 'count'"),
        (SUMS, {"rows": "test"}, EnvError, "rows='test' is neither 'train' nor 'eval'"),
        ("verifiers:unplayable_quiz", {"kind": "?"}, EnvError, "load_environment failed: ValueError: no kind '\\?'"),
        ("verifiers:unplayable_quiz", {}, EnvError, "load_environment failed: TypeError.*'kind'"),
        ("verifiers:unplayable_quiz", {"kind": "sandbox"}, EnvError, "it is a SandboxMixin, which runs outside"),
        ("verifiers:unplayable_quiz", {"kind": "group"}, EnvError, "its rubric scores several episodes"),
        ("verifiers:unplayable_quiz", {"kind": "text"}, EnvError, "returned Thing, which is no verifiers.Environment"),
        ("verifiers:unplayable_quiz", {"kind": "eval only"}, EnvError, "no rows for 'train'. Next: give rows='eval'"),
        ("verifiers:unplayable_quiz", {"kind": "image"}, EnvError, "a part of type 'image_url'; only texts"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(
    env_id: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        gem_core.make(env_id, **arguments).reset()
    assert "\n" not in str(caught.value)


# -- play --------------------------------------------------------------------------------------------------------------


def test_a_single_turn_pays_what_the_rubric_says() -> None:
    with gem_core.make(SUMS) as env:
        for action, reward in [("<answer>6</answer>", 1.5), ("<answer>7</answer>", 0.5), ("6", 0.1), ("", 0.1)]:
            (_, info), (said, paid, terminated, truncated, end) = play(env, [action], row=3)
            assert (info, said, paid, terminated, truncated) == ({}, "", pytest.approx(reward), True, False)
            assert end["success"] is (reward >= 0.5)
            assert end["metrics"]["correct"] == float(reward == 1.5)


def test_several_turns_end_where_the_environment_says() -> None:
    with gem_core.make(GUESS) as env:
        seen = play(env, ["2", "9", "7"], row=6)
    assert [one[0] for one in seen] == ["Find my number from 1 to 9.", "Higher.", "Lower.", "Found."]
    assert [one[1:4] for one in seen[1:]] == [(0.0, False, False), (0.0, False, False), (1.0, True, False)]
    assert seen[-1][4]["metrics"] == {"found": 1.0, "guesses": 3.0, "num_turns": 3.0}
    assert seen[-1][4]["stop_condition"] == "has_final_env_response"


def test_a_limit_of_turns_truncates() -> None:
    with gem_core.make(GUESS, max_turns=2) as env:
        end = play(env, ["2", "9"], row=6)[-1]
    assert end[1:4] == (0.0, False, True)
    assert (end[4]["success"], end[4]["stop_condition"]) == (False, "max_turns_reached")


def test_worked_examples_say_who_speaks() -> None:
    with gem_core.make(GUESS, few_shot=True) as env:
        assert env.reset(row=0)[0] == "User: Find it.\n\nAssistant: 5\n\nUser: Find my number from 1 to 9."


def test_tools_are_called() -> None:
    with gem_core.make(TOOLS) as env:
        (_, info), called, end = play(env, [f"So: {CALL}", "42"])
        assert [one["function"]["name"] for one in info["tools"]] == ["double"]
        assert called == ("42", 0.0, False, False, {"use_tool": True})
        assert end[1:4] == (1.0, True, False)
        assert end[4]["metrics"]["double_calls"] == 1.0
        unreadable = play(env, ["<tool_call>{]</tool_call>"])[-1]
        assert (unreadable[2], unreadable[4]["invalid_action"]) == (True, True)


@pytest.mark.parametrize(("action", "message"), [("broken", "InfraError.*the number is lost"), ("buggy", "KeyError")])
def test_an_environment_that_fails_says_so_and_plays_on(action: str, message: str) -> None:
    with gem_core.make(GUESS) as env:
        env.reset(row=4)
        with pytest.raises(EnvError, match=f"verifiers:higher_lower, row 4: .*{message}"):
            env.step(action)
        assert play(env, ["5"], row=4)[-1][1] == 1.0


def test_tasks_are_rows_and_none_repeats_before_all_came() -> None:
    long = {"max_turns": 9}
    with (
        gem_core.make(GUESS, **long) as env,
        gem_core.make(GUESS, **long) as other,
        gem_core.make(GUESS, shuffle_seed=None, **long) as plain,
    ):
        first = [_found(env, data_index=index) for index in range(9)]
        assert sorted(first) == [*map(str, range(1, 10))] != first
        assert [_found(other, data_index=index) for index in range(9)] == first
        assert [_found(env) for _ in range(9)] == first
        assert [_found(plain, data_index=index) for index in range(9)] == sorted(first)
        with pytest.raises(EnvError, match="has 9 rows, so there is no row 9"):
            env.reset(row=9)


def _found(env: Env, **options: Any) -> str:
    """The number of an episode."""
    env.reset(**options)
    low, high = 1, 9
    while True:
        guess = (low + high) // 2
        said, _, terminated, truncated, _ = env.step(str(guess))
        if terminated:
            return str(guess)
        assert not truncated
        low, high = (guess + 1, high) if said == "Higher." else (low, guess - 1)


def test_an_episode_that_is_given_up_is_cleaned_up() -> None:
    cleaned = importlib.import_module("higher_lower").cleaned
    env = gem_core.make(GUESS)
    env.reset(row=7)
    cleaned.clear()
    env.reset(row=8)
    assert cleaned == ["8"]
    env.close()
    assert cleaned == ["8", "9"]
    env.reset(row=6)
    del env
    wait_until(lambda: cleaned == ["8", "9", "7"], "the dropped episode was not cleaned up")


def test_copies_play_on_from_the_same_turn() -> None:
    with gem_core.make(GUESS) as env:
        env.reset(row=6)
        env.step("2")
        state, copy = env.get_state(), pickle.loads(pickle.dumps(env))
        assert env.step("9")[0] == copy.step("9")[0] == "Lower."
        env.set_state(state)
        assert env.step("7")[:3] == ("Found.", 1.0, True)


def test_environments_may_be_built_in_threads_and_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(2) as pool:
        counts = pool.map(lambda count: gem_core.make(SUMS, count=count).data_size, [7, 8])
    assert [*counts] == [7, 8]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


# -- in the rest of gem-core -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [GUESS, TOOLS])
def test_the_contract_is_kept(env_id: str) -> None:
    check_env(env_id)


def test_processes_play_what_one_thread_plays() -> None:
    def seen(backend: Any) -> list[Any]:
        with make_vec(GUESS, 4, backend=backend, seed=5, **({"workers": 2} if backend == "process" else {})) as vec:
            vec.reset()
            steps = [vec.step([guess] * 4) for guess in "357135"]
        return [(*map(list, (one[0], one[1], one[2], one[3])), one[4]) for one in steps]

    assert seen("process") == seen("thread") == seen("sync")


class Solver:
    """A policy that looks the answer up."""

    def __init__(self, tokenizer: Any, answers: dict[str, str]) -> None:
        self._tokenizer = tokenizer
        self._answers = answers

    def __call__(self, prompts: Sequence[Any]) -> list[Completion]:
        return [self._complete(self._tokenizer.decode(prompt)) for prompt in prompts]

    def _complete(self, prompt: str) -> Completion:
        (answer,) = [answer for question, answer in self._answers.items() if question in prompt]
        ids = self._tokenizer.encode(f"<answer>{answer}</answer>", add_special_tokens=False)
        ids.append(self._tokenizer.eos_token_id)
        return Completion(ids, [-1.0] * len(ids), truncated=False)


def test_a_published_environment_plays_in_the_collector() -> None:
    """`ReasoningGymEnv` comes with verifiers."""
    tokenizer = real_tokenizers.chatml_tokenizer()
    known = reasoning_gym.create_dataset("leg_counting", size=12, seed=0)
    solver = Solver(tokenizer, {entry["question"]: entry["answer"] for entry in known})
    with make_vec(REASONING, 4, seed=1) as vec:
        collector = BatchCollector(vec, solver, tokenizer, RolloutSettings(max_response_tokens=64))
        episodes = [episode for _ in range(2) for episode in collector.collect_round().episodes]
        collector.close()
    assert [episode.turns[-1].reward for episode in episodes] == [1.0] * 8
    assert len({episode.turns[0].observation for episode in episodes}) == 8
    assert all(episode.turns[0].info["metrics"]["format_reward_func"] == 1.0 for episode in episodes)
