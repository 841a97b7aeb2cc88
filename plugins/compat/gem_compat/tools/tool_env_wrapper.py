"""Environments whose policy may call tools that find their calls themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gem_compat.core import EnvWrapper
from gem_compat.tools.base_tool import BaseTool
from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.tools import LAST_USE


class ToolEnvWrapper(EnvWrapper):
    """Offers a response to each tool in turn, and to the environment where none of them finds a call in it.

    The first tool whose call succeeds answers, or else the first that found one. A tool turn never ends the episode.
    `info` has `tool_use_counter` and `tool_success_counter`; on a reset those of the last episode, too, with `prev_ep_`
    before their names; and on a tool turn `use_tool`, `tool_type`, `parsed_action`, and the `prefix` and `suffix` that
    the environment showed last.

    Args:
        env: the environment to wrap.
        tools: what may be called.
        tool_reward: of a tool turn.
        tool_success_reward: of a call that succeeds, in addition.
        max_tool_uses: calls of one episode; `None` means no limit.
    """

    def __init__(
        self,
        env: Env,
        tools: Sequence[BaseTool],
        tool_reward: float = 0.0,
        tool_success_reward: float = 0.0,
        max_tool_uses: int | None = 10,
    ) -> None:
        super().__init__(env)
        self.tools = list(tools)
        self.tool_reward, self.tool_success_reward = tool_reward, tool_success_reward
        self.max_tool_uses = float("inf") if max_tool_uses is None else max_tool_uses
        self.tool_use_counter = self.tool_success_counter = 0
        self._frame: Info = {}

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, and say how to call the tools."""
        previous = {f"prev_ep_{name}": count for name, count in self._counters().items()}
        observation, info = self.env.reset(seed=seed, **options)
        self.tool_use_counter = self.tool_success_counter = 0
        self._frame = _frame(info)
        shown = "\n".join([observation, *(tool.instruction_string() for tool in self.tools)])
        return shown, {**info, **self._counters(), **previous, "use_tool": False}

    def step(self, action: str) -> StepResult:
        """Play one turn: a tool's, or the environment's."""
        answer = self._answer(action) if self.tool_use_counter < self.max_tool_uses else None
        if answer is None:
            observation, reward, terminated, truncated, info = self.env.step(action)
            self._frame = _frame(info)
            return observation, reward, terminated, truncated, {**info, **self._counters(), "use_tool": False}
        tool_type, failed, observation, parsed = answer
        self.tool_use_counter += 1
        self.tool_success_counter += not failed
        if self.tool_use_counter == self.max_tool_uses:
            observation = f"{observation.rstrip()}\n\n{LAST_USE}"
        reward = self.tool_reward + (0.0 if failed else self.tool_success_reward)
        info = {**self._frame, **self._counters(), "use_tool": True, "tool_type": tool_type, "parsed_action": parsed}
        return observation, reward, False, False, info

    def _answer(self, action: str) -> tuple[str, bool, str, str] | None:
        """The type of the tool that answers, and its answer after the first value of `execute_action`."""
        answers: list[tuple[str, bool, str, str]] = []
        for tool in self.tools:
            found, failed, observation, parsed = tool.execute_action(action)
            if found:
                answers.append((tool.tool_type, failed, observation, parsed))
                if not failed:
                    return answers[-1]
        return answers[0] if answers else None

    def _counters(self) -> Info:
        return {"tool_use_counter": self.tool_use_counter, "tool_success_counter": self.tool_success_counter}


def _frame(info: Info) -> Info:
    return {key: info[key] for key in ("prefix", "suffix") if key in info}
