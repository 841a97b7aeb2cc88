"""Environments whose policy may call tools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from gem_core.env import Env, Info, ResetResult, StepResult, Wrapper
from gem_core.errors import ToolError
from gem_core.responses import speech_of
from gem_core.tool import Function, Tool
from gem_core.tools._calls import Form, ParsedCall, find_call, written
from gem_core.tools._session import ToolSession
from gem_core.tools._toolbox import Toolbox

LAST_USE = "That was the last tool call of this episode. Answer now without tools."
"""What follows the result of the last call."""


class ToolEnv(Wrapper):
    """Sends responses that contain a call to the tools, and all others to the environment.

    A tool turn never ends the episode and is no turn of the environment. What a response says after its call is
    ignored: `parsed_action` ends with the call. After `max_tool_uses` calls, every response goes to the environment.

    | what happens | reward of the turn |
    | --- | --- |
    | a call | `tool_reward` |
    | ... that succeeds | and `tool_success_reward` |
    | ... that fails: no such tool, wrong arguments, an exception, the time limit | and `tool_execute_error_reward` |

    A failed call is an observation and a use. The rules of counting are those of gem-llm 0.1.0, with three differences.
    A call of a tool that does not exist, or with unreadable arguments, is a failed call, where upstream hands the text
    to the environment. Of two tools the one called first is used, where upstream goes by the order of the tools and
    tries the next one on an error. `use_tool` is said of tool turns, where upstream says it of all turns.

    | `info` key | type | meaning |
    | --- | --- | --- |
    | `tool_use_counter`, `tool_success_counter` | int | calls of this episode, and those that succeeded |
    | `prev_ep_tool_use_counter`, `prev_ep_tool_success_counter` | int | the last episode's, on a reset after one |
    | `use_tool`, `parsed_action` | bool, str | on a tool turn: see `gem_core.env` |
    | `prefix`, `suffix` | str | on a tool turn: what the environment showed last |
    | `tool_type` | str | on a tool turn: the function's name as it was called; empty where none could be read |
    | `tool_error` | str | on a tool turn that failed: why |
    | `tools` | list of dict | on a reset, in the native form: see `gem_core.env` |

    Args:
        env: the environment to wrap.
        tools: a `Toolbox`, which environments share; or tools, or ids of tools, for this environment alone. Copies of
            an environment (`spawn`, `get_state`) share its tools.
        form: `text`: the first observation says which tools there are and how to call them, in tags, blocks and
            `<tool_call>`. `native`: the chat template says it, as the model was trained for.
        tool_reward, tool_success_reward, tool_execute_error_reward: see above.
        max_tool_uses: calls of one episode; `None` means no limit.
        instruction: in place of the text about tools that the first observation gets; text form only.

    Raises:
        ToolError: see `Toolbox`; an unknown form, a limit that is no number of calls, or an instruction that nobody
            would see.
    """

    def __init__(
        self,
        env: Env,
        tools: Toolbox | Sequence[Tool | str],
        *,
        form: Form = "text",
        tool_reward: float = 0.0,
        tool_success_reward: float = 0.0,
        tool_execute_error_reward: float = 0.0,
        max_tool_uses: int | None = 10,
        instruction: str | None = None,
    ) -> None:
        super().__init__(env)
        if form not in get_args(Form):
            raise ToolError(f"form must be one of {[*get_args(Form)]}, not {form!r}")
        if form == "native" and instruction is not None:
            raise ToolError("an instruction is shown in the text form only; the chat template describes native tools")
        if max_tool_uses is not None and (type(max_tool_uses) is not int or max_tool_uses < 0):
            raise ToolError(f"max_tool_uses must be a number of calls or None, not {max_tool_uses!r}")
        rewards = (tool_reward, tool_success_reward, tool_execute_error_reward)
        if not all(isinstance(one, (int, float)) and math.isfinite(one) for one in rewards):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"rewards must be finite numbers, not {rewards}")
        _refuse_two(env)
        if len(env.agents) > 1:
            raise ToolError(
                f"{env!r} has the agents {', '.join(env.agents)}, and tools are for one. Use opponents={{...}} for all "
                "agents but one."
            )
        self.form: Form = form
        self.max_tool_uses = max_tool_uses
        self._session = ToolSession(tools if isinstance(tools, Toolbox) else Toolbox(tools))
        self._rewards = {False: tool_reward + tool_success_reward, True: tool_reward + tool_execute_error_reward}
        self._instruction = instruction
        self._uses = self._successes = 0
        self._previous: Info = {}
        self._frame: Info = {}

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, and say which tools there are.

        Raises:
            ToolError: a tool cannot be opened, or offers what cannot work.
        """
        observation, info = self.env.reset(seed=seed, **options)
        if self._session.begun:
            self._previous = {f"prev_ep_{name}": count for name, count in self._counters().items()}
        self._session.begin()
        self._uses = self._successes = 0
        self._frame = _frame(info)
        info = {**info, **self._counters(), **self._previous}
        if not self._may_call:
            return observation, info
        functions = self._session.functions
        if self.form == "native":
            return observation, {**info, "tools": [function.schema for function in functions]}
        instruction = self._instruction
        if instruction is None:
            instruction = instructions(functions, self.max_tool_uses)
        gap = "" if not observation or observation.endswith("\n") else "\n"
        return f"{observation}{gap}{instruction}", info

    def step(self, action: str) -> StepResult:
        """Play one turn: a tool's, or the environment's."""
        speech = speech_of(action)  # the wrapped environment may want the thoughts, too
        call = find_call(speech, self._session.functions, self.form) if self._may_call else None
        if call is not None:
            return self._use(call, speech)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._frame = _frame(info)
        return observation, reward, terminated, truncated, {**info, **self._counters()}

    def sample_random_action(self) -> str:
        """As often a tool's example, where there is one and a use is left, as an action of the environment."""
        examples = [(function, one) for function in self._session.functions for one in function.examples]
        if examples and self._may_call and self.rng.random() < 0.5:
            return written(*self.rng.choice(examples), self.form)
        return self.env.sample_random_action()

    @property
    def _may_call(self) -> bool:
        return self.max_tool_uses is None or self._uses < self.max_tool_uses

    def close(self) -> None:
        """Close the environment, and with the last one the tools."""
        try:
            self.env.close()
        finally:
            self._session.close()

    def get_state(self) -> Any:
        """See `Wrapper`. Raises `NotImplementedError` where a tool keeps state between calls."""
        self._check_copies()
        return super().get_state()

    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        """See `Wrapper`. Raises `NotImplementedError` as `get_state`, where the state is wanted."""
        if same_state:
            self._check_copies()
        return super().spawn(same_state=same_state, **kwargs)

    def _check_copies(self) -> None:
        if self._session.keeps_state:
            raise NotImplementedError("a tool of this environment keeps state between calls, which cannot be copied")

    def _use(self, call: ParsedCall, action: str) -> StepResult:
        result = self._session.call(call)
        self._uses += 1
        self._successes += not result.error
        observation = self._reply(call).replace("{}", result.text, 1)
        if self._uses == self.max_tool_uses:
            observation = f"{observation.rstrip()}\n\n{LAST_USE}"
        info: Info = {**result.info, **self._frame, **self._counters()}
        info |= {"use_tool": True, "tool_type": call.function, "parsed_action": action[: call.end]}
        info |= {"tool_error": result.text} if result.error else {}
        return observation, self._rewards[result.error], False, False, info

    def _reply(self, call: ParsedCall) -> str:
        replies = {function.name: function.reply for function in self._session.functions}
        return "{}" if self.form == "native" else replies.get(call.function, "{}")

    def _counters(self) -> Info:
        return {"tool_use_counter": self._uses, "tool_success_counter": self._successes}


def _refuse_two(env: Env) -> None:
    """Of two, the outer one would take the inner one's calls for mistakes."""
    while isinstance(env, Wrapper):
        if isinstance(env, ToolEnv):
            raise ToolError(f"{env!r} has tools already; give all tools to one ToolEnv")
        env = env.env


def _frame(info: Info) -> Info:
    return {key: info[key] for key in ("prefix", "suffix") if key in info}


def instructions(functions: Sequence[Function], max_uses: int | None) -> str:
    """Which tools there are and how to call them, for a model that knows nothing of this."""
    uses = "any number of times" if max_uses is None else f"at most {max_uses} times"
    how = f"You may use tools, {uses} in all. End your reply with one call, and its result is the next message."
    return "\n".join([how, *listed(functions)]) + "\n"


def listed(functions: Sequence[Function]) -> list[str]:
    """Lines that say how each function is called."""
    lines = [_described(function) for function in functions if function.tag]
    if others := [function for function in functions if not function.tag]:
        lines += ["A function is called by its name and its arguments as JSON, for example:"]
        lines += ['<tool_call>{"name": "...", "arguments": {"...": "..."}}</tool_call>', "The functions are:"]
        lines += [msgspec.json.encode(function.schema["function"]).decode() for function in others]
    return lines


def _described(function: Function) -> str:
    fence = f", or in a block ```{function.fence} ... ```" if function.fence else ""
    written = f"<{function.tag}>{function.argument}</{function.tag}>{fence}"
    return f"- {function.name}: {function.description} Write {written}."
