"""A Python function as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_type_hints

import msgspec

from gem_core.errors import ToolError
from gem_core.tool import CallContext, Function, Tool, ToolOutput, ToolResult


class FunctionTool(Tool):
    """Functions with type hints and docstrings, of which schema and description are made.

    Arguments are converted to the hinted types before the call. A function may be a coroutine function; whatever it
    returns is shown as `str(...)`, unless it is a `ToolResult`.

    Args:
        functions: named functions; for environments in processes, ones that can be pickled.
        timeout: seconds that one call may take.

    Example:
        >>> from gem_core.tools import FunctionTool
        >>> def add(a: int, b: int) -> int:
        ...     "The sum of two numbers."
        ...     return a + b
        >>> tool = FunctionTool(add)

    Raises:
        ToolError: no function, two of one name, one without a name or docstring, or a parameter without a type hint
            that JSON can carry.
    """

    def __init__(self, *functions: Callable[..., Any], timeout: float = 30.0) -> None:
        self.timeout = timeout
        self._callables = {_name(function): function for function in functions}
        if len(self._callables) != len(functions) or not functions:
            raise ToolError(f"FunctionTool needs functions of different names, not {[*map(_name, functions)]}")
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
        return {name: value for name, value in vars(self).items() if name != "_arguments"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # but for the records, which are classes made on the spot
        self._arguments = {name: _arguments(function) for name, function in self._callables.items()}


async def _later(value: Awaitable[Any]) -> ToolOutput:
    return _output(await value)


def _output(value: Any) -> ToolOutput:
    return value if isinstance(value, ToolResult) else str(value)


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "<nameless>")
    if not name.isidentifier():
        raise ToolError(f"{function!r} has no name to call it by. Write it as a function with `def`.")
    return name


def _arguments(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """The parameters of a function as a record."""
    name = function.__name__
    if not inspect.getdoc(function):
        raise ToolError(f"{name}() has no docstring, and the model needs to know what it does. Write one.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ToolError(f"{name}(): its type hints cannot be read: {error}. Import what they name.") from error
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if parameter.name not in hints or not named:
            raise ToolError(f"{name}(): give the parameter {str(parameter)!r} a name and a type hint of its own")
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((parameter.name, hints[parameter.name], *default))
    try:
        record = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
        _schema(record)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name}(): JSON cannot carry a parameter's type or default: {error}") from error
    return record


def _schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    (reference,), shared = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    schema = shared.pop(reference["$ref"].rpartition("/")[2])
    schema.pop("title", None)
    return {**schema, "$defs": shared} if shared else schema
