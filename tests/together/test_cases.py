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


def rows(kind: str) -> list[dict[str, Any]]:
    """The cases of a file."""
    return [json.loads(line) for line in (CASES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


def cases(kind: str) -> list[Any]:
    """The same, as parameters."""
    return [pytest.param(row, id=row["id"]) for row in rows(kind)]


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
import os
import runpy
import sys

import datasets
import reasoning_gym

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
for program in sys.argv[1:]:
    if not (child := os.fork()):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(program + ".stderr", os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = ["gem_compat", program]
        runpy.run_module("gem_compat", run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Stands for the hub, where a program for gem-llm names data sets, and runs programs as `python -m gem_compat` does.

Each has a fork: what all of them import takes seconds.
"""


@pytest.fixture(scope="module")
def of_upstream(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Of each program, by the id of its case: its exit code and what it wrote to standard error."""
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "hub.py").write_text(HUB)
    programs = {case["id"]: folder / f"{case['id']}.py" for case in rows("compat")}
    for case in rows("compat"):
        programs[case["id"]].write_text(f"import gem\n{case['program']}\n")
    command = [sys.executable, "hub.py", *map(str, programs.values())]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=280, cwd=folder, check=True)
    codes = map(int, done.stdout.split())
    errors = [Path(f"{program}.stderr").read_text() for program in programs.values()]
    return dict(zip(programs, zip(codes, errors, strict=True), strict=True))


@pytest.mark.parametrize("case", cases("compat"))
def test_programs_of_upstream(case: dict[str, Any], of_upstream: dict[str, tuple[int, str]]) -> None:
    code, errors = of_upstream[case["id"]]
    _, raises, name = case["expect"].partition("raises ")
    if raises:
        assert name in errors.strip().splitlines()[-1], case["reason"]
    else:
        assert code == 0, (case["reason"], errors)
