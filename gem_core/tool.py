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

    In text, a function with a `tag` takes one argument, between tags or in a fenced block. Any other function is called
    with JSON in a `<tool_call>` block. In native calls, every function takes its arguments as JSON.
    """

    name: str
    """The name that the model writes: letters, digits, `_`, `-` and `.`."""
    description: str
    """What the function does, for the model."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}}, hash=False)
    """JSON schema of the arguments, an object. Additional arguments are refused unless the schema allows them."""
    tag: str | None = None
    """The function is called as `<tag>argument</tag>`; the argument is the one required parameter."""
    fence: str | None = None
    """With a tag: the function is also called by a fenced block (three backticks) in this language."""
    examples: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    """Arguments of calls that succeed. Random play draws from them, so warm starts learn the format."""
    reply: str = "{}"
    """How a result is shown after a call in text; `{}` stands for the result. For native calls, the chat template
    frames the result."""

    @property
    def schema(self) -> dict[str, Any]:
        """The function in the form that chat templates and endpoints expect."""
        parameters = json.loads(json.dumps(self.parameters))
        described = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": described}

    @property
    def argument(self) -> str:
        """Name of the parameter that is written between the tags."""
        return self.parameters["required"][0]


@dataclass(frozen=True)
class ToolResult:
    """The result of a call."""

    text: str
    """The text for the model."""
    error: bool = False
    """The call failed: it earns no `tool_success_reward`."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Data for the turn's info, as JSON can store it."""


@dataclass(frozen=True)
class CallContext:
    """What a tool learns about a call besides its arguments."""

    timeout: float
    """Time limit of the call, in seconds."""
    episode: str
    """A name that all calls of one episode share, and no others; for tools that keep state between calls."""


ToolOutput: TypeAlias = "ToolResult | str"


class Tool(ABC):
    """Functions that share a resource: a sandbox, a server, a connection.

    One tool serves many environments at once, so its methods may be called from many threads. The constructor does not
    access the network and starts no process: a tool opens its resources on first use, and again on first use after
    `close`. A tool can be pickled before its first use. Methods may also be coroutine functions: all those of one
    toolbox run on one event loop, where connections can live.

    Example:
        >>> from gem_core.tools import Function, Tool
        >>> class Clock(Tool):
        ...     def functions(self):
        ...         return [Function("time", "The present time in UTC.")]
        ...     def call(self, function, arguments, context):
        ...         return time.strftime("%H:%M", time.gmtime())
    """

    spec: ToolSpec | None = None
    """The spec that `make_tool` built this tool from; `None` for a tool built by hand."""
    timeout: float = 30.0
    """Time limit of one call, in seconds; a positive number."""
    keeps_time: ClassVar[bool] = False
    """Whether calls end by themselves at `context.timeout`. Such calls run in the caller's thread. Calls of other tools
    run in a separate thread or task, and are abandoned at the limit."""

    instead_of: ClassVar[Mapping[str, str]] = {}
    """What the error about an unknown argument says, as `Env.instead_of`."""

    keeps_state: bool = False
    """Whether a call may depend on earlier calls of its episode, so that copies of an environment cannot continue
    separately."""

    @abstractmethod
    def functions(self) -> Sequence[Function] | Awaitable[Sequence[Function]]:
        """The functions of this tool; connections are opened here.

        Called once, at the first reset, and again after `close` and in a fork of the process. In a process vector each
        worker has its own copy of the tool, made by pickling.
        """

    @abstractmethod
    def call(
        self, function: str, arguments: dict[str, Any], context: CallContext
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call a function.

        Args:
            function: the name of one of `functions`.
            arguments: all required arguments, each of a type that the schema allows.
            context: the time limit, and the episode of the call.

        Calls from several environments arrive at the same time, each in its own thread. A coroutine runs on the event
        loop that all async tools of a toolbox share, and must not block it.

        Returns:
            A result, or its text. An exception becomes an observation and counts as an error. The message of a
            `ToolError` is written for the model, so its type is not shown. An `EnvError` means that the call is not
            to blame, for example where the machine is out of memory: the turn of the environment fails.
        """

    def end_episode(self, episode: str) -> Awaitable[None] | None:  # noqa: B027 - most tools keep no state
        """Drop the state of an episode. Also called for episodes without a tool call."""

    def close(self) -> Awaitable[None] | None:  # noqa: B027 - or resources
        """Release the resources of the tool. Safe to call twice, and before `functions`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.spec.id}' if self.spec else ''}>"
