"""Desks in tau-bench's form: a small library of our own, laid out as a clone is."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_desk.clone import domain, folder_of
from gem_desk.tau_bench import TauBench
from gem_testing import check_env

DATA = """
import json, os
def load_data():
    with open(os.path.join(os.path.dirname(__file__), "books.json")) as file:
        return {"books": json.load(file), "closed": False}
"""
BOOKS = {
    "B1": {"title": "Rivers", "pages": 1250, "lent_to": None, "fee": 1},
    "B2": {"title": "Stones", "pages": 90, "lent_to": "ada", "fee": 2},
}
TOOLS = """
from tau_bench.envs.tool import Tool
from .calculate import Calculate
from tau_bench.envs.library.tools.lend import Lend, Take, Fee
class Transfer(Tool):
    @staticmethod
    def invoke(data, summary):
        return "Transfer successful"
    @staticmethod
    def get_info():
        parameters = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
        function = {"name": "transfer_to_human_agents", "description": "Hand over.", "parameters": parameters}
        return {"type": "function", "function": function}
ALL_TOOLS = [Calculate, Lend, Take, Fee, Transfer]
"""
CALCULATE = """
from tau_bench.envs.tool import Tool
class Calculate(Tool):
    @staticmethod
    def invoke(data, expression):
        return str(eval(expression, {"__builtins__": None}, {}))
    @staticmethod
    def get_info():
        parameters = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
        return {"type": "function", "function": {"name": "calculate", "description": "", "parameters": parameters}}
"""
LEND = """
import json
from tau_bench.envs.tool import Tool
def info(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}
class Lend(Tool):
    @staticmethod
    def invoke(data, book, reader):
        if data["books"][book]["lent_to"] is not None:
            return "Error: the book is lent"
        data["books"][book]["lent_to"] = reader
        return json.dumps(data["books"][book])
    @staticmethod
    def get_info():
        return info("lend", book={"type": "string"}, reader={"type": "string"})
class Take(Tool):
    @staticmethod
    def invoke(data, book):
        data["books"][book]["lent_to"] = None
        return json.dumps(data["books"][book])
    @staticmethod
    def get_info():
        return info("take", book={"type": "string"})
class Fee(Tool):
    @staticmethod
    def invoke(data, book, fee):
        data["books"][book]["fee"] = fee
        return "done"
    @staticmethod
    def get_info():
        return info("fee", book={"type": "string"}, fee={"type": "number"})
"""
TASKS = """
from tau_bench.types import Action, Task
TASKS_TEST = [
    Task(annotator="0", user_id="ada", instruction="You are Ada. Give back Stones and borrow Rivers. How long is it?",
         actions=[Action(name="take", kwargs={"book": "B2"}),
                  Action(name="lend", kwargs={"book": "B1", "reader": "ada"}),
                  Action(name="calculate", kwargs={"expression": "1000 + 250"})],
         outputs=["1250", "Rivers"]),
    Task(user_id="ben", instruction="You are Ben. You want Stones, which is lent.",
         actions=[Action(name="lend", kwargs={"book": "B2", "reader": "ben"}),
                  Action(name="lend", kwargs={"book": "B9", "reader": "ben"}),
                  Action(name="transfer_to_human_agents", kwargs={"summary": "lent"})], outputs=[]),
    Task(user_id="ben", instruction="You are Ben. Rivers shall cost 3.", outputs=[],
         actions=[Action(name="fee", kwargs={"book": "B1", "fee": 3})]),
]
"""
TRAIN = "from tau_bench.types import Action, Task\nTASKS = [Task(user_id='', instruction='', actions=[], outputs=[])]\n"
NEVER = "raise RuntimeError('the packages of a clone import libraries for models')\n"


def clone_in(home: Path, wiki: str = "Lend to readers only.") -> Path:
    envs = home / "tau_bench" / "envs"
    library = envs / "library"
    files = {
        home / "tau_bench" / "__init__.py": NEVER,
        home / "tau_bench" / "types.py": NEVER,
        envs / "__init__.py": NEVER,
        envs / "tool.py": "class Tool:\n    pass\n",
        library / "__init__.py": NEVER,
        library / "data" / "__init__.py": DATA,
        library / "data" / "books.json": json.dumps(BOOKS),
        library / "tools" / "__init__.py": TOOLS,
        library / "tools" / "calculate.py": CALCULATE,
        library / "tools" / "lend.py": LEND,
        library / "tasks.py": "",
        library / "tasks_test.py": TASKS,
        library / "tasks_train.py": TRAIN,
        library / "wiki.md": wiki,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(clone_in(tmp_path_factory.mktemp("clone")))


def opened(home: str, task: int = 0, **kwargs: Any) -> TauBench:
    env = gem_core.make("desk:TauBench", domain="library", home=home, **kwargs)
    assert isinstance(env, TauBench)
    env.reset(seed=0, data_index=task)
    return env


def written(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


TAKE, LEND_B1 = written("take", book="B2"), written("lend", book="B1", reader="ada")
TOLD = "It has 1,250 pages. RIVERS is yours."
HAND_OVER = written("transfer_to_human_agents", summary="lent")


@pytest.mark.parametrize(
    ("task", "actions", "reward", "parts"),
    [
        (0, [TAKE, LEND_B1, TOLD], 1.0, (True, True)),
        (0, [LEND_B1, TAKE, "Shall I?", TOLD], 1.0, (True, True)),
        (0, [LEND_B1, TAKE, "1250 pages, right?", "Rivers."], 1.0, (True, True)),
        (0, [TOLD], 0.0, (False, True)),
        (0, [TAKE, LEND_B1, "Done."], 0.0, (True, False)),
        (0, [TAKE, LEND_B1, written("calculate", expression="1000 + 250"), "Rivers."], 0.0, (True, False)),
        (0, [TAKE, TOLD], 0.0, (False, True)),
        (0, ["Done."], 0.0, (False, False)),
        (0, [HAND_OVER], 0.0, (False, False)),
        (1, [HAND_OVER], 1.0, (True, True)),
        (1, ["No."], 1.0, (True, True)),
        (1, [TAKE, HAND_OVER], 0.0, (False, True)),
        (2, [written("fee", book="B1", fee=3), "Done."], 1.0, (True, True)),
        (2, [written("fee", book="B1", fee=3.5), "Done."], 0.0, (False, True)),
        (2, [written("fee", book="B1", fee=3.0), "Done."], 0.0, (False, True)),
    ],
)
def test_the_reward_is_the_database_and_the_outputs(
    home: str, task: int, actions: list[str], reward: float, parts: tuple[bool, bool]
) -> None:
    env = opened(home, task)
    for action in actions[:-1]:
        assert env.step(action)[1:4] == (0.0, False, False)
    _, earned, terminated, _, info = env.step(actions[-1])
    assert (earned, terminated) == (reward, True)
    assert (info["database_right"], info["outputs_told"]) == parts
    assert info["success"] is (reward == 1.0)


def test_the_first_observation_and_the_customer_who_reads_the_instruction_out(home: str) -> None:
    env = opened(home)
    observation, info = env.reset(seed=0, data_index=0)
    assert observation.startswith("Lend to readers only.")
    assert "lend" in observation
    assert observation.endswith("The customer says: You are Ada. Give back Stones and borrow Rivers. How long is it?\n")
    assert info["task_name"] == "test-0"
    assert "Yes, please." in env.step("Shall I lend it to you?")[0]
    assert env.data_size == 3
    assert opened(home, split="train").data_size == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (written("lend", book="B2", reader="ben"), "Error: the book is lent"),
        (written("lend", book="B9", reader="ben"), "Error: 'B9'"),
        (written("lend", book="B1"), "Error: the argument 'reader' is missing"),
        (written("lent", book="B1"), "Did you mean 'lend'"),
        (written("calculate", expression="1/0"), "Error: division by zero"),
        (written("calculate", expression="9**9**9**9"), "Error: no powers"),
        (written("calculate", expression="1+" * 600 + "1"), "at most 1000 characters"),
    ],
)
def test_a_call_that_fails_says_why_and_changes_nothing(home: str, call: str, said: str) -> None:
    env = opened(home)
    text, *result, info = env.step(call)
    assert said in text
    assert result == [0.0, False, False]
    assert info["tool_error"] in text
    assert env.data == {"books": BOOKS, "closed": False}


def test_every_episode_has_a_database_of_its_own(home: str) -> None:
    first, second = opened(home), opened(home)
    first.step(LEND_B1)
    assert second.data["books"]["B1"]["lent_to"] is None
    first.reset(seed=0, data_index=0)
    assert first.data["books"]["B1"]["lent_to"] is None


def test_it_keeps_the_contract(home: str) -> None:
    check_env("desk:TauBench", domain="library", home=home)


def test_native_calls_are_described_and_found(home: str) -> None:
    env = opened(home, form="native")
    _, info = env.reset(seed=0, data_index=0)
    names = [tool["function"]["name"] for tool in info["tools"]]
    assert names == ["calculate", "lend", "take", "fee", "transfer_to_human_agents"]
    assert env.step('{"name": "calculate", "arguments": {"expression": "2 * 3"}}')[0] == "6\n"


def test_a_model_can_be_the_customer(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def say(messages: Any) -> str:
        asked.append(messages)
        return ["Hi, I have a book of yours.", "I am Ada.", "[END]"][len(messages) // 2 - 1]

    module = types.ModuleType("reader")
    module.__dict__["say"] = say
    monkeypatch.setitem(sys.modules, "reader", module)
    env = opened(home, customer="model:reader:say")
    assert env.customer.opening == "Hi, I have a book of yours."
    assert asked[0][0]["content"].endswith("You are Ada. Give back Stones and borrow Rivers. How long is it?")
    assert "1250" not in asked[0][0]["content"]
    steps = [env.step(action) for action in ("Who are you?", TAKE, LEND_B1, TOLD)]
    assert [step[1:4] for step in steps] == [(0.0, False, False)] * 3 + [(1.0, True, False)]
    partner_replies = [text for *_, info in steps for text in info.get("partner_replies", [])]
    assert partner_replies == ["Hi, I have a book of yours.", "I am Ada.", "[END]"]
    env.close()


def test_clones_and_an_installed_tau_bench_stay_apart(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = types.ModuleType("tau_bench")
    monkeypatch.setitem(sys.modules, "tau_bench", installed)
    other = str(clone_in(tmp_path, "Lend to all."))
    assert opened(other).policy == "Lend to all."
    assert opened(home).policy == "Lend to readers only."
    assert sys.modules["tau_bench"] is installed
    assert not [name for name in sys.modules if name.startswith("tau_bench.")]


def test_the_variable_names_the_clone(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAU_BENCH_HOME", home)
    assert domain(folder_of(None), "library", "test") is domain(folder_of(home), "library", "test")
    monkeypatch.delenv("TAU_BENCH_HOME")
    with pytest.raises(EnvError, match=r"no clone of tau-bench is named. Next: git clone"):
        gem_core.make("desk:TauBench", domain="library")


def test_what_cannot_be_read_says_why(home: str, tmp_path: Path) -> None:
    for kwargs, said in (
        ({"home": str(tmp_path)}, "has no domains"),
        ({"home": home, "domain": "shop"}, "domain must be one of library, not 'shop'"),
        ({"home": home, "domain": ".."}, "domain must be one of library, not '..'"),
        ({"home": home, "split": "dev"}, "split must be one of test, train for the domain library, not 'dev'"),
        ({"home": home, "max_turns": 0}, "max_turns must be at least 1"),
    ):
        with pytest.raises(EnvError, match=said):
            gem_core.make("desk:TauBench", **{"domain": "library", **kwargs})
    broken = clone_in(tmp_path / "broken")
    (broken / "tau_bench/envs/library/tools/lend.py").write_text("import no_such_library\n")
    with pytest.raises(EnvError, match=r"cannot be read: ModuleNotFoundError.*no_such_library"):
        gem_core.make("desk:TauBench", domain="library", home=str(broken))
    assert not [name for name in sys.modules if name.startswith("tau_bench")]
