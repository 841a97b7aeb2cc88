"""Episodes of `terminal:` as tests play them."""

from __future__ import annotations

import shlex
from typing import Any

from gem_terminal import _actions as actions
from gem_terminal.env import TerminalEnv

FINISH = "<finish></finish>"


def run(env: TerminalEnv, command: str) -> str:
    """The observation after a command that does not end the episode."""
    observation, reward, terminated, truncated, _ = env.step(actions.command(command, env.form))
    assert (reward, terminated, truncated) == (0.0, False, False), observation
    return observation


def finished(env: TerminalEnv) -> tuple[float, dict[str, Any]]:
    """The reward and the info of the end."""
    _, reward, terminated, truncated, info = env.step(actions.finish(env.form))
    assert (terminated, truncated) == (True, False)
    assert info["success"] == (reward >= 1.0)
    return reward, info


def reward_of(env: TerminalEnv, name: str, script: str | None) -> float:
    """The reward for a task after a shell script, or for doing nothing."""
    names = [task.name for task in env.tasks]
    env.reset(data_index=names.index(name))
    if script is not None:
        run(env, f"bash -c {shlex.quote(script)}")
    return finished(env)[0]
