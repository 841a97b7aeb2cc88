"""Finding the call in a response, in time linear in its length.

| form | a call |
| --- | --- |
| `text` | `<tag>argument</tag>`, a fenced block, or `<tool_call>...</tool_call>` for functions without a tag |
| `native` | `<tool_call>...</tool_call>`, or a response that is nothing but JSON |

What may stand in a `<tool_call>` block is what models were trained to write there: JSON with `name` and `arguments`
(Hermes, Qwen; Llama 3 says `parameters`), `<function=name>` with `<parameter=key>` (Qwen3-Coder), or `<tool_name>` and
`<arguments>` (upstream's MCP tool).

The call that ends first counts, and nothing after it. A call lasts from its first opening to the first closing after
that, wherever they stand: in a string of the code, in the model's reasoning. What is never closed is no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias, cast

import msgspec

from gem_core.errors import near_matches
from gem_core.responses import Block, blocks
from gem_core.tool import Function

Form: TypeAlias = Literal["text", "native"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FUNCTION = re.compile(r"\s*<function=([^>\n]+)>")
_ELEMENTS = re.compile(r"\s*<tool_name>")
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


def find_call(response: str, functions: Sequence[Function], form: Form) -> ParsedCall | None:
    """The call that ends first, or `None`.

    Args:
        response: what the policy wrote.
        functions: what may be called.
        form: how calls are written.
    """
    known = {function.name: function for function in functions}
    found = [*_tagged(response, functions)] if form == "text" else []
    if form == "native" or any(function.tag is None for function in functions):
        found += _block(response, known)
    if form == "native" and not found:
        found += _bare_json(response, known)
    return min(found, key=lambda call: call.end, default=None)


def written(function: Function, arguments: Mapping[str, Any], form: Form) -> str:
    """A call as a model would write it: what `find_call` finds."""
    if form == "text" and function.tag is not None:
        return f"<{function.tag}>{arguments[function.argument]}</{function.tag}>"
    call = msgspec.json.encode({"name": function.name, "arguments": arguments}).decode()
    return f"{_OPEN}{call}{_CLOSE}"


def _tagged(response: str, functions: Sequence[Function]) -> Iterator[ParsedCall]:
    for function in functions:
        if function.tag is not None:
            if span := _between(response, f"<{function.tag}>", f"</{function.tag}>"):
                yield ParsedCall(function.name, span[2], {function.argument: response[slice(*span[:2])].strip()})
            if function.fence and (block := _fenced(response, function.fence)):
                yield ParsedCall(function.name, block.end, {function.argument: block.text.strip()})


def _between(text: str, opening: str, closing: str) -> tuple[int, int, int] | None:
    """Where the first content starts and stops, and where its closing ends."""
    at = text.find(opening)
    stop = text.find(closing, at + len(opening)) if at >= 0 else -1
    return None if stop < 0 else (at + len(opening), stop, stop + len(closing))


def _fenced(text: str, language: str) -> Block | None:
    """The first closed block in a language. Models also write the language into the line below the fence."""
    for block in blocks(text):
        first, _, rest = block.text.partition("\n")
        if block.closed and block.is_in(language):
            return block
        if block.closed and not block.language and first.strip() == language:
            return block._replace(text=rest)
    return None


def _block(response: str, known: Mapping[str, Function]) -> Iterator[ParsedCall]:
    if span := _between(response, _OPEN, _CLOSE):
        start, stop, end = span
        body = response[start:stop].encode(errors="replace").decode()  # half a character would reach no server
        if _ELEMENTS.match(body):
            yield _of_elements(body, end, known)
        elif named := _FUNCTION.match(body):
            yield _of_parameters(named[1].strip(), body[named.end() :], end, known)
        else:
            yield _of_json(body, end, known)


def _bare_json(response: str, known: Mapping[str, Function]) -> Iterator[ParsedCall]:
    # A response may be JSON without being a call, so anything doubtful is left to the environment.
    if response.lstrip().startswith("{"):
        call = _of_json(response, len(response), known)
        if call.function in known:
            yield call


def _of_json(text: str, end: int, known: Mapping[str, Function]) -> ParsedCall:
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")  # many models fence it
    try:
        call = _decoded(bare)
    except ValueError as error:
        return ParsedCall("", end, problem=f"the call is not valid JSON: {error}")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):  # pyright: ignore[reportUnknownMemberType]
        return ParsedCall("", end, problem='a call is an object with "name" and "arguments"')
    fields = cast("dict[str, Any]", call)
    return _checked(fields["name"], fields.get("arguments", fields.get("parameters")), end, known)


def _of_elements(body: str, end: int, known: Mapping[str, Function]) -> ParsedCall:
    name = _between(body, "<tool_name>", "</tool_name>")
    if name is None:
        return ParsedCall("", end, problem="<tool_name> is not closed")
    rest = body[name[2] :]
    arguments = _between(rest, "<arguments>", "</arguments>")
    if arguments is None and rest.strip():
        return ParsedCall("", end, problem="after <tool_name> comes <arguments>{...}</arguments>")
    text = rest[arguments[0] : arguments[1]] if arguments else "{}"
    return _checked(body[name[0] : name[1]].strip(), text, end, known)


def _of_parameters(name: str, body: str, end: int, known: Mapping[str, Function]) -> ParsedCall:
    properties: Mapping[str, Any] = known[name].parameters.get("properties", {}) if name in known else {}
    texts: dict[str, str] = {}
    for piece in body.split("<parameter=")[1:]:
        key, _, rest = piece.partition(">")
        value, closing, _ = rest.partition("</parameter>")
        key = key.strip()
        if not closing:
            return ParsedCall(name, end, problem=f"<parameter={key:.80}> is not closed by </parameter>")
        texts[key] = value.removeprefix("\n").removesuffix("\n")
    # Only now, so that a parameter that is written a thousand times has its schema looked at once.
    arguments = {key: _read(text, properties.get(key)) for key, text in texts.items()}
    return _checked(name, arguments, end, known)


def _read(text: str, schema: Any) -> Any:
    """The value of a parameter that was written as text: JSON, unless a string is wanted."""
    types = _types(schema)
    if "string" in types and not ("null" in types and text in ("null", "None")):
        return text
    try:
        return _PYTHON[text] if text in _PYTHON else _decoded(text)
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


def _decoded(text: str) -> Any:
    """JSON. Raises `ValueError`, also where it is nested too deeply."""
    try:
        return msgspec.json.decode(text.strip().encode(errors="replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checked(name: str, arguments: Any, end: int, known: Mapping[str, Function]) -> ParsedCall:
    if name not in known:
        hint = _hint(name, known)
        return ParsedCall(name, end, problem=f"no tool {name[:80]!r}.{hint} There is: {', '.join(known)}")
    if isinstance(arguments, str):  # some models write the JSON of the arguments as text
        try:
            arguments = _decoded(arguments) if arguments.strip() else {}
        except ValueError as error:
            return ParsedCall(name, end, problem=f"the arguments are not valid JSON: {error}")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        return ParsedCall(name, end, problem="the arguments must be an object")
    given = cast("dict[str, Any]", arguments)
    return ParsedCall(name, end, given, argument_problem(known[name].parameters, given))


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
