"""Tools as many environments share them: opened once, called within limits, closed with the last one."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import secrets
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from gem_core.errors import EnvError, ToolError
from gem_core.tool import CallContext, Function, Tool, ToolOutput, ToolResult
from gem_core.tools._background import EventLoop, TimeLimit, within
from gem_core.tools._calls import ParsedCall
from gem_core.tools._offers import checked_offers
from gem_core.tools._results import checked, failed, said, shown
from gem_core.waiting import turn_at

_T = TypeVar("_T")
_OPEN_SECONDS, _CLOSE_SECONDS = 60.0, 10.0


class Toolbox:
    """Tools for all environments of a vector.

    Give one toolbox to all environments, for example by `partial(ToolEnv, tools=toolbox)` among the wrappers of
    `make_vec`: the environments of one process then share its connections and its limit. Nothing is opened before the
    first reset, and everything is closed with the last environment; a toolbox can be used again afterwards.

    In one process, a copy or an unpickled copy of a toolbox is the toolbox itself. Each further process has one
    toolbox of its own, however many environments carry a copy there.

    Args:
        tools: tools, or ids of tools.
        max_output: characters of a result that the model sees; the middle of a longer one is cut, and the cut marked.
        max_concurrent: calls at the same time, over all environments of a process; other calls wait, and their time
            limits start after the wait. A call that was given up at its time limit does not count any more. `None`
            means no limit.

    Raises:
        ToolError: no tool, something that is none, or a limit below 1.
        NotFoundError, MissingExtraError: an id that nobody offers, or that needs something that is not installed.
    """

    def __init__(
        self, tools: Sequence[Tool | str], *, max_output: int = 8192, max_concurrent: int | None = None
    ) -> None:
        if isinstance(tools, str | Tool) or not tools:
            raise ToolError(f"a toolbox needs a list of tools or of their ids, not {tools!r}")
        if type(max_output) is not int or max_output < 1:
            raise ToolError(f"max_output must be a whole number of characters, at least 1, not {max_output!r}")
        if max_concurrent is not None and (type(max_concurrent) is not int or max_concurrent < 1):
            raise ToolError(
                f"max_concurrent must be a whole number of calls, at least 1, or None, not {max_concurrent!r}"
            )
        self._start(secrets.token_hex(8), [_tool(one) for one in tools], max_output, max_concurrent)

    def _start(self, name: str, tools: list[Tool], max_output: int, max_concurrent: int | None) -> None:
        self._name, self._tools, self._max_output, self._max_concurrent = name, tools, max_output, max_concurrent
        self._turns = threading.BoundedSemaphore(max_concurrent) if max_concurrent else None
        # Reentrant: opening closes what it opened when a tool fails, and the last user's `detach` closes the tools.
        self._lock = threading.RLock()
        self._users: set[str] = set()
        self._opened: list[Tool] = []
        self._homes: dict[str, tuple[Tool, Function]] = {}
        self._loop: EventLoop | None = None
        _toolboxes[name] = self

    @property
    def keeps_state(self) -> bool:
        """Does a tool keep something from one call of an episode to the next?"""
        return any(tool.keeps_state for tool in self._tools)

    def attach(self, user: str) -> list[Function]:
        """Open the tools where they are not yet; returns what they offer.

        Raises:
            ToolError: a tool cannot be opened, or two functions have one name, tag or fence.
        """
        with self._lock:
            if not self._homes:
                self._open()
            self._users.add(user)
            return [function for _, function in self._homes.values()]

    def detach(self, user: str) -> None:
        """The last one closes the tools."""
        with self._lock:
            if user in self._users:
                self._users.remove(user)
                if not self._users:
                    self.close()

    def call(self, call: ParsedCall, episode: str) -> ToolResult:
        """Carry out a call; whatever happens is a result, but for an `EnvError`. Raises `EnvError`."""
        result = self._outcome(call, episode) if call.problem is None else failed(call.problem)
        return ToolResult(shown(result.text, self._max_output), result.error, result.info)

    def end_episode(self, episode: str) -> None:
        """Tell the tools. One that fails here has nothing to forget."""
        for tool in self._tools:
            if type(tool).end_episode is not Tool.end_episode:  # most have none, and threads cost
                self._quietly(partial(tool.end_episode, episode))

    def close(self) -> None:
        """Close the tools now, whoever uses them; the next reset or call opens them again. Safe to call twice."""
        if not self._lock.acquire(timeout=_OPEN_SECONDS):
            return  # a tool hangs in another thread while it is opened or closed; it ends with the process
        try:
            # The loop ends last, because a tool's `close` may be a coroutine. A tool's holder is removed after `close`:
            # before it, another toolbox could open the tool while this one still closes it.
            for tool in self._opened:
                self._quietly(tool.close)
                _holders.pop(id(tool), None)
            self._opened, self._homes = [], {}
            if self._loop is not None:
                self._loop.stop()
                self._loop = None
        finally:
            self._lock.release()

    # -- calls -------------------------------------------------------------------------------------------------------

    def _outcome(self, call: ParsedCall, episode: str) -> ToolResult:
        try:
            # In use first: while this call waits for its turn, the end of the last other user must not close the tools.
            with self._in_use(), turn_at(self._turns) if self._turns else contextlib.nullcontext():
                return checked(self._called(call, episode))
        except ToolError as error:
            return failed(str(error))
        except EnvError:  # no fault of the call: the environment's turn fails
            raise
        except KeyboardInterrupt:  # the caller's Ctrl-C: `background` turns a tool's own into a ToolError
            raise
        except BaseException as error:  # SystemExit too: a tool's failure is an observation and ends no training
            return failed(said(error))

    def _called(self, call: ParsedCall, episode: str) -> ToolOutput:
        if call.function not in self._homes:
            raise ToolError(f"the tool {call.function!r} is not offered any more")
        tool, _ = self._homes[call.function]
        # The clock starts here, after the wait for a turn. A thread's time and its coroutine's share one deadline.
        deadline = time.monotonic() + tool.timeout
        work = partial(tool.call, call.function, call.arguments, CallContext(tool.timeout, episode))
        here = tool.keeps_time or inspect.iscoroutinefunction(tool.call)
        try:
            output = work() if here else within(tool.timeout, work)
            return self._awaited(output, deadline - time.monotonic())
        except TimeLimit:
            raise ToolError(f"no answer within {tool.timeout:g} seconds.") from None

    @contextlib.contextmanager
    def _in_use(self) -> Generator[None]:
        # Each call is a user of its own: the last environment may be closed while one of its calls still runs, and the
        # tools must stay open until that call returns.
        user = secrets.token_hex(8)
        self.attach(user)
        try:
            yield
        finally:
            self.detach(user)

    def _awaited(self, value: _T | Awaitable[_T], seconds: float) -> _T:
        if not inspect.isawaitable(value):
            return cast("_T", value)
        with self._lock:  # two calls at once must not start two loops: connections belong to one
            self._loop = self._loop or EventLoop()
        return self._loop.run(value, max(seconds, 0.0))

    # -- opening and closing -----------------------------------------------------------------------------------------

    def _open(self) -> None:
        taken: set[tuple[str, str]] = set()
        try:
            for tool in self._tools:
                # Held and listed before it is asked: a tool that fails half open is closed as well.
                self._hold(tool)
                self._opened.append(tool)
                for function in self._offers(tool):
                    self._add(tool, function, taken)
        except BaseException:
            self.close()
            raise

    def _hold(self, tool: Tool) -> None:
        # The first of two toolboxes to close would close it for both, and connections are bound to one event loop.
        if type(tool).close is not Tool.close and _holders.setdefault(id(tool), self) is not self:
            raise ToolError(f"{tool!r} is open in another toolbox. Give all environments one Toolbox([...]).")

    def _offers(self, tool: Tool) -> list[Function]:
        try:
            return checked_offers(tool, self._awaited(within(_OPEN_SECONDS, tool.functions), _OPEN_SECONDS))
        except ToolError:
            raise
        except TimeLimit:
            raise ToolError(f"{tool!r} did not say within {_OPEN_SECONDS:g} seconds what it offers") from None
        except Exception as error:
            raise ToolError(f"{tool!r} could not be opened: {said(error)}") from error

    def _add(self, tool: Tool, function: Function, taken: set[tuple[str, str]]) -> None:
        marks = {"name": function.name, "tag": function.tag, "fence": function.fence}
        for what, value in marks.items():
            if value is not None:
                if (what, value) in taken:
                    raise ToolError(f"two functions have the {what} {value!r}, one of them of {tool!r}; rename one")
                taken.add((what, value))
        self._homes[function.name] = (tool, function)

    def _quietly(self, step: Callable[[], Awaitable[None] | None]) -> None:
        with contextlib.suppress(Exception):
            self._awaited(within(_CLOSE_SECONDS, step), _CLOSE_SECONDS)

    def forked(self) -> None:
        """In a fork: start anew, because open tools and locks that are held belong to the parent."""
        self._start(self._name, self._tools, self._max_output, self._max_concurrent)

    # -- copies ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Toolbox:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Toolbox:
        return self  # copies of an environment share it

    @classmethod
    def restored(cls, name: str, tools: list[Tool], max_output: int, max_concurrent: int | None) -> Toolbox:
        """The toolbox of that name when a copy is unpickled: this process's, or a new one where it has none."""
        known = _toolboxes.get(name)
        if known is None:
            known = cls.__new__(cls)
            known._start(name, tools, max_output, max_concurrent)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._name, self._tools, self._max_output, self._max_concurrent)

    def __repr__(self) -> str:
        return f"<Toolbox {self._tools}>"


_toolboxes: weakref.WeakValueDictionary[str, Toolbox] = weakref.WeakValueDictionary()
_holders: dict[int, Toolbox] = {}
"""By the `id` of an open tool that has something to close: where it is open."""


# A function, because cloudpickle sends a class's methods by value.
def _restored(*state: Any) -> Toolbox:
    return Toolbox.restored(*state)


def _close_all() -> None:
    for toolbox in list(_toolboxes.values()):
        toolbox.close()


def _forget_all() -> None:
    _holders.clear()
    for toolbox in list(_toolboxes.values()):
        toolbox.forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)


def _tool(one: Tool | str) -> Tool:
    from gem_core.registry import make_tool

    if isinstance(one, str):
        return make_tool(one)
    if not isinstance(one, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  # users err
        raise ToolError(f"{one!r} is no gem_core.tools.Tool. Wrap a Python function in FunctionTool.")
    return one
