"""One environment's use of tools that others use as well."""

from __future__ import annotations

import contextlib
import secrets
import threading
import weakref
from typing import Any

from gem_core.errors import ClosedError, ToolError
from gem_core.tool import Function, ToolResult
from gem_core.tools._calls import ParsedCall
from gem_core.tools._toolbox import Toolbox


class ToolSession:
    """One environment's use of a toolbox. A copy of an environment gets a session of its own."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._user = secrets.token_hex(8)
        self._episode: str | None = None
        self._functions: list[Function] = []
        # An environment that nobody closes must not keep the tools open.
        weakref.finalize(self, _left, toolbox, self._user).atexit = False

    @property
    def begun(self) -> bool:
        """Whether an episode was started."""
        return self._episode is not None

    @property
    def keeps_state(self) -> bool:
        """See `Toolbox.keeps_state`."""
        return self._toolbox.keeps_state

    @property
    def functions(self) -> list[Function]:
        """What the tools offer; empty before the first episode."""
        return self._functions

    def begin(self) -> None:
        """Start an episode. Raises `ToolError` where a tool cannot be opened."""
        self._end_episode()
        self._functions = self._toolbox.attach(self._user)
        self._episode = secrets.token_hex(8)

    def call(self, call: ParsedCall) -> ToolResult:
        """Carry out a call. Raises `ClosedError` where no episode is under way."""
        if self._episode is None:
            raise ClosedError("a tool was called where no episode is under way; call reset() first")
        # A copy's first call, or a call in a fork, opens the tools. If that fails, the call's result says why.
        with contextlib.suppress(ToolError):
            self._toolbox.attach(self._user)
        return self._toolbox.call(call, self._episode)

    def close(self) -> None:
        """End the episode, and give up the toolbox; its last user's end closes the tools."""
        self._end_episode()
        self._toolbox.detach(self._user)

    def _end_episode(self) -> None:
        if self._episode is not None:
            self._toolbox.end_episode(self._episode)
            self._episode = None

    @classmethod
    def copied(cls, toolbox: Toolbox, functions: list[Function], begun: bool) -> ToolSession:
        """A session that continues where another one is."""
        session = cls(toolbox)
        session._functions = functions
        # What a tool keeps for an episode cannot be copied, so an episode with such a tool ends here.
        session._episode = secrets.token_hex(8) if begun and not toolbox.keeps_state else None
        return session

    def __deepcopy__(self, memo: dict[int, Any]) -> ToolSession:
        return self.copied(self._toolbox, self._functions, self.begun)

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (self._toolbox, self._functions, self.begun)


# A function, because cloudpickle sends a class's methods by value.
def _copied(*state: Any) -> ToolSession:
    return ToolSession.copied(*state)


def _left(toolbox: Toolbox, user: str) -> None:
    # The garbage collector runs this anywhere: on an event loop, or while a lock is held. So it must not wait.
    with contextlib.suppress(RuntimeError):  # at exit no thread can be started, and the toolbox closes its tools then
        threading.Thread(target=toolbox.detach, args=(user,), name="gem-tools-left", daemon=True).start()
