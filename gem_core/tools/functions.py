"""A Python function as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_type_hints

import msgspec

from gem_core.errors import ToolError
from gem_core.tools.tool import CallContext, Function, Tool, ToolOutput, ToolResult


class FunctionTool(Tool):
    """Functions with type hints and docstrings, of which schema and description are made.

    Arguments are converted to the hinted types before the call. A function may be a coroutine function; whatever it
    returns is shown as `str(...)`, unless it is a `ToolResult`.

    Args:
        functions: plain functions, not methods of something that cannot be pickled.
        timeout: seconds that one call may take.

    Example:
        >>> from gem_core.tools import FunctionTool
        >>> def add(a: int, b: int) -> int:
        ...     "The sum of two numbers."
        ...     return a + b
        >>> tool = FunctionTool(add)

    Raises:
        ToolError: a function without a docstring, or a parameter without a type hint that JSON can carry.
    """

    def __init__(self, *functions: Callable[..., Any], timeout: float = 30.0) -> None:
        self.timeout = timeout
        self._callables = {function.__name__: function for function in functions}
        self._arguments = {name: _arguments(function) for name, function in self._callables.items()}

    def functions(self) -> Sequence[Function]:
        """One for each of them."""
        return [
            Function(name, inspect.getdoc(function) or "", _schema(self._arguments[name]))
            for name, function in self._callables.items()
        ]

    def call(
        self, function: str, arguments: dict[str, Any], context: CallContext
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call it with the arguments converted."""
        converted = msgspec.convert(arguments, self._arguments[function])
        value = self._callables[function](**msgspec.structs.asdict(converted))
        return _later(value) if inspect.isawaitable(value) else _output(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"functions": [*self._callables.values()], "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FunctionTool.__init__(self, *state["functions"], timeout=state["timeout"])


async def _later(value: Awaitable[Any]) -> ToolOutput:
    return _output(await value)


def _output(value: Any) -> ToolOutput:
    return value if isinstance(value, ToolResult) else str(value)


def _arguments(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """The parameters of a function as a record."""
    name = function.__name__
    if not inspect.getdoc(function):
        raise ToolError(f"{name}() has no docstring, and the model needs to know what it does. Write one.")
    hints = get_type_hints(function)
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolError(f"{name}(): give the parameter {str(parameter)!r} a name and a type hint of its own")
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((parameter.name, hints[parameter.name], *default))
    try:
        record = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
        _schema(record)
    except TypeError as error:
        raise ToolError(f"{name}(): a parameter's type is none that JSON can carry: {error}") from error
    return record


def _schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    (reference,), shared = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    schema = shared.pop(reference["$ref"].rpartition("/")[2])
    schema.pop("title", None)
    return {**schema, "$defs": shared} if shared else schema
