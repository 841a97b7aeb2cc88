"""Our environments in verifiers, under its own `evaluate`, with models behind an endpoint."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gem_support.chat_server import Body, ChatServer

pytest.importorskip("verifiers")

from verifiers.types import ClientConfig

import gem_core
from gem_core.env import shown_text
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_core.seeding import derive_seed
from gem_verifiers.exported import VerifiersEnv, load_environment, to_verifiers

GAME = "game:GuessTheNumber-v0-easy"
KEY = "GEM_TEST_KEY"


def searching(body: Body) -> str:
    """Bisects, from what the conversation says so far."""
    low, high = 1, 10
    for message in body["messages"]:
        if bound := re.search(r"number is (higher|lower) than (\d+)", str(message["content"])):
            low, high = (int(bound[2]) + 1, high) if bound[1] == "higher" else (low, int(bound[2]) - 1)
    return f"\\boxed{{{(low + high) // 2}}}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv(KEY, "none")
    with ChatServer(searching).running() as running:
        yield running


def evaluated(env: VerifiersEnv, server: ChatServer, **options: Any) -> list[Any]:
    """The outputs of verifiers' own evaluation, by row."""
    config = ClientConfig(api_base_url=server.url, api_key_var=KEY)
    outputs = env.evaluate_sync(config, "stub", max_concurrent=4, **options)["outputs"]
    return sorted(outputs, key=lambda one: one["example_id"])


def test_an_evaluation_is_what_the_same_actions_give_here(server: ChatServer) -> None:
    outputs = evaluated(to_verifiers(GAME, num_examples=6, seed=3), server)
    assert len(outputs) == 6
    for task, output in enumerate(outputs):
        said = [output["prompt"][0].content]
        with gem_core.make(GAME) as env:
            observation, info = env.reset(seed=derive_seed(derive_seed(3, "evaluation"), task))
            shown, total, ended = [shown_text(observation, info)], 0.0, False
            for message in output["completion"]:
                if message.role == "assistant":
                    observation, reward, terminated, truncated, info = env.step(message.content)
                    ended = terminated or truncated
                    total += reward
                    shown.append(shown_text(observation, info))
                else:
                    said.append(message.content)
        assert (shown, total, ended) == (said, output["reward"], True)
        assert output["metrics"]["success"] == float(info["success"]) == 1.0
        assert output["metrics"]["invalid_actions"] == output["metrics"]["truncated"] == 0.0
        assert (output["error"], output["stop_condition"]) == (None, "has_final_env_response")


def test_one_rollout_of_several_is_one_episode_each(server: ChatServer) -> None:
    outputs = evaluated(to_verifiers(GAME, num_examples=2), server, rollouts_per_example=3)
    prompts = [(one["example_id"], [message.content for message in one["completion"]]) for one in outputs]
    assert prompts[0] == prompts[1] == prompts[2]
    assert prompts[3] == prompts[4] == prompts[5]


def test_environments_are_used_again_and_closed(server: ChatServer) -> None:
    env = to_verifiers(GAME, num_examples=12)
    evaluated(env, server)
    assert 1 <= len(env._idle) <= 4
    asyncio.run(env.close_environments())
    assert env._idle == []


def test_options_of_verifiers_arrive(server: ChatServer) -> None:
    env = VerifiersEnv(GAME, {}, num_examples=2, system_prompt="Be quick.", max_turns=1)
    outputs = evaluated(env, server)
    assert [one["stop_condition"] for one in outputs if one["reward"] < 1.0] == ["max_turns_reached"] * sum(
        one["reward"] < 1.0 for one in outputs
    )
    assert all(request["messages"][0] == {"role": "system", "content": "Be quick."} for request in server.requests)


def test_training_and_evaluation_have_different_episodes() -> None:
    env = to_verifiers(GAME, num_examples=3, seed=1)
    train, evaluation = env.get_dataset(), env.get_eval_dataset()
    assert len(train) == len(evaluation) == 3
    assert not set(map(json.dumps, train["info"])) & set(map(json.dumps, evaluation["info"]))


def test_environments_over_data_ask_each_question_once() -> None:
    env = to_verifiers("verifiers:sum_quiz", num_examples=6)
    assert [row["gem_data_index"] for row in env.get_dataset()["info"]] == [*range(6)]
    assert len({row[0]["content"] for row in env.get_dataset()["prompt"]}) == 6


def test_an_environment_that_fails_ends_its_own_rollout(server: ChatServer) -> None:
    def broken(body: Body) -> str:
        return "buggy" if len(body["messages"]) > 1 else "1"

    server._answer = broken
    outputs = evaluated(to_verifiers("verifiers:higher_lower", num_examples=2), server)
    assert all("KeyError" in one["error"]["error_chain_repr"] for one in outputs if one["reward"] == 0.0)
    assert any(one["error"] for one in outputs)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"env_id": "game:Nothing-v0"}, NotFoundError, "game:Nothing-v0"),
        ({"env_id": GAME, "max_turn": 3}, EnvKwargsError, "no .*'max_turn'.*max_turns"),
        ({"env_id": GAME, "num_examples": 0}, EnvError, "num_examples=0 leaves no episode; give at least 1"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        to_verifiers(**arguments)


def test_tools_that_are_called_natively_are_refused() -> None:
    with pytest.raises(EnvError, match="called natively"):
        to_verifiers("verifiers:tool_quiz", num_examples=1).get_dataset()


def test_verifiers_own_command_evaluates_it(server: ChatServer, tmp_path: Path) -> None:
    arguments = ["gem_verifiers.exported", "-a", json.dumps({"id": GAME}), "-n", "2", "-r", "1"]
    endpoint = ["-m", "stub", "-b", server.url, "-k", KEY]
    command = [sys.executable, "-m", "verifiers.scripts.eval", *arguments, *endpoint]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert len(server.requests) >= 2
    assert "success" in ended.stdout + ended.stderr
    assert load_environment(GAME, num_examples=2).env_args["num_examples"] == 2
