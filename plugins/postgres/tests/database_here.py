"""Databases as tests use them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gem_core.errors import EnvError
from gem_postgres import _programs as programs
from gem_postgres.env import PostgresEnv

LONG = 240.0
"""Seconds that only a hang takes."""
FINISH = '<tool_call>{"name": "finish", "arguments": {}}</tool_call>'


def needs_a_database() -> None:
    """Skip where PostgreSQL or its MCP server is missing."""
    try:
        programs.postgresql()
        programs.mcp_server()
    except EnvError as error:
        pytest.skip(str(error))


def begin(env: PostgresEnv, name: str) -> None:
    """Begin the task of that name."""
    env.reset(data_index=[task.name for task in env.tasks].index(name))


def run(env: PostgresEnv, sql: str, function: str = "execute") -> tuple[str, dict[str, Any]]:
    """The observation and the info of a call that does not end the episode."""
    call = {"name": function, "arguments": {"sql": sql}}
    observation, reward, terminated, truncated, info = env.step(f"<tool_call>{json.dumps(call)}</tool_call>")
    assert (reward, terminated, truncated) == (0.0, False, False), observation
    return observation, info


def rows(env: PostgresEnv, sql: str) -> list[dict[str, Any]]:
    """What a query finds."""
    observation, info = run(env, sql, "query")
    assert "tool_error" not in info, observation
    found = json.loads(observation.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>"))
    return found["rows"]


def finished(env: PostgresEnv) -> tuple[float, dict[str, Any]]:
    """The reward and the info of the end."""
    _, reward, terminated, truncated, info = env.step(FINISH)
    assert (terminated, truncated) == (True, False)
    assert info["success"] == (reward == 1.0)
    assert ("check_problem" in info) == (reward == 0.0)
    return reward, info


def reward_of(env: PostgresEnv, name: str, *statements: str) -> float:
    """The reward for a task after statements, each of which works."""
    begin(env, name)
    for statement in statements:
        observation, info = run(env, statement)
        assert "tool_error" not in info, observation
    return finished(env)[0]
