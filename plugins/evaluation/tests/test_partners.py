"""Models as opponents in matches: what they are asked, and that a replay repeats what they said."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import sys
import threading
import types
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_core.failures import FailurePolicy
from gem_core.vector import make_vec
from gem_core.vector._calls import Replay, Reset, Transition
from gem_core.vector._slots import SlotState
from gem_core.vector._tasks import Task
from gem_evaluation import Entry, ModelSetupError, evaluate
from gem_evaluation._models import FunctionModel
from gem_evaluation._partner import ModelPartner
from gem_evaluation.regrading import regrade
from gem_support.chat_server import Body, ChatServer, refused
from gem_support.waiting import SECONDS, wait_until
from gem_testing import check_env

NEGOTIATION = "match:Negotiation-v0"
ASK = "\\boxed{0 0 0}"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """An endpoint with the alias `other`. It never says the same twice."""
    said: list[str] = []

    def answer(body: Body) -> str:
        said.append(f"answer {len(said)}: {ASK}")
        return said[-1]

    with ChatServer(answer).running() as found:
        lines = ["[other]", 'model = "stub"', f'base_url = "{found.url}"']
        (tmp_path / "endpoints.toml").write_text("\n".join(lines))
        monkeypatch.chdir(tmp_path)
        yield found


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Mapping[str, str]]]:
    """What `model:spoken:say` was asked; it counts its answers."""
    asked: list[Sequence[Mapping[str, str]]] = []

    def say(messages: Sequence[Mapping[str, str]]) -> str:
        asked.append(messages)
        return f"answer {len(asked) - 1}: {ASK}"

    module = types.ModuleType("spoken")
    module.__dict__["say"] = say
    monkeypatch.setitem(sys.modules, "spoken", module)
    return asked


def test_a_model_sees_what_its_agent_sees(spoken: list[Any]) -> None:
    env = gem_core.make(NEGOTIATION, opponents={"player 1": "model:spoken:say"})
    env.reset(seed=0)
    env.step(f"first {ASK}")
    observation, *_, info = env.step(f"second {ASK}")
    assert "player 1 says: answer 1" in observation
    assert info["partner_replies"] == [f"answer 1: {ASK}"]
    assert [message["role"] for message in spoken[1]] == ["user", "assistant", "user"]
    assert spoken[1][0]["content"].startswith("You are player 1")
    assert "player 0 says: first" in spoken[0][0]["content"]
    assert spoken[1][1]["content"] == f"answer 0: {ASK}"
    assert spoken[1][2]["content"].startswith("player 0 says: second")
    env.close()
    env.close()


def test_the_first_step_has_the_answers_of_the_reset_too(spoken: list[Any]) -> None:
    env = gem_core.make(NEGOTIATION, opponents={"player 0": "model:spoken:say"})
    observation, info = env.reset(seed=0)
    assert info["partner_replies"] == [f"answer 0: {ASK}"]
    shown = env.step(ASK)
    assert shown[4]["partner_replies"] == [f"answer 0: {ASK}", f"answer 1: {ASK}"]
    assert env.reset(seed=0, partner_replies=shown[4]["partner_replies"])[0] == observation
    assert env.step(ASK) == shown
    assert len(spoken) == 2
    env.close()


@pytest.mark.parametrize("agent", ["player 0", "player 1"])
@pytest.mark.parametrize("backend", ["sync", "process"])
def test_an_environment_that_is_brought_back_asks_nothing_twice(server: ChatServer, backend: Any, agent: str) -> None:
    def fails_once(body: Body) -> Any:
        return refused(400, "just this once") if len(server.requests) == 3 else None

    server.faults.append(fails_once)
    opponents = {"opponents": {agent: "model:other"}}
    failures = FailurePolicy(retries=1)
    with make_vec(NEGOTIATION, 1, backend=backend, seed=0, env_kwargs=opponents, failures=failures) as vec:
        vec.reset()
        shown = [vec.step({0: f"offer {turn}: {ASK}"})[0][0] for turn in range(3)]
    questions = [body["messages"][-1]["content"] for body in server.requests]
    assert len(questions) == len({*questions}) + 1 == 4 + (agent == "player 0")
    assert questions[2] == questions[3], "only the one that failed"
    assert f"answer 2: {ASK}" in shown[2 if agent == "player 1" else 1]
    before = [one["content"] for one in server.requests[3]["messages"] if one["role"] == "assistant"]
    assert before == [f"answer 0: {ASK}", f"answer 1: {ASK}"]


def test_environments_of_a_process_share_a_session_which_ends_with_the_last(server: ChatServer) -> None:
    def sessions() -> int:
        return sum(thread.name == "gem-partner" for thread in threading.enumerate())

    opponents = {"opponents": {"player 1": {"model": "model:other", "temperature": 0.5}}}
    with make_vec(NEGOTIATION, 8, backend="thread", seed=0, env_kwargs=opponents) as vec:
        vec.reset()
        vec.step(dict.fromkeys(range(8), ASK))
        assert sessions() == 1
    assert sessions() == 0
    assert {body["temperature"] for body in server.requests} == {0.5}
    assert len({body["messages"][-1]["content"] for body in server.requests}) == 8


def test_no_answer_costs_the_episode_and_the_next_question_tries_again(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEY_OF_OTHER", raising=False)
    (tmp_path / "endpoints.toml").open("a").write('\napi_key_env = "KEY_OF_OTHER"\n')
    env = gem_core.make(NEGOTIATION, opponents={"player 1": "model:other"})
    env.reset(seed=0)
    with pytest.raises(EnvError, match="model:other gave no answer: the environment variable KEY_OF_OTHER"):
        env.step(ASK)
    monkeypatch.setenv("KEY_OF_OTHER", "secret")
    env.reset(seed=0)
    assert "answer 0" in env.step(ASK)[0]
    env.close()


def test_a_copy_that_is_closed_takes_no_partner_away(spoken: list[Any]) -> None:
    env = gem_core.make(NEGOTIATION, opponents={"player 1": "model:spoken:say"})
    env.reset(seed=0)
    env.step(ASK)
    for twin in (copy.deepcopy(env), env.spawn(same_state=True)):
        twin.step(ASK)
        twin.close()
    assert "answer 3" in env.step(ASK)[0]
    env.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "gem-partner"]


def test_the_last_user_may_leave_while_the_session_opens(spoken: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    opening, may_open = threading.Event(), threading.Event()

    @contextlib.asynccontextmanager
    async def session(self: object) -> AsyncIterator[None]:
        opening.set()
        await asyncio.to_thread(may_open.wait)
        yield

    monkeypatch.setattr(FunctionModel, "session", session)
    partner = ModelPartner("spoken:say", {})

    def ask() -> None:
        with contextlib.suppress(EnvError):  # the session may end before the question
            partner.answer([{"role": "user", "content": "hello"}], "episode")

    asker = threading.Thread(target=ask)
    asker.start()
    wait_until(opening.is_set)
    leaving = threading.Thread(target=partner.close)
    leaving.start()
    may_open.set()
    for thread in (leaving, asker):
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_a_replay_after_a_turn_that_no_partner_heard_of_repeats_the_opening() -> None:
    """For example a tool call, which no environment plays."""
    state = SlotState("x", Reset(0, Task(0, "x", 0), 0, (1, 1)))
    state.opened(("hello", {"partner_replies": ["opening"]}))
    state.played("call", Transition("result", 0.0, False, False, {}))
    state.lose()
    replay = state.step("reply")
    assert isinstance(replay, Replay)
    assert replay.start.partner_replies == ("opening",)


def test_an_evaluation_is_graded_again_without_the_model(spoken: list[Any], tmp_path: Path) -> None:
    kwargs = {"opponents": {"player 0": "model:spoken:say"}}
    evaluate([Entry(id=NEGOTIATION, env_kwargs=kwargs, tasks=3)], lambda _: ASK, output=tmp_path)
    asked = len(spoken)
    found = regrade(tmp_path, trust=True)
    assert {(one.outcome, one.reason) for one in found.episodes} == {("same", "")}
    assert len(found.episodes) == 3
    assert len(spoken) == asked >= 9


def test_it_passes_the_conformance_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("steady")
    module.__dict__["say"] = lambda messages: f"{len(messages)} {ASK}"
    monkeypatch.setitem(sys.modules, "steady", module)
    check_env(NEGOTIATION, opponents={"player 1": "model:steady:say"})


@pytest.mark.parametrize(
    ("policy", "error", "words"),
    [
        ("modle:x", NotFoundError, "no partner 'modle:x'. Did you mean 'model'"),
        ("fiar", EnvKwargsError, "Did you mean 'fair'"),
        (5, EnvKwargsError, "cannot be played by 5"),
        ({"modl": "model:x"}, EnvKwargsError, "names no partner"),
        ({"model": "model:spoken:say", "n": {1}}, EnvKwargsError, "are not JSON"),
        ("model:random", ModelSetupError, "name the opponent 'random'"),
        ("model:spoken:shout", ModelSetupError, "spoken:shout cannot be imported"),
    ],
)
@pytest.mark.usefixtures("spoken")
def test_who_cannot_be_an_opponent(policy: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gem_core.make(NEGOTIATION, opponents={"player 1": policy})
