"""Small inputs with right outcomes (`cases/README.md`), each through the environment that a user would make."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core.env import Env, ResetResult, StepResult
from gem_core.errors import GemError
from gem_core.tool import CallContext, Function, Tool
from gem_core.tools import ToolEnv
from gem_support.chat_families import byte_tokenizer
from gem_support.programs import one_server
from gem_train.rollout import ChatTemplate, end_token_ids

CASES = Path(__file__).parent / "cases"


def cases(kind: str) -> list[Any]:
    """The cases of a file, as parameters."""
    rows = [json.loads(line) for line in (CASES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in rows]


def spelled_out(value: Any) -> Any:
    """A value with its repeated texts written out."""
    if isinstance(value, dict):
        if [*value] == ["repeat"]:
            text, times = value["repeat"]
            return text * times
        return {key: spelled_out(one) for key, one in value.items()}
    return [spelled_out(one) for one in value] if isinstance(value, list) else value


def asked(tmp_path: Path, env_id: str, row: dict[str, Any], **kwargs: Any) -> Env:
    """An environment with one row of data."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    return gem_core.make(env_id, dataset=str(path), **kwargs)


@pytest.mark.parametrize("case", cases("math"))
def test_mathematics(case: dict[str, Any], tmp_path: Path) -> None:
    answer = case["answer"]
    text = answer if "\\boxed" in answer else f"\\boxed{{{answer}}}"
    env = asked(tmp_path, "math:Dataset", {"problem": case["question"], "answer": case["reference"]})
    env.reset(seed=0)
    assert (env.step(text)[1] == 1.0) == case["right"], case["reason"]


@pytest.fixture(scope="module")
def programs() -> Iterator[None]:
    with one_server("numpy"):
        yield


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("case", cases("code"))
def test_programs(case: dict[str, Any], tmp_path: Path) -> None:
    row = {"problem": "Solve it.", "tests": spelled_out(case["tests"])}
    env = asked(tmp_path, "code:Dataset", row, **case.get("kwargs", {}))
    try:
        try:
            env.reset(seed=0)
        except GemError:
            assert case.get("or_refused"), case["reason"]
            return
        reward = env.step(case["answer"])[1]
    finally:
        env.close()
    wanted = case["reward"]
    assert reward in (wanted if isinstance(wanted, list) else [wanted]), case["reason"]


@pytest.mark.parametrize("case", [one for one in cases("boxes") if "form" in one.values[0]])
def test_boxes_of_reasoning_gym(case: dict[str, Any]) -> None:
    env = gem_core.make(case["env"], size=case["size"], data_seed=case["data_seed"])
    answers: list[str] = []
    for index in (case["index"] + 1, case["index"]):
        env.reset(seed=0, row=index)
        answers.append(str(env.unwrapped._entry["answer"]))  # type: ignore[attr-defined]
    other, answer = answers
    text: str = case["form"]
    for name, value in {"answer": answer, "other": other, "apart": " ".join(answer)}.items():
        text = text.replace(f"{{{name}}}", value)
    assert (env.step(text)[1] == 1.0) == case["right"], case["reason"]


@pytest.mark.parametrize("case", [one for one in cases("boxes") if "reference" in one.values[0]])
def test_boxes_and_tags(case: dict[str, Any], tmp_path: Path) -> None:
    column = "problem" if case["env"] == "math:Dataset" else "question"
    env = asked(tmp_path, case["env"], {column: case["question"], "answer": case["reference"]})
    env.reset(seed=0)
    text = case["text"] if "text" in case else f"<answer>{case['answer']}</answer>"
    assert (env.step(text)[1] == 1.0) == case["right"], case["reason"]


class Plain(Env):
    """Takes anything."""

    def __init__(self) -> None:
        self.actions: list[str] = []

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        super().reset(seed=seed, **options)
        return "Go.", {}

    def step(self, action: str) -> StepResult:
        self.actions.append(action)
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return "on"


TEXT = {"type": "string"}


def function(name: str, properties: dict[str, Any], required: str, tag: str | None, fence: str | None) -> Function:
    schema = {"type": "object", "properties": properties, "required": [required]}
    return Function(name, "A function.", schema, tag=tag, fence=fence)


class Listening(Tool):
    """Keeps what it is called with."""

    def __init__(self, form: str) -> None:
        self.calls: list[dict[str, Any]] = []
        self.tagged = form == "text"

    def functions(self) -> list[Function]:
        files = {"path": TEXT, "content": TEXT, "n": {"type": "integer"}, "tags": {"type": "array", "items": TEXT}}
        tag = {name: name if self.tagged else None for name in ("python", "search")}
        return [
            function("edit", files, "path", None, None),
            function("python", {"code": TEXT}, "code", tag["python"], tag["python"]),
            function("search", {"query": TEXT}, "query", tag["search"], None),
        ]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> str:
        self.calls.append({"name": function, "arguments": arguments})
        return "done"


@pytest.mark.parametrize("case", cases("tools"))
def test_calls(case: dict[str, Any]) -> None:
    tool, bare = Listening(case["form"]), Plain()
    env = ToolEnv(bare, [tool], form=case["form"])
    env.reset(seed=0)
    info = env.step(case["text"])[-1]
    then = "environment" if bare.actions else "error" if "tool_error" in info else "result"
    assert (tool.calls, then) == (case["calls"], case["then"]), case["reason"]


@pytest.mark.parametrize("case", cases("stops"))
def test_ends_of_turns(case: dict[str, Any]) -> None:
    tokenizer = byte_tokenizer(case["special"], case["template"], eos_token=case["tokenizer_eos"])
    configured = tokenizer.convert_tokens_to_ids(case["generation_eos"])
    ends = end_token_ids(ChatTemplate(tokenizer), tokenizer, configured)
    assert {*case["ends"]} <= {*tokenizer.convert_ids_to_tokens(ends)}, case["reason"]
    never = {one for text in case["never"] for one in tokenizer.encode(text, add_special_tokens=False)}
    assert never.isdisjoint(ends), case["reason"]


HUB = """
import datasets

ROWS = {
    "axon-rl/MATH-12k": {"problem": ["2+6?"], "answer": ["8"]},
    "axon-rl/GSM-8k": {"problem": ["2+6?"], "answer": ["8"]},
    "axon-rl/HotpotQA": {"problem": ["Who wrote notes on the Engine?"], "answer": ["Ada Lovelace"]},
    "axon-rl/TACO-8k": {
        "problem": ["Add two numbers."] * 2,
        "tests": [{"inputs": ["1 2\\n"], "outputs": ["3\\n"]}, {"inputs": ["4 5\\n"], "outputs": ["9\\n"]}],
    },
}


def load_dataset(name, *others, **options):
    return datasets.DatasetDict(train=datasets.Dataset.from_dict(ROWS[name]))


datasets.load_dataset = load_dataset
import gem
"""
"""Stands for the hub: a program for gem-llm names data sets there."""


@pytest.mark.parametrize("case", cases("compat"))
def test_programs_of_upstream(case: dict[str, Any], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{HUB}\n{case['program']}\n")
    command = [sys.executable, "-m", "gem_compat", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    _, raises, name = case["expect"].partition("raises ")
    if raises:
        assert name in done.stderr.strip().splitlines()[-1], case["reason"]
    else:
        assert done.returncode == 0, (case["reason"], done.stderr)
