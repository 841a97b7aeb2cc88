"""Tools of real servers, called as policies call them."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp_users import Question, User

import gem_core
from gem_core.tools import Toolbox, ToolEnv
from gem_mcp.tool import MCPTool
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

ADD = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


@pytest.fixture(scope="module")
def toolbox(sdk_for_module: dict[str, Any]) -> Iterator[Toolbox]:
    """One for most tests, as a server of the SDK takes seconds to start; something keeps it open all the time."""
    os.environ["MY_TOKEN"] = "secret"
    shared = Toolbox([MCPTool({"tester": {**sdk_for_module, "env": {"GIVEN": "yes"}}})], max_output=1000)
    user = User(shared)
    del os.environ["MY_TOKEN"]
    yield shared
    user.session.close()


@pytest.fixture
def call(toolbox: Toolbox) -> Iterator[User]:
    user = User(toolbox)
    yield user
    user.session.close()


def test_results(call: User) -> None:
    assert call("add", a=2, b=3) == "5"
    assert call("echo", text="naïve 🤖 </tool_response>") == "naïve 🤖 </tool_response>"
    assert json.loads(call("city")) == {"name": "Zürich", "population": 400_000}
    assert call("picture") == "look\n[image image/png, 3 bytes]"
    assert call("progress", steps=20) == "done"
    assert "characters left out" in call("letters", count=3_000_000)
    assert "too short" in call.error("fail", reason="too short")
    assert "elicit" in call.error("ask").lower()


def test_environment(call: User) -> None:
    assert call("variable", name="MY_TOKEN") == "not set"
    assert call("variable", name="GIVEN") == "yes"
    assert call("variable", name="PATH") == os.environ["PATH"]


def test_one_process_for_all_calls_and_episodes(call: User) -> None:
    number, pid = map(int, call("count").split())
    call.session.begin()
    assert call("count") == f"{number + 1} {pid}"


@pytest.mark.uncertain("a call must finish before others that take two seconds")
def test_calls_run_side_by_side(call: User) -> None:
    threads = [threading.Thread(target=call, args=["nap"], kwargs={"seconds": 2.0}) for _ in range(16)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    assert call("add", a=1, b=1) == "2"
    quick = time.monotonic() - began
    for thread in threads:
        thread.join()
    assert quick < 2.0
    assert time.monotonic() - began < 16.0  # one after the other would be 32


def test_a_vector_shares_the_session(toolbox: Toolbox, call: User) -> None:
    pytest.importorskip("gem_games")
    before, pid = map(int, call("count").split())
    wrappers = [partial(ToolEnv, tools=toolbox)]
    vector = gem_core.make_vec("game:GuessTheNumber-v0-easy", 16, backend="thread", wrappers=wrappers)
    vector.reset(seed=0)
    counted: list[int] = []
    for _ in range(3):
        observations, *_ = vector.step(['<tool_call>{"name": "count", "arguments": {}}</tool_call>'] * 16)
        numbers = [[*map(int, text.split("\n")[2].split())] for text in observations]
        counted += [number for number, _ in numbers]
        assert {process for _, process in numbers} == {pid}
    vector.close()
    assert sorted(counted) == [*range(before + 1, before + 49)]


def test_an_episode_in_text_form(toolbox: Toolbox) -> None:
    env = ToolEnv(Question(), toolbox, tool_success_reward=0.1)
    observation, _ = env.reset(seed=0)
    assert '"name":"add"' in observation
    assert '"required":["a","b"]' in observation
    observation, reward, terminated, _, info = env.step(f"Hm. {ADD} and so on")
    assert observation == "\n<tool_response>\n5\n</tool_response>\n"
    assert (reward, terminated, info["tool_type"]) == (0.1, False, "add")
    upstream = '<tool_call><tool_name>add</tool_name><arguments>{"a": 2, "b": 5}</arguments></tool_call>'
    assert env.step(upstream)[0] == "\n<tool_response>\n7\n</tool_response>\n"
    failing = '<tool_call>{"name": "fail", "arguments": {"reason": "no"}}</tool_call>'
    _, reward, *_, info = env.step(failing)
    assert (reward, info["tool_success_counter"]) == (0, 2)
    assert "no" in info["tool_error"]
    assert env.step("It is 5.")[1] == 1
    env.close()


def test_an_episode_in_native_form(toolbox: Toolbox) -> None:
    env = ToolEnv(Question(), toolbox, form="native")
    _, info = env.reset(seed=0)
    add = next(tool["function"] for tool in info["tools"] if tool["function"]["name"] == "add")
    assert add["description"] == "The sum of two numbers."
    assert add["parameters"]["properties"]["a"]["type"] == "integer"
    assert env.step('{"name": "add", "arguments": {"a": 2, "b": 3}}')[0] == "5"
    env.close()


def test_contents_of_every_kind(use: Any, raw: Any) -> None:
    text = use(MCPTool({"raw": raw("blocks")}))("ping")
    assert text.splitlines() == [
        "first",
        "[audio audio/wav, 6 bytes]",
        "[resource file:///a.txt: a]",
        "[resource file:///b.txt]",
        "inside b",
        "[resource file:///c.bin: x/y, 3 bytes]",
    ]


def test_several_servers(use: Any, raw: Any) -> None:
    tool = MCPTool({"one": raw("serve"), "two": raw("odd")}, allow=["two_none", "one_ping"])
    call = use(tool)
    assert [function.name for function in call.session.functions] == ["two_none", "one_ping"]
    assert (call("one_ping"), call("two_none")) == ("pong", "pong")


def test_names_that_would_be_one(use: Any, raw: Any) -> None:
    with pytest.raises(gem_core.errors.ToolError, match="'a_b_ping'"):
        use(MCPTool({"a b": raw("serve"), "a_b": raw("serve")}))


def test_used_again_after_close(use: Any, raw: Any, marker: str) -> None:
    toolbox = Toolbox([MCPTool({"raw": raw("serve")})])
    assert not processes_with(marker)
    for _ in range(2):
        call = User(toolbox)
        assert call("ping") == "pong"
        assert len(processes_with(marker)) == 2  # the server and its guard
        call.session.close()
        wait_until(lambda: not processes_with(marker))


def test_pickled(use: Any, raw: Any, marker: str) -> None:
    tool = MCPTool({"raw": raw("serve")}, timeout=7.0)
    assert use(tool)("ping") == "pong"
    copy = pickle.loads(pickle.dumps(tool))
    assert copy.timeout == 7.0
    assert use(copy)("ping") == "pong"
    assert len(processes_with(marker)) == 4


def test_workers_have_servers_of_their_own(raw: Any, marker: str) -> None:
    pytest.importorskip("gem_games")
    toolbox = Toolbox([MCPTool({"raw": raw("serve")})])
    vector = gem_core.make_vec(
        "game:GuessTheNumber-v0-easy", 4, backend="process", workers=2, wrappers=[partial(ToolEnv, tools=toolbox)]
    )
    vector.reset(seed=0)
    observations, *_ = vector.step(['<tool_call>{"name": "ping", "arguments": {}}</tool_call>'] * 4)
    assert len(processes_with(marker)) == 4
    vector.close()
    assert all("pong" in text for text in observations)


def test_many_tools(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("pages")}, allow=["ping2999"]))
    assert call("ping2999") == "pong"


def test_a_changed_list_is_seen_when_it_is_opened_again(raw: Any, tmp_path: Path) -> None:
    toolbox = Toolbox([MCPTool({"raw": raw("changing", tmp_path / "number")})])
    for number in range(2):
        call = User(toolbox)
        assert [function.name for function in call.session.functions] == [f"ping{number}"]
        assert call(f"ping{number}") == "pong"
        call.session.close()


def test_odd_names_and_schemas(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("odd")}))
    files, none = call.session.functions
    assert files.name == "files_list_all"
    assert files.parameters["required"] == ["b"]
    assert none.parameters["properties"] == {}
    assert call("files_list_all", b="x") == "pong"


def test_requests_of_a_server_are_declined(use: Any, raw: Any) -> None:
    declined = use(MCPTool({"raw": raw("asks")}))("ping")
    assert declined.count("not supported") == 3


def test_a_published_server(use: Callable[..., User]) -> None:
    pytest.importorskip("mcp_server_time", reason="needs pip install mcp-server-time")
    server = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
    call = use(MCPTool({"time": server}))
    assert [function.name for function in call.session.functions] == ["get_current_time", "convert_time"]
    answer = json.loads(
        call("convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="Asia/Kolkata")
    )
    assert answer["time_difference"] == "-3.5h"
    assert "+00:00" in call("get_current_time", timezone="UTC")
    assert "Nowhere" in call.error("get_current_time", timezone="Nowhere/Land")


def test_registered() -> None:
    tool = gem_core.make_tool("mcp:Servers", servers="http://127.0.0.1:1/mcp")
    assert isinstance(tool, MCPTool)
    assert tool.spec is not None
    assert tool.spec.id == "mcp:Servers"
