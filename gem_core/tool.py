"""The tool contract, whole, in one file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from gem_core.specs import ToolSpec


@dataclass(frozen=True)
class Function:
    """Something that a model may call.

    In text, a function with a `tag` takes one argument, between tags or in a fenced block; any other function is called
    by JSON in a `<tool_call>` block. As a native call every function takes its arguments as JSON.
    """

    name: str
    """As the model writes it: letters, digits, `_`, `-` and `.`."""
    description: str
    """What it does, for the model."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}}, hash=False)
    """JSON schema of its arguments, an object. Where it says nothing of further arguments, none are allowed."""
    tag: str | None = None
    """Called as `<tag>argument</tag>`; the argument is the one required parameter."""
    fence: str | None = None
    """With a tag: also called as a block between three backticks with this language."""
    examples: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    """Arguments of calls that succeed: random play draws from them, and so warm starts learn the form."""
    reply: str = "{}"
    """How a result is shown to a model that called it in text; `{}` stands for the result. A native call's result has
    the chat template's own frame."""

    @property
    def schema(self) -> dict[str, Any]:
        """As chat templates and endpoints take it."""
        parameters = json.loads(json.dumps(self.parameters))
        described = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": described}

    @property
    def argument(self) -> str:
        """Name of the parameter that stands between tags."""
        return self.parameters["required"][0]


@dataclass(frozen=True)
class ToolResult:
    """What came of a call."""

    text: str
    """For the model."""
    error: bool = False
    """The call failed: it earns no `tool_success_reward`."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """For the turn's info: what JSON can carry."""


@dataclass(frozen=True)
class CallContext:
    """What a tool is told about a call beside its arguments."""

    timeout: float
    """Seconds that the call may take."""
    episode: str
    """The same for all calls of one episode and for no other, for tools that keep state between calls."""


ToolOutput: TypeAlias = "ToolResult | str"


class Tool(ABC):
    """Functions that share what they need: a sandbox, a server, a connection.

    One tool serves many environments at once, so its methods may be called from many threads. Constructors do no
    network access and start no process; a tool opens what it needs on first use, and again when it is used after
    `close`. It can be pickled before its first use. Methods may also be coroutine functions: all those of one toolbox
    run on one event loop, where connections can live.

    Example:
        >>> from gem_core.tools import Function, Tool
        >>> class Clock(Tool):
        ...     def functions(self):
        ...         return [Function("time", "The present time in UTC.")]
        ...     def call(self, function, arguments, context):
        ...         return time.strftime("%H:%M", time.gmtime())
    """

    spec: ToolSpec | None = None
    """What `make_tool` built this tool from; `None` for one built by hand."""
    timeout: float = 30.0
    """Seconds that one call may take; a positive number."""
    keeps_time: ClassVar[bool] = False
    """A call ends by itself once `context.timeout` is over. It then runs in the caller's thread; a call of any other
    tool has a thread or task of its own, and is given up at the limit."""

    keeps_state: bool = False
    """A call may depend on earlier ones of its episode, so that copies of an environment cannot go on separately."""

    @abstractmethod
    def functions(self) -> Sequence[Function] | Awaitable[Sequence[Function]]:
        """What it offers; here connections are made.

        Asked for once, at the first reset, and again after `close` and in a fork of the process. In a process vector
        each worker has a copy of the tool, made by pickling.
        """

    @abstractmethod
    def call(
        self, function: str, arguments: dict[str, Any], context: CallContext
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call a function.

        Args:
            function: the name of one of `functions`.
            arguments: the required ones are there, and all are of the types that the schema names.
            context: the time limit, and whose call it is.

        Calls of several environments come at the same time, in threads of their own; a coroutine runs on the event
        loop that all async tools of a toolbox share, and must not block it.

        Returns:
            A result, or its text. An exception becomes an observation that says so, and counts as an error; a
            `ToolError` is for the model to read and shown without its type.
        """

    def end_episode(self, episode: str) -> Awaitable[None] | None:  # noqa: B027 - most tools keep nothing
        """Forget what was kept for an episode. Also said of episodes without a call."""

    def close(self) -> Awaitable[None] | None:  # noqa: B027 - nor hold anything
        """Give back what the tool holds. Safe to call twice, and before `functions`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.spec.id}' if self.spec else ''}>"
