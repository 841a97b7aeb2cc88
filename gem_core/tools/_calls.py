"""Finding the call in a response, in time linear in its length.

| form | a call |
| --- | --- |
| `text` | `<tag>argument</tag>` or a fenced block; for functions without a tag, as in the native form |
| `native` | a call in any dialect of `gem_core.responses.written_calls`; or JSON that names a function, at the start |
| | of the response or in a fenced block, or a list of such with arguments, or `[name(key=value)]` |

The call that begins first counts, and nothing after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeAlias, cast

import msgspec

from gem_core.errors import near_matches
from gem_core.responses import Block, WrittenCall, blocks, decoded, element, json_call, python_call, written_calls
from gem_core.tool import Function

Form: TypeAlias = Literal["text", "native"]

_JSON_BLOCKS = ("", "json", "tool_call", "tool_code")
_NAMED = re.compile(r'(?:\[\s*)?\{\s*"(?:name|tool_name)"\s*:\s*"([^"\\]*)"\s*,')
_OBJECT_LINE = re.compile(r'^[ \t]*(?=\{\s*")', re.MULTILINE)
_PYTHONIC = re.compile(r"\[\s*([A-Za-z_][\w.]*)\(")
_PARAMETER = re.compile(r'<[\w:｜]*parameter(?:=|\s+name=")([^<>"\n]*)"?[^<>\n]*>')
_PARAMETER_SHUT = re.compile(r"</[\w:｜]*parameter>")
_OPEN_ENDED = {"patternProperties", "$ref", "allOf", "anyOf", "oneOf"}
_MAX_COMPARED, _MAX_COMPARED_LENGTH = 100, 64
"""Names that a hint is looked for among, and characters of each."""
_PYTHON = {"True": True, "False": False, "None": None}
"""As Qwen3-Coder's template writes them."""
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True)
class ParsedCall:
    """A call as a response has it."""

    function: str
    """Its name; an empty string where none could be read."""
    end: int
    """Where it ends in the response."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    problem: str | None = None
    """Why it cannot be carried out."""
    start: int = 0
    """Where it begins in the response."""


def find_call(response: str, functions: Sequence[Function], form: Form, *, any_name: bool = False) -> ParsedCall | None:
    """The call that begins first, or `None`.

    Args:
        response: what the policy said.
        functions: what may be called.
        form: how calls are written.
        any_name: JSON without marks is a call where it has a name and arguments, though no function is named so, and
            also on lines of its own at the end of the response; for environments in which it can be nothing else.
    """
    found = [*_tagged(response, functions)] if form == "text" else []
    if form == "native" or any(function.tag is None for function in functions):
        known = {function.name: function for function in functions}
        text = response.encode(errors="replace").decode()  # half a character would reach no server
        calls = [*islice(written_calls(text), 1), *_bare_json(text, known, any_name)]
        found += [replace(_checked(call, known), start=call.start) for call in calls]
    return min(found, key=lambda call: call.start, default=None)


def written(function: Function, arguments: Mapping[str, Any], form: Form) -> str:
    """A call as a model would write it: what `find_call` finds."""
    if form == "text" and function.tag is not None:
        return f"<{function.tag}>{arguments[function.argument]}</{function.tag}>"
    call = msgspec.json.encode({"name": function.name, "arguments": arguments}).decode()
    return f"<tool_call>{call}</tool_call>"


def _tagged(response: str, functions: Sequence[Function]) -> Iterator[ParsedCall]:
    fenced = blocks(response) if any(function.fence for function in functions) else []
    for function in functions:
        if function.tag is not None:
            if found := element(response, function.tag):
                program = _unfenced(found.text.strip(), function.fence)
                yield ParsedCall(function.name, found.end, {function.argument: program}, start=found.start)
            if function.fence and (block := _fenced(fenced, function.fence)):
                program = block.text.strip()
                yield ParsedCall(function.name, block.end, {function.argument: program}, start=block.start)


def _unfenced(text: str, fence: str | None) -> str:
    """A program without the fence that is all around it."""
    found = blocks(text) if fence and text.startswith(("```", "~~~")) else []
    block = _fenced(found, fence or "") or next((one for one in found if not one.language), None)
    return block.text.strip() if block and (block.start, block.end) == (0, len(text)) else text


def _fenced(found: Iterable[Block], language: str) -> Block | None:
    """The first closed block in a language. Models also write the language into the line below the fence."""
    for block in found:
        first, _, rest = block.text.partition("\n")
        if block.closed and block.is_in(language):
            return block
        if block.closed and not block.language and first.strip() == language:
            return block._replace(text=rest)
    return None


def _bare_json(text: str, known: Mapping[str, Function], any_name: bool) -> Iterator[WrittenCall]:
    """JSON without marks. It may be no call, so it is one only where it names a function."""
    line = _OBJECT_LINE.search(text) if any_name else None
    for at in (0, line.start()) if line else (0,):
        if call := _as_call(text, at, known, any_name):
            is_last = not text[call.end :].strip()
            if is_last or at == 0:
                yield call._replace(end=len(text)) if is_last else call
    for block in blocks(text) if "```" in text or "~~~" in text else ():
        inside = f"[{block.text}]" if block.language == "tool_code" and block.text[:1] not in "[{" else block.text
        if block.language in _JSON_BLOCKS and (call := _as_call(inside, 0, known, any_name)):
            yield call._replace(start=block.start, end=block.end)


def _as_call(text: str, at: int, known: Mapping[str, Function], any_name: bool) -> WrittenCall | None:
    begin = len(text) - len(text[at:].lstrip())
    if (python := _PYTHONIC.match(text, begin)) and python[1] in known:
        return python_call(text, begin, begin)
    if not text.startswith(("{", "["), begin):
        return None
    call = json_call(text, begin, begin)
    if call.problem is not None:
        named = _NAMED.match(text, begin)
        return call._replace(name=named[1]) if named and named[1] in known else None
    has_arguments = call.arguments is not None
    if call.name in known:
        return call if has_arguments or text[begin] == "{" else None
    return call if has_arguments and any_name else None


def _read(text: str, types: set[str]) -> Any:
    """The value of a parameter that was written as text: JSON, unless a string is wanted."""
    if "string" in types and not ("null" in types and text in ("null", "None")):
        return text
    try:
        return _PYTHON[text] if text in _PYTHON else decoded(text)
    except ValueError:
        return text


def _types(schema: Any) -> set[str]:
    """The JSON types that a schema names, as far as can be seen at once."""
    if not isinstance(schema, dict):  # true, for anything
        return set()
    fields = cast("dict[str, Any]", schema)
    types = {*_named_types(schema)}
    types |= {"string" for value in _listed(fields, "enum") if isinstance(value, str)}
    return types.union(*(_types(one) for key in ("anyOf", "oneOf") for one in _listed(fields, key)))


def _listed(fields: Mapping[str, Any], key: str) -> list[Any]:
    value = fields.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def _named_types(schema: Any) -> list[str]:
    """What stands under `type`."""
    named: Any = cast("dict[str, Any]", schema).get("type") if isinstance(schema, dict) else None
    listed = cast("list[Any]", named) if isinstance(named, list) else [named]
    return [one for one in listed if isinstance(one, str)]


def _checked(call: WrittenCall, known: Mapping[str, Function]) -> ParsedCall:
    """A call that can be carried out, or why it cannot."""
    name, arguments, end = call.name, call.arguments, call.end
    if call.problem is not None:
        return ParsedCall(name if name in known else "", end, problem=call.problem)
    if name not in known:
        hint = _hint(name, known)
        return ParsedCall(name, end, problem=f"no tool {name[:80]!r}.{hint} There is: {', '.join(known)}")
    if isinstance(arguments, str):  # some models write the JSON of the arguments as text
        try:
            arguments = decoded(arguments) if arguments.strip() else None
        except ValueError as error:
            return ParsedCall(name, end, problem=f"the arguments are not valid JSON: {error}")
    if not isinstance(arguments, dict | None):
        return ParsedCall(name, end, problem="the arguments must be an object")
    schema = known[name].parameters
    properties: Mapping[str, Any] = schema.get("properties", {})
    given = cast("dict[str, Any]", arguments or {})
    types = {key: _types(properties.get(key)) for key in given}
    if call.as_text:
        if open_in := next((key for key, text in given.items() if _opens_another(text, properties)), None):
            return ParsedCall(name, end, problem=f"the parameter {open_in[:80]!r} is not closed before the next one")
        given = {key: _read(text, types[key]) for key, text in given.items()}
    given = {key: _whole(value, types[key]) for key, value in given.items()}
    empty = {key for key, value in given.items() if _is_left_out(value, types[key])}
    given = {key: value for key, value in given.items() if key not in empty or key in schema.get("required", ())}
    return ParsedCall(name, end, given, argument_problem(schema, given))


def _opens_another(text: str, properties: Mapping[str, Any]) -> bool:
    """Whether a parameter's text holds the beginning of another one, as when its own closing is missing."""
    found = [one for one in _PARAMETER.finditer(text) if one[1] in properties]
    return len(found) > len(_PARAMETER_SHUT.findall(text))


def _whole(value: Any, types: set[str]) -> Any:
    """A whole number as an integer, where that is wanted: in JSON Schema, 3.0 is one."""
    wanted = isinstance(value, float) and "integer" in types and "number" not in types
    return int(value) if wanted and value.is_integer() else value


def _is_left_out(value: Any, types: set[str]) -> bool:
    """Whether a model left an argument empty that is of another type."""
    return bool(types) and ((value is None and "null" not in types) or (value == "" and "string" not in types))


def _hint(name: str, known: Iterable[str]) -> str:
    """What may have been meant. Ten thousand long names, as a server may have, would take a minute to compare."""
    return near_matches(
        name[:_MAX_COMPARED_LENGTH], [one[:_MAX_COMPARED_LENGTH] for one in islice(known, _MAX_COMPARED)]
    )


def argument_problem(schema: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """What is wrong with arguments at first sight; what only the tool can know is left to it."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    takes = f"It takes: {', '.join(properties) or 'none'}"
    if missing := [name for name in schema.get("required", ()) if name not in given]:
        return f"the argument {missing[0]!r} is missing. {takes}"
    unknown = [name for name in given if name not in properties]
    # A schema that says nothing of other arguments would allow them, but what a model made up does not help it.
    if unknown and not schema.get("additionalProperties") and _OPEN_ENDED.isdisjoint(schema):
        return f"no argument {unknown[0][:80]!r}.{_hint(unknown[0], properties)} {takes}"
    for name, value in given.items():
        wanted = _named_types(properties.get(name))
        if wanted and not any(_is_of(value, one) for one in wanted):
            return f"the argument {name!r} must be of type {' or '.join(wanted)}"
    return None


def _is_of(value: Any, json_type: str) -> bool:
    types = _JSON_TYPES.get(json_type)
    return types is None or (isinstance(value, types) and (json_type == "boolean" or not isinstance(value, bool)))
