"""Evaluations as logs of inspect_ai, read back with its own reader."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import gem_core
from gem_core import Env
from gem_core.cli._app import app
from gem_core.installation import install_line
from gem_evaluation import Entry, FunctionModel, Reasoning, Reply, ToolCall, Usage, evaluate

DEMO = "demo-inspect:Double-v0"
CODE = "print(6 * 7)"


class Double(Env):
    """Asks for a number twice; the second answer ends the episode."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.answers = 0
        return "What is 6 times 7?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.answers += 1
        right, over = action == "42", self.answers == 2
        return "Thank you." if over else "Again?", float(right), over, False, {"success": over and right}

    def sample_random_action(self) -> str:
        return "42"


@pytest.fixture(autouse=True)
def _demo() -> None:
    gem_core.register(DEMO, Double)


def in_tags(messages: Sequence[Any]) -> Reply:
    """Calls the tool in the first turn, then answers."""
    first = len(messages) == 1
    return Reply(f"Let me see. <python>{CODE}</python>" if first else "42", usage=Usage(100, 20))


def natively(messages: Sequence[Any]) -> Reply:
    """Two calls in the first response, the second one with an error; then answers."""
    calls = tuple(ToolCall(f"c{n}", "python", json.dumps({"code": code})) for n, code in enumerate((CODE, "1 / 0")))
    return Reply("Let me see.", calls, usage=Usage(100, 20)) if len(messages) == 1 else Reply("42", usage=Usage(100, 5))


def exported(folder: Path) -> Any:
    inspect_log = pytest.importorskip("inspect_ai.log", reason="needs inspect-ai: nox -s inspect")
    file = folder / "log.eval"
    done = CliRunner().invoke(app, ["eval", "export", str(folder / "run"), "--inspect", str(file)])
    assert done.exit_code == 0, done.output
    return inspect_log.read_eval_log(str(file))


def shown(sample: Any) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in sample.messages]


def test_samples_epochs_scores_and_usage(tmp_path: Path) -> None:
    evaluate(
        DEMO,
        FunctionModel(lambda _: Reply("42", usage=Usage(10, 2)), "me"),
        tasks=3,
        repeats=2,
        output=tmp_path / "run",
    )
    log = exported(tmp_path)
    assert (log.status, log.eval.task, log.eval.model, log.eval.config.epochs) == ("success", DEMO, "me", 2)
    assert sorted((one.id, one.epoch) for one in log.samples) == [(task, 1 + n) for task in range(3) for n in range(2)]
    sample = log.samples[0]
    assert shown(sample) == [
        ("user", "What is 6 times 7?"),
        ("assistant", "42"),
        ("user", "Again?"),
        ("assistant", "42"),
        ("user", "Thank you."),
    ]
    assert sample.input == "What is 6 times 7?"
    assert sample.output.completion == "42"
    assert {name: score.value for name, score in sample.scores.items()} == {"success": 1.0, "return": 2.0}
    assert (sample.model_usage["me"].input_tokens, sample.model_usage["me"].output_tokens) == (20, 4)
    assert log.stats.model_usage["me"].total_tokens == 6 * 24
    assert (sample.metadata["env_id"], sample.metadata["stop_reason"]) == (DEMO, "terminated")
    assert log.eval.metadata["identity"] == json.loads((tmp_path / "run" / "run.json").read_bytes())["identity"]


def test_metrics_are_those_of_the_evaluation(tmp_path: Path) -> None:
    answers = iter(["42", "42", "0", "0"])
    model = FunctionModel(lambda _: next(answers), "me", most_at_once=1)
    results = evaluate(DEMO, model, tasks=2, output=tmp_path / "run")
    log = exported(tmp_path)
    scores = {one.name: {name: metric.value for name, metric in one.metrics.items()} for one in log.results.scores}
    success = results[DEMO].success
    assert success is not None
    assert scores["success"]["mean"] == success.value == 0.5
    assert (scores["success"]["ci_low"], scores["success"]["ci_high"]) == (success.low, success.high)
    assert scores["success"]["pass@1"] == 0.5
    assert scores["return"]["mean"] == 1.0


def test_a_tool_turn_is_a_call_and_its_result(tmp_path: Path) -> None:
    entry = Entry(id=DEMO, tasks=2, tools=["python:Interpreter"], system_prompt="Be brief.")
    evaluate(entry, FunctionModel(in_tags_after_system, "me"), output=tmp_path / "run")
    system, _, calling, result, *_ = exported(tmp_path).samples[0].messages
    assert (system.role, system.content) == ("system", "Be brief.")
    assert calling.content == f"Let me see. <python>{CODE}</python>"
    [call] = calling.tool_calls
    assert (call.function, call.arguments) == ("python", {"call": calling.content})
    assert (result.role, result.tool_call_id, result.function, result.error) == ("tool", call.id, "python", None)
    assert "42" in result.content


def in_tags_after_system(messages: Sequence[Any]) -> Reply:
    return in_tags(messages[1:])


def test_native_calls_have_their_arguments_and_errors(tmp_path: Path) -> None:
    entry = Entry(id=DEMO, tasks=2, tools=["python:Interpreter"], tool_form="native")
    evaluate(entry, FunctionModel(natively, "me"), output=tmp_path / "run")
    _, first, result, second, failure, answer, *_ = exported(tmp_path).samples[0].messages
    assert (first.content, first.tool_calls[0].arguments) == ("Let me see.", {"code": CODE})
    assert (second.content, second.tool_calls[0].arguments) == ("", {"code": "1 / 0"})
    assert (result.tool_call_id, failure.tool_call_id) == (first.tool_calls[0].id, second.tool_calls[0].id)
    assert result.error is None
    assert "ZeroDivisionError" in failure.error.message
    assert (answer.role, answer.content) == ("assistant", "42")


def test_several_environments_are_in_one_log(tmp_path: Path) -> None:
    entries = [Entry(id=DEMO, tasks=2, name=name) for name in ("one", "other")]
    evaluate(entries, FunctionModel(lambda _: "42", "me"), output=tmp_path / "run")
    log = exported(tmp_path)
    assert {one.id for one in log.samples} == {f"{name} task {task}" for name in ("one", "other") for task in range(2)}
    assert {one.name for one in log.results.scores} == {
        f"{score}{of}" for score in ("success", "return") for of in ("", " of one", " of other")
    }


def test_an_unfinished_evaluation_is_cancelled_in_the_log(tmp_path: Path) -> None:
    def full(messages: Sequence[Any]) -> Reply:
        return Reply("", context_full=True)

    evaluate(DEMO, FunctionModel(full, "short"), tasks=2, output=tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_bytes())
    results["together"]["episodes"]["finished"] = 1
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    log = exported(tmp_path)
    assert log.status == "cancelled"
    assert shown(log.samples[0]) == [("user", "What is 6 times 7?")]


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    monkeypatch.delitem(sys.modules, "gem_evaluation._inspect_log", raising=False)
    done = CliRunner().invoke(app, ["eval", "export", str(tmp_path), "--inspect", str(tmp_path / "log.eval")])
    assert done.exit_code == 1
    assert install_line("inspect") in done.output


def test_an_interval_without_ends_is_left_out(tmp_path: Path) -> None:
    evaluate(DEMO, FunctionModel(lambda _: "42", "me"), tasks=1, output=tmp_path / "run")
    [_, returns] = exported(tmp_path).results.scores
    assert {name: metric.value for name, metric in returns.metrics.items()} == {"mean": 2.0}


def test_the_file_must_end_in_eval(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["eval", "export", str(tmp_path), "--inspect", str(tmp_path / "log.json")])
    assert done.exit_code == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply("42", reasoning=Reasoning("6 times 7"), usage=Usage(10, 2)),
        Reply("<think>\n6 times 7\n</think>\n\n42", usage=Usage(10, 2)),
    ],
    ids=["apart", "within the text"],
)
def test_a_thought_is_reasoning_and_its_speech_the_text(tmp_path: Path, reply: Reply) -> None:
    evaluate(DEMO, FunctionModel(lambda _: reply, "me"), tasks=2, output=tmp_path / "run")
    sample = exported(tmp_path).samples[0]
    [answer, again] = [one for one in sample.messages if one.role == "assistant"]
    assert [(part.type, getattr(part, "reasoning", None) or part.text.strip()) for part in answer.content] == [
        ("reasoning", "6 times 7"),
        ("text", "42"),
    ]
    assert answer.text.strip() == again.text.strip() == "42"
    assert sample.output.completion.strip() == "42"


def test_a_native_call_stands_apart_from_the_thought_before_it(tmp_path: Path) -> None:
    def thinking(messages: Sequence[Any]) -> Reply:
        return msgspec.structs.replace(natively(messages), reasoning=Reasoning(f"thought {len(messages)}"))

    entry = Entry(id=DEMO, tasks=2, tools=["python:Interpreter"], tool_form="native")
    evaluate(entry, FunctionModel(thinking, "me"), output=tmp_path / "run")
    first, second, third, *_ = [one for one in exported(tmp_path).samples[0].messages if one.role == "assistant"]
    assert [part.type for part in first.content] == ["reasoning", "text"]
    assert (first.content[0].reasoning, first.text, first.tool_calls[0].arguments) == (
        "thought 1",
        "Let me see.",
        {"code": CODE},
    )
    assert (second.content, third.content[0].reasoning) == ("", "thought 4")
