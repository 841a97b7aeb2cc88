"""Servers that crash, hang, talk nonsense or stay when they should go."""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_users import User

from gem_core.errors import ToolError
from gem_core.tools import Toolbox
from gem_mcp import _session as session
from gem_mcp.tool import MCPTool
from gem_support.processes import processes_with
from gem_support.waiting import wait_until


@pytest.mark.uncertain("a call must reach a server within half a second, before the next call kills it")
def test_a_crash_in_a_call_and_between_calls(use: Any, raw: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "gem_mcp")
    call = use(MCPTool({"raw": raw("fragile")}))
    first = int(call("ping").split()[1])
    said: list[str] = []
    beside = threading.Thread(target=lambda: said.append(call.error("ping", never=True)))
    beside.start()
    time.sleep(0.5)
    error = call.error("ping", leave=3)
    beside.join()
    assert "'raw' ended with code 3; its last words: these are my last words" in error
    assert "these are my last words" in caplog.text
    assert "ended with code 3" in said[0]
    number, second = map(int, call("ping").split())
    assert (number, second != first) == (1, True)
    os.kill(second, signal.SIGSEGV)
    wait_until(lambda: not os.path.exists(f"/proc/{second}"))
    time.sleep(0.5)
    assert call("ping").split()[0] == "1"


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_timeout_leaves_the_session_as_it_is(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("fragile")}, timeout=1.0))
    before = call("ping").split()
    began = time.monotonic()
    assert "no answer within 1 seconds" in call.error("ping", never=True)
    assert time.monotonic() - began < 10
    assert call("ping").split() == ["2", before[1]]


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_server_that_hangs_is_replaced(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("hangs")}, timeout=0.5, start_timeout=2.0))
    assert "no answer" in call.error("ping")
    wait_until(lambda: "pong" in call.result("ping", awake=True).text)


def test_a_crash_at_the_start(use: Any, raw: Any, marker: str) -> None:
    with pytest.raises(ToolError, match="'raw' ended with code 3; its last words: no database"):
        use(MCPTool({"raw": raw("crash"), "good": raw("serve")}))
    wait_until(lambda: not processes_with(marker))


def test_a_command_that_does_not_exist(use: Any) -> None:
    with pytest.raises(ToolError, match="cannot start 'no-such-program': No such file"):
        use(MCPTool({"x": {"command": "no-such-program"}}))
    with pytest.raises(ToolError, match="/nowhere"):
        use(MCPTool({"x": {"command": "true", "cwd": "/nowhere"}}))


def test_a_server_that_never_answers(use: Any, raw: Any, marker: str) -> None:
    began = time.monotonic()
    with pytest.raises(ToolError, match="'raw' did not say within 1 seconds what it offers"):
        use(MCPTool({"raw": raw("mute")}, start_timeout=1.0))
    assert time.monotonic() - began < 20
    wait_until(lambda: not processes_with(marker))


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.03, 0.06, 0.1, 0.2])
def test_a_server_that_is_given_up_while_it_starts(use: Any, raw: Any, marker: str, seconds: float) -> None:
    for _ in range(3):
        with pytest.raises(ToolError, match="did not say within"):
            use(MCPTool({"raw": raw("mute")}, start_timeout=seconds))
    wait_until(lambda: not processes_with(marker))


def test_an_endless_list_of_tools(use: Any, raw: Any) -> None:
    with pytest.raises(ToolError, match="more than 10,000 tools"):
        use(MCPTool({"raw": raw("endless")}))


def test_no_crash_loop(use: Any, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_STARTS", 3)
    call = use(MCPTool({"raw": raw("leaves")}))
    errors = [call.error("ping") for _ in range(5)]
    assert [("ended with code 5" in error) for error in errors] == [True, True, True, False, False]
    assert "was started 3 times in 60 seconds" in errors[-1]


def test_garbage_between_messages(use: Any, raw: Any, caplog: Any, capfd: Any) -> None:
    caplog.set_level(logging.INFO, "gem_mcp")
    call = use(MCPTool({"raw": raw("garbage")}))
    assert [call("ping") for _ in range(3)] == ["pong"] * 3
    assert "Welcome to the raw server!" in caplog.text
    assert max(len(record.getMessage()) for record in caplog.records if record.name == "gem_mcp") < 1000
    assert "Welcome" not in capfd.readouterr().err


def test_much_on_stderr(use: Any, raw: Any, caplog: Any, capfd: Any) -> None:
    caplog.set_level(logging.INFO, "gem_mcp")
    call = use(MCPTool({"raw": raw("flood")}))
    assert [call("ping") for _ in range(2)] == ["pong"] * 2
    assert len([record for record in caplog.records if record.name == "gem_mcp"]) == 1000
    assert "noise" not in capfd.readouterr().err


def test_a_line_without_end(use: Any, raw: Any) -> None:
    call = use(MCPTool({"raw": raw("endless_line")}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "sent a message of more than 8 MiB" in call.error("ping")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_server_that_lies(use: Any, raw: Any) -> None:
    assert "'raw'" in use(MCPTool({"raw": raw("lies")})).error("ping")


def test_a_server_that_stays_when_its_input_ends(raw: Any, marker: str) -> None:
    call = User(Toolbox([MCPTool({"raw": raw("stays")})]))
    assert call("ping") == "pong"
    call.session.close()
    assert not processes_with(marker)


def test_what_a_server_started_ends_with_it(use: Any, raw: Any, marker: str) -> None:
    call = use(MCPTool({"raw": raw("fragile")}))
    call("ping", child=marker)
    wait_until(lambda: len(processes_with(marker)) == 3)  # a child has its mark once it has become another program
    call.error("ping", leave=0)
    wait_until(lambda: not processes_with(marker))


def test_nothing_is_left_when_the_client_is_killed(raw: Any, marker: str) -> None:
    program = """
        import sys, time
        from mcp_users import User
        from gem_core.tools import Toolbox
        from gem_mcp.tool import MCPTool
        call = User(Toolbox([MCPTool({"stays": SERVER})]))
        print(call("ping"), flush=True)
        time.sleep(60)
    """.replace("SERVER", repr(raw("stays")))
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, cwd=Path(__file__).parent
    )
    assert client.stdout is not None
    assert client.stdout.readline() == b"pong\n"
    assert len(processes_with(marker)) >= 2
    client.kill()
    client.communicate()
    wait_until(lambda: not processes_with(marker))


def test_nothing_stays_open(raw: Any, marker: str) -> None:
    toolbox = Toolbox([MCPTool({"raw": raw("serve")})])

    def play() -> None:
        call = User(toolbox)
        call("ping")
        call.session.close()

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    play()
    before = files(), threading.active_count()
    for _ in range(3):
        play()
    # A thread that has handed its answer over may still be ending.
    wait_until(lambda: files() <= before[0] and threading.active_count() <= before[1])
