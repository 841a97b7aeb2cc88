"""A thousand calls of all tools from 64 environments, some of them meant to do harm."""

from __future__ import annotations

import random
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

import gem_core
from gem_core.tools import Toolbox, ToolEnv
from gem_mcp.tool import MCPTool
from gem_python.tool import PythonTool
from gem_search._local import local_server
from gem_search.tool import SearchTool
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

pytestmark = pytest.mark.long

ENVIRONMENTS, ROUNDS = 64, 16
HOSTILE_EVERY = 37  # calls, in another environment each time; some take all the CPU time that they get
SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("adder", log_level="ERROR")

@server.tool()
def add(a: int, b: int) -> int:
    "The sum of two numbers."
    return a + b

server.run("stdio")
"""
HOSTILE = (
    "import os\nwhile True: os.fork()",
    "x = bytearray(8 << 30)",
    "while True: pass",
    "while True: print('a' * 1000)",
    "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "import os\nos.kill(os.getppid(), 9)",
    "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', 'MARK'])",
    "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "open('/etc/passwd', 'a')",
)


def call(rng: random.Random, number: int, mark: str) -> tuple[str, str | None]:
    """A response, and what has to stand in the answer; `None` for one that is to fail."""
    if number % HOSTILE_EVERY == 0:
        code = HOSTILE[number // HOSTILE_EVERY % len(HOSTILE)].replace("MARK", mark)
        return f"<python>{code}</python>", None
    kind = rng.choice(["python", "search", "add"])
    if kind == "python":
        return f"<python>print({number} * 3)</python>", f"result: {3 * number}\n"
    if kind == "search":
        return "<search>capital of Australia</search>", "Canberra"
    return f'<tool_call>{{"name": "add", "arguments": {{"a": {number}, "b": 1}}}}</tool_call>', str(number + 1)


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_thousand_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, mark = children(), str(tmp_path)
    monkeypatch.setenv("GEM_TEST_MARK", mark)
    (tmp_path / "adder.py").write_text(SERVER)
    servers = {"adder": {"command": sys.executable, "args": [str(tmp_path / "adder.py")]}}
    rng = random.Random(0)
    fates: Counter[str] = Counter()
    with local_server() as url:
        tools = Toolbox([PythonTool(timeout=2.0), SearchTool(url, timeout=30.0), MCPTool(servers)])
        wrapper = partial(ToolEnv, tools=tools, max_tool_uses=None)
        vec = gem_core.make_vec("qa:Sample", ENVIRONMENTS, backend="thread", wrappers=[wrapper], seed=0)
        try:
            vec.reset()
            for turn in range(ROUNDS):
                calls = [call(rng, turn * ENVIRONMENTS + place, mark) for place in range(ENVIRONMENTS)]
                observations, _, terminated, truncated, infos = vec.step([response for response, _ in calls])
                assert not any([*terminated, *truncated])
                for (response, wanted), observation, info in zip(calls, observations, infos, strict=True):
                    assert info["use_tool"], response
                    assert "error" not in info, response
                    assert wanted is None or wanted in observation, (response, observation)
                    fates["hostile" if wanted is None else "right"] += 1
        finally:
            vec.close()
    assert fates.total() == ENVIRONMENTS * ROUNDS
    assert fates["hostile"] == ENVIRONMENTS * ROUNDS // HOSTILE_EVERY + 1 > 3 * len(HOSTILE)
    wait_until(lambda: not children() - before)
    wait_until(lambda: not processes_with(mark))


def children() -> set[str]:
    """Ids of this process's children."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}
