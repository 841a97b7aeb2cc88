"""Thoughts of endpoints, apart from the response or within: recorded, sent back, counted, and never played."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from typer.testing import CliRunner

import gem_core
from gem_core import Env
from gem_core.episode import Episode
from gem_evaluation import Entry, EvaluationError, evaluate, load_model
from gem_evaluation._store import read_episodes
from gem_evaluation.commands import app
from gem_evaluation.regrading import regrade
from gem_evaluation.results import read_saved
from gem_support.chat_server import Body, ChatServer, completed
from gem_train.records import read_episodes as read_recorded
from gem_train.rollout import Thoughts

DEMO = "demo-reasoning:Talk-v0"


class Talk(Env):
    """Three turns; says what it was told."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.told: list[str] = []
        return "Say something.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.told.append(action)
        over, said = len(self.told) == 3, action.strip()
        return (
            f"I heard: {said}",
            float(bool(said)),
            over,
            False,
            {"success": over and bool(said), "invalid_action": not said},
        )

    def sample_random_action(self) -> str:
        return "hello"


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    gem_core.register(DEMO, Talk)
    monkeypatch.setattr("gem_evaluation._chat.FIRST_WAIT", 0.001)


def message(thought: str, content: str | None, field: str) -> Body:
    """A response with a thought in this field, in a part, or within the text."""
    if field == "inline":
        return {"role": "assistant", "content": f"<think>\n{thought}\n</think>\n\n{content or ''}"}
    if field == "part":
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
        return {"role": "assistant", "content": [*parts, *([{"type": "text", "text": content}] if content else [])]}
    return {"role": "assistant", "content": content, field: thought}


@pytest.fixture
def server() -> Iterator[Callable[..., ChatServer]]:
    """Starts an endpoint whose responses and thoughts are numbered."""
    with ExitStack() as stack:

        def start(field: str, content: str | None = "word {}") -> ChatServer:
            count = itertools.count()

            def answer(_: Body) -> Body:
                number = next(count)
                said = None if content is None else content.format(number)
                return message(f"idea {number}", said, field)

            return stack.enter_context(ChatServer(answer).running())

        yield start


def play(server: ChatServer, folder: Path, **fields: Any) -> Episode:
    """One episode."""
    evaluate(Entry(id=DEMO, tasks=1, **fields), load_model("stub", base_url=server.url), output=folder)
    [played] = read_episodes(folder)
    return played.episode


FIELDS = ["reasoning_content", "reasoning", "part", "inline"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_thought_is_recorded_and_no_part_of_an_action(
    server: Callable[..., ChatServer], tmp_path: Path, field: str
) -> None:
    episode = play(server(field), tmp_path)
    assert [turn.action.strip() for turn in episode.turns] == ["word 0", "word 1", "word 2"]
    assert [turn.observation for turn in episode.turns] == ["Say something.", "I heard: word 0", "I heard: word 1"]
    thoughts = [turn.response if field == "inline" else turn.reasoning for turn in episode.turns]
    assert all(f"idea {number}" in thought for number, thought in enumerate(thoughts))
    assert episode.success
    [again] = read_recorded(tmp_path)
    assert again.episode.turns == episode.turns
    assert regrade(tmp_path).same


@pytest.mark.parametrize("thoughts", ["keep", "drop"])
@pytest.mark.parametrize("field", FIELDS)
def test_thoughts_are_sent_back_as_they_came_unless_they_are_dropped(
    server: Callable[..., ChatServer], tmp_path: Path, field: str, thoughts: Thoughts
) -> None:
    endpoint = server(field)
    play(endpoint, tmp_path, thoughts=thoughts)
    for asked, body in enumerate(endpoint.requests):
        said = [one for one in body["messages"] if one["role"] == "assistant"]
        for number, one in enumerate(said):
            if thoughts == "keep":
                assert one == message(f"idea {number}", f"word {number}", field)
            else:
                assert (one["content"].strip(), len(one)) == (f"word {number}", 2)
        assert len(said) == asked


def test_between_function_calls_thoughts_stay(tmp_path: Path) -> None:
    replies = itertools.cycle(
        [
            {"content": "", "reasoning": "first", "tool_calls": [_call("1"), _call("2")]},
            {"content": None, "reasoning": "second", "tool_calls": [_call("3")]},
            {"content": "word", "reasoning": "third"},
            {"content": "word", "reasoning": "fourth"},
            {"content": "word", "reasoning": "fifth"},
        ]
    )
    with ChatServer(lambda _: next(replies)).running() as server:
        chosen = {"tools": ["python:Interpreter"], "tool_form": "native", "thoughts": "drop"}
        episode = play(server, tmp_path, **chosen)
    shown = [
        [one.get("reasoning") for one in body["messages"] if one["role"] == "assistant"] for body in server.requests
    ]
    assert shown == [[], ["first"], ["first", "second"], [None, None, None], [None, None, None, None]]
    assert [turn.reasoning for turn in episode.turns] == ["first", "", "second", "third", "fourth", "fifth"]


def test_a_field_without_a_thought_is_sent_back_too(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "word", "reasoning_content": ""}
    with ChatServer(lambda _: reply).running() as server:
        episode = play(server, tmp_path)
    assert [one for one in server.requests[-1]["messages"] if one["role"] == "assistant"] == [reply, reply]
    assert [turn.reasoning for turn in episode.turns] == ["", "", ""]


def _call(name: str) -> Body:
    return {"id": name, "type": "function", "function": {"name": "python", "arguments": json.dumps({"code": "1"})}}


@pytest.mark.parametrize("field", FIELDS)
def test_a_response_that_is_only_thought_is_counted_by_its_name(
    server: Callable[..., ChatServer], tmp_path: Path, field: str
) -> None:
    endpoint = server(field, content=None)
    results = evaluate(DEMO, load_model("stub", base_url=endpoint.url), tasks=2, output=tmp_path)
    [summary] = results.environments
    assert (summary.only_thought_share, summary.invalid_share) == (1.0, 1.0)
    assert summary.policy_faults == {"only_thought": 2}
    assert read_saved(tmp_path).together.policy_faults == {"only_thought": 2}
    report = (tmp_path / "report.md").read_text()
    assert "| only thought |" in report
    assert "100 % of turns" in report
    assert "2 with a response that was only thought" in report
    assert "100.0% only thought" in report


def test_an_empty_response_without_a_thought_is_another_fault(tmp_path: Path) -> None:
    with ChatServer(lambda _: "").running() as server:
        results = evaluate(DEMO, load_model("stub", base_url=server.url), tasks=2, output=tmp_path)
    assert results.together.only_thought_share == 0.0
    assert results.together.policy_faults == {"unusable": 2}
    assert "| only thought |" not in (tmp_path / "report.md").read_text()


def test_a_thought_that_the_token_limit_cut_off_is_both(tmp_path: Path) -> None:
    with ChatServer(lambda _: "").running() as server:
        server.faults.append(lambda _: completed({"content": "", "reasoning_content": "so"}, finish="length"))
        results = evaluate(DEMO, load_model("stub", base_url=server.url), tasks=2, output=tmp_path)
    assert results.together.policy_faults == {"only_thought": 2}
    assert (results.together.truncated_share, results.together.only_thought_share) == (1.0, 1.0)


@pytest.mark.parametrize(
    "odd",
    [{"reasoning": {"effort": "low"}}, {"reasoning_content": 5}, {"reasoning": [1, None]}, {"reasoning": "\ud83d"}],
)
def test_a_field_of_another_kind_is_no_reason_to_lose_a_response(tmp_path: Path, odd: Body) -> None:
    def answer(_: Body) -> Response:
        choice = {"message": {"role": "assistant", "content": "word", **odd}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice]}), media_type="application/json")

    with ChatServer(lambda _: "").running() as server:
        server.faults.append(answer)
        episode = play(server, tmp_path)
    assert [turn.action for turn in episode.turns] == ["word"] * 3


def test_the_thought_of_a_partner_is_recorded_and_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = itertools.count()

    def answer(_: Body) -> Body:
        return message(
            f"secret {next(replies)}", "\\boxed{0 0 0}", ["reasoning_content", "inline"][next(replies) % 4 // 2]
        )

    with ChatServer(answer).running() as server:
        lines = ["[other]", 'model = "stub"', f'base_url = "{server.url}"']
        (tmp_path / "endpoints.toml").write_text("\n".join(lines))
        monkeypatch.chdir(tmp_path)
        env = gem_core.make("match:Negotiation-v0", opponents={"player 1": "model:other"})
        env.reset(seed=0)
        for _ in range(2):
            observation, *_, info = env.step("offer: \\boxed{0 0 0}")
            assert "secret" not in observation
            assert [one.strip() for one in info["partner_replies"]] == ["\\boxed{0 0 0}"]
            [thought] = info["partner_thoughts"]
            assert "secret" in thought
        env.close()
    assert all("secret" not in json.dumps(body) for body in server.requests)


def test_the_setting_is_part_of_what_an_evaluation_is(server: Callable[..., ChatServer], tmp_path: Path) -> None:
    endpoint = server("reasoning")
    play(endpoint, tmp_path / "run", thoughts="drop")
    assert (
        json.loads((tmp_path / "run" / "run.json").read_bytes())["identity"]["environments"][DEMO]["thoughts"] == "drop"
    )
    with pytest.raises(EvaluationError, match="thoughts: 'drop' before, 'keep' now"):
        play(endpoint, tmp_path / "run")
    (tmp_path / "suite.toml").write_text(f'[[entries]]\nid = "{DEMO}"\ntasks = 1\nthoughts = "drop"\n')
    options = ["--model", "stub", "--base-url", endpoint.url]
    for number, given in enumerate(
        (["--suite", str(tmp_path / "suite.toml")], [DEMO, "--tasks", "1", "--thoughts", "drop"])
    ):
        folder = tmp_path / str(number)
        assert CliRunner().invoke(app, ["run", *given, *options, "--output", str(folder)]).exit_code == 0
        [played] = read_episodes(folder)
        assert len(played.episode.turns) == 3
        last = endpoint.requests[-1]["messages"]
        assert not any("reasoning" in one for one in last)
    (tmp_path / "suite.toml").write_text(f'[[entries]]\nid = "{DEMO}"\nthoughts = "forget"\n')
    failed = CliRunner().invoke(app, ["run", "--suite", str(tmp_path / "suite.toml"), *options])
    assert failed.exit_code != 0
