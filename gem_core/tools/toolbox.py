"""Tools as many environments share them: opened once, called within limits, closed with the last one."""

from __future__ import annotations

import contextlib
import inspect
import secrets
import threading
import time
import weakref
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from gem_core.errors import ToolError
from gem_core.tools.background import EventLoop, TimeLimit, within
from gem_core.tools.calls import Call
from gem_core.tools.slots import Slots
from gem_core.tools.tool import CallContext, Function, Tool, ToolOutput, ToolResult

_T = TypeVar("_T")
_OPEN_SECONDS, _CLOSE_SECONDS = 60.0, 10.0


class Toolbox:
    """Tools for all environments of a vector.

    Give one toolbox to all environments, for example by `partial(ToolEnv, tools=toolbox)` among the wrappers of
    `make_vec`: in one process they then share its connections, and on one machine its limit. Nothing is opened before
    the first reset, and everything is closed with the last environment; a toolbox can be used again afterwards.

    Args:
        tools: tools, or ids of tools.
        max_output: characters of a result that the model sees; the middle of a longer one is cut, and the cut marked.
        max_concurrent: calls at the same time, over all environments and processes of this machine; others wait, and
            their time does not run. `None` means no limit.

    Raises:
        ToolError: no tool, something that is none, or a limit below 1.
        NotFoundError, MissingExtraError: an id that nobody offers, or that needs something that is not installed.
    """

    def __init__(
        self, tools: Sequence[Tool | str], *, max_output: int = 8192, max_concurrent: int | None = None
    ) -> None:
        if isinstance(tools, str) or not tools:
            raise ToolError(f"a toolbox needs a list of tools or of their ids, not {tools!r}")
        if type(max_output) is not int or max_output < 1:
            raise ToolError(f"max_output must be a whole number of characters, at least 1, not {max_output!r}")
        self._tools = [_tool(one) for one in tools]
        self._max_output = max_output
        self._slots = None if max_concurrent is None else Slots(max_concurrent)
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._users: set[str] = set()
        self._homes: dict[str, tuple[Tool, Function]] = {}
        self._loop: EventLoop | None = None

    @property
    def keeps_state(self) -> bool:
        """Does a tool keep something from one call of an episode to the next?"""
        return any(tool.keeps_state for tool in self._tools)

    def session(self) -> ToolSession:
        """The way of one environment to these tools."""
        return ToolSession(self)

    def attach(self, user: str) -> list[Function]:
        """Open the tools where they are not yet; returns what they offer.

        Raises:
            ToolError: a tool cannot be opened, or two functions have one name or tag.
        """
        with self._lock:
            if not self._homes:
                self._homes = self._opened()
            self._users.add(user)
            return [function for _, function in self._homes.values()]

    def detach(self, user: str) -> None:
        """The last one closes the tools."""
        with self._lock:
            if user in self._users:
                self._users.remove(user)
                if not self._users:
                    self._close()

    def call(self, call: Call, episode: str) -> ToolResult:
        """Carry out a call; whatever happens is a result."""
        if call.problem is not None:
            return ToolResult(f"Error: {call.problem}", error=True)
        with self._slots.taken() if self._slots else contextlib.nullcontext():
            result = self._outcome(call, episode)
        return ToolResult(_shown(result.text, self._max_output), result.error, result.info)

    def end_episode(self, episode: str) -> None:
        """Tell the tools. One that fails here has nothing to forget."""
        for tool in self._tools:
            with contextlib.suppress(Exception):
                self._finish(tool.end_episode(episode), _CLOSE_SECONDS)

    def _outcome(self, call: Call, episode: str) -> ToolResult:
        tool, _ = self._homes[call.function]
        context = CallContext(tool.timeout, episode)
        try:
            output = self._called(tool, call, context)
        except TimeLimit:
            return ToolResult(f"Error: no answer within {tool.timeout:g} seconds.", error=True)
        except ToolError as error:
            return ToolResult(f"Error: {error}", error=True)
        except (Exception, SystemExit) as error:
            return ToolResult(f"Error: {type(error).__name__}: {error}", error=True)
        return output if isinstance(output, ToolResult) else ToolResult(str(output))

    def _called(self, tool: Tool, call: Call, context: CallContext) -> ToolOutput:
        deadline = time.monotonic() + tool.timeout
        work = partial(tool.call, call.function, call.arguments, context)
        here = tool.keeps_time or inspect.iscoroutinefunction(tool.call)
        output = work() if here else within(tool.timeout, work)
        return self._finish(output, deadline - time.monotonic())

    def _finish(self, value: _T | Awaitable[_T], seconds: float) -> _T:
        if not inspect.isawaitable(value):
            return cast("_T", value)
        with self._lock:
            self._loop = self._loop or EventLoop()
        return self._loop.run(_awaited(value), max(seconds, 0.0))

    def _opened(self) -> dict[str, tuple[Tool, Function]]:
        homes: dict[str, tuple[Tool, Function]] = {}
        tags: set[str] = set()
        for tool in self._tools:
            for function in self._functions(tool):
                if function.name in homes or function.tag in tags:
                    raise ToolError(
                        f"two tools offer {function.name!r}"
                        + (f" or the tag <{function.tag}>" if function.tag else "")
                        + "; give one of them another name"
                    )
                tags |= {function.tag} if function.tag else set()
                homes[function.name] = (tool, function)
        return homes

    def _functions(self, tool: Tool) -> Sequence[Function]:
        try:
            return self._finish(tool.functions(), _OPEN_SECONDS)
        except TimeLimit:
            raise ToolError(f"{tool!r} did not say within {_OPEN_SECONDS:g} seconds what it offers") from None

    def _close(self) -> None:
        for tool in self._tools:
            with contextlib.suppress(Exception):
                self._finish(tool.close(), _CLOSE_SECONDS)
        self._homes = {}
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Toolbox:
        return self  # copies of an environment share it

    def __getstate__(self) -> dict[str, Any]:
        return {"tools": self._tools, "max_output": self._max_output, "slots": self._slots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._tools, self._max_output, self._slots = state["tools"], state["max_output"], state["slots"]
        self._start()

    def __repr__(self) -> str:
        return f"<Toolbox {self._tools}>"


class ToolSession:
    """One environment's way to its tools. A copy of an environment gets a way of its own."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._user = secrets.token_hex(8)
        self._episode: str | None = None
        self._functions: list[Function] = []
        # An environment that nobody closes must not keep the tools open.
        weakref.finalize(self, toolbox.detach, self._user)

    @property
    def begun(self) -> bool:
        """Was there an episode?"""
        return self._episode is not None

    @property
    def keeps_state(self) -> bool:
        """See `Toolbox.keeps_state`."""
        return self._toolbox.keeps_state

    @property
    def functions(self) -> list[Function]:
        """What the tools offer."""
        return self._functions

    def begin(self) -> None:
        """Start an episode. Raises `ToolError` where a tool cannot be opened."""
        self._end_episode()
        self._functions = self._toolbox.attach(self._user)
        self._episode = secrets.token_hex(8)

    def call(self, call: Call) -> ToolResult:
        """Carry out a call."""
        assert self._episode is not None, "call() before begin()"
        return self._toolbox.call(call, self._episode)

    def close(self) -> None:
        """The environment is closed."""
        self._end_episode()
        self._toolbox.detach(self._user)

    def _end_episode(self) -> None:
        if self._episode is not None:
            self._toolbox.end_episode(self._episode)
            self._episode = None

    def __deepcopy__(self, memo: dict[int, Any]) -> ToolSession:
        copy = ToolSession(self._toolbox)
        if self._episode is not None:
            copy.begin()
        return copy


async def _awaited(value: Awaitable[_T]) -> _T:
    return await value


def _tool(one: Tool | str) -> Tool:
    from gem_core.registry import make_tool

    if isinstance(one, str):
        return make_tool(one)
    if not isinstance(one, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  # users err
        raise ToolError(f"{one!r} is no gem_core.tools.Tool. Wrap a Python function in FunctionTool.")
    return one


def _shown(text: str, most: int) -> str:
    """Text that any tokenizer takes, with a long middle left out."""
    if len(text) > most:
        head, tail = text[: most - most // 2], text[len(text) - most // 2 :]
        text = f"{head}\n[... {len(text) - most:,} characters left out ...]\n{tail}"
    return text.encode("utf-8", "replace").decode("utf-8")
