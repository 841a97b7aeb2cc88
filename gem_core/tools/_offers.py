"""What a tool says it offers, checked before a model is told of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gem_core.errors import ToolError
from gem_core.tool import Function, Tool
from gem_core.tools._calls import argument_problem

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def checked_offers(tool: Tool, offered: Any) -> list[Function]:
    """The functions of a tool.

    Raises:
        ToolError: something about them, or the tool's time limit, cannot work; the message names the tool.
    """
    if not isinstance(offered, Sequence) or not all(
        isinstance(one, Function) for one in cast("Sequence[Any]", offered)
    ):
        raise ToolError(f"{tool!r}: functions() gave {offered!r:.200}, not a list of gem_core.tools.Function")
    functions = [*cast("Sequence[Function]", offered)]
    problems = [f"{one.name!r}: {problem}" for one in functions for problem in _problems(one)]
    if not functions:
        problems = ["it offers no function"]
    if isinstance(tool.timeout, bool) or not isinstance(tool.timeout, int | float) or not 0 < tool.timeout < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
        problems.append(f"timeout must be a positive number of seconds, not {tool.timeout!r}")
    if problems:
        raise ToolError(f"{tool!r}: {'; '.join(problems)}")
    return functions


def _problems(function: Function) -> Iterator[str]:
    if not isinstance(function.name, str) or not _NAME.fullmatch(function.name):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield "a name has letters, digits, '_', '-' and '.'"
    if (problem := _schema_problem(function.parameters)) is not None:
        yield problem
        return
    if "{}" not in function.reply:
        yield "reply has no {}, so the result would not be shown"
    if function.tag is not None:
        yield from _tag_problems(function, function.tag)
    elif function.fence is not None:
        yield "a fence needs a tag as well"
    for example in function.examples:
        if problem := argument_problem(function.parameters, example):
            yield f"the example {dict(example)}: {problem}"


def _schema_problem(schema: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return f"parameters must be a JSON schema, not {schema!r:.80}"
    fields = cast("Mapping[str, Any]", schema)
    required = fields.get("required", [])
    if fields.get("type", "object") != "object" or not isinstance(fields.get("properties", {}), Mapping):
        return "parameters must be the JSON schema of an object, with its properties"
    if not isinstance(required, list | tuple) or not all(isinstance(one, str) for one in cast("list[Any]", required)):
        return f"'required' must be a list of names, not {required!r:.80}"
    try:
        Function("", "", fields).schema  # noqa: B018
    except (TypeError, ValueError, RecursionError) as error:
        return f"parameters cannot be written as JSON: {error}"
    return None


def _tag_problems(function: Function, tag: str) -> Iterator[str]:
    if not _TAG.fullmatch(tag) or tag == "tool_call":
        yield f"{tag!r} cannot be a tag"
    if function.fence is not None and not _TAG.fullmatch(function.fence):
        yield f"{function.fence!r} cannot be the language of a fence"
    required = function.parameters.get("required", [])
    schema = function.parameters.get("properties", {}).get(required[0], {}) if len(required) == 1 else None
    if not isinstance(schema, Mapping) or cast("Mapping[str, Any]", schema).get("type", "string") != "string":
        yield "a function with a tag has one required parameter, a string"
