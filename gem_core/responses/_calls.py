"""Calls in the dialects of model families, in time linear in the length of a text.

| a call begins with | families |
| --- | --- |
| `<tool_call>` and JSON | Hermes, Qwen, SmolLM3, Granite 4, Olmo 3 |
| `<tool_call>` and `name<arg_key>key</arg_key><arg_value>value</arg_value>` | GLM-4.5 and later |
| `<tool_call>` and `<tool_name>`, `<arguments>` | the MCP tool of gem-llm |
| `<function=name>` and `<parameter=key>`, mostly in a `<tool_call>` | Qwen3-Coder, Qwen3.5, Nemotron 3, Seed-OSS |
| `<invoke name="name">` and `<parameter name="key">` | MiniMax-M2, DeepSeek-V3.2, Muse Glimmer |
| `<|channel|>commentary to=functions.name` and JSON; at the start also `to=functions.name` | gpt-oss (Harmony) |
| `<｜tool▁call▁begin｜>` and the name, JSON | DeepSeek-V3, -R1, -V3.1 |
| `<|tool_call_begin|>functions.name:0` and JSON | Kimi K2 |
| `[TOOL_CALLS]` and a list, or the name and JSON | Mistral |
| `<|python_tag|>`, `<|tool_call|>`, `<|START_ACTION|>` and JSON | Llama 3, Granite 3 and Phi-4-mini, Command A |
| `<start_function_call>call:name{...}`, `<|tool_call>call:name{...}` | FunctionGemma, Gemma 4 |
| `<|tool_call_start|>[name(key=value)]` | LFM2 |

JSON ends where it ends, whatever stands in its strings. A parameter ends at the last closing tag before the next
parameter or the end of its function. What is begun and not finished is a call with a problem, and a mark that nothing
like a call follows is a word of the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from gem_core.responses._json import Text, decoded, encoded, json_end

_NAME = r"[\w.-]+"
_BLOCK = r"(?:seed:|minimax:|longcat_)?tool_calls?>"
_TO = (
    rf"to=(?!(?:user|self)\b)(?:functions\.)?(?P<gpt>{_NAME})"
    r"[^{<\n]*(?:<\|(?:channel|constrain)\|>[^{<\n]*){0,2}<\|message\|>(?!\s*<[\w:]*(?:function_calls|invoke)\b)"
)
"""Muse has elements there, which are found by themselves."""
_FIRST = re.compile(rf"\s*{_TO}")
"""A call at the start of a response whose prompt ends with `<|start|>assistant`."""
_OPENING = re.compile(
    rf"[<\[](?:(?P<block>{_BLOCK}|TOOL_CALLS\])"
    r"|(?P<json>\|(?:tool_call|python_tag|START_ACTION|action_start\|><\|plugin)\|>)"
    r'|(?P<prefix>[\w:｜]*)(?P<word>function|invoke)(?:=| name=)"?(?P<function>[^<>"\n]*)"?>'
    rf"|\|(?:start\|>assistant|channel\|>\w*)(?:<\|channel\|>\w*)?\s+{_TO}"
    rf"|｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<deepseek>{_NAME})(?:<｜tool▁sep｜>|\s*```json)"
    rf"|\|tool_call_begin\|>\s*(?:functions\.)?(?P<kimi>{_NAME}?)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
    rf"|(?:start_function_call|\|tool_call)>call:(?P<gemma>{_NAME})(?=\{{)"
    r"|(?P<python>\|tool_call_start\|>)"
    r"|(?P<begun>｜tool▁call▁begin｜>|\|tool_call_begin\|>|start_function_call>|\|tool_call>))"
)
_SHUT = re.compile(
    rf"\s*(?:```\s*)?(?:</(?:function>|{_BLOCK})|<\|/?tool_call\|>|<(?:\|tool_call_end\||｜tool▁call▁end｜)>|<\|call\|>"
    r"|<\|END_ACTION\|>|<\|action_end\|>)"
)
_BRACKET = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?P<open>[(\[{])|(?P<shut>[)\]}])""", re.DOTALL)
_BLOCK_EDGE = re.compile(rf"<(/?){_BLOCK}")
_FENCE = re.compile(r"\s*(?:```(?:json)?\s*)?")
_NAMED = re.compile(rf"({_NAME})(?:\[CALL_ID\]{_NAME})?(?:\[ARGS\])?\s*(?:```json\s*)?(?=\{{)")
_GLM = re.compile(r"([A-Za-z_][\w.-]*)\s*(?=<arg_key>|</tool_call>)")
_GLM_KEY = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>")
_GEMMA = re.compile(
    r'<\|"\|>(?P<string>[\w\W]*?)<\|"\|>|<escape>(?P<escaped>[\w\W]*?)<escape>|(?P<json>"(?:[^"\\]|\\.)*"|[{}\[\],:])|\s+'
    r'|(?P<word>[^\s{}\[\],:<"]+)'
)


class WrittenCall(NamedTuple):
    """A call as a text has it."""

    name: str
    """Of the function; an empty string where none could be read."""
    arguments: Any
    """As they are written: an object, JSON as text, or with `as_text` a text for each name."""
    start: int
    """Where it begins."""
    end: int
    """Where it ends, closing marks included."""
    problem: str | None = None
    """Why the call is incomplete."""
    as_text: bool = False
    """The arguments are texts, whose types only a schema knows."""


def written_calls(text: str) -> Iterator[WrittenCall]:
    """The calls of a text, in order."""
    start, text = 0, Text(text)
    if first := _FIRST.match(text):
        call = _named(text, 0, first.end(), first["gpt"])
        start = call.end
        yield call
    while opening := _OPENING.search(text, start):
        call = _read(text, opening)
        start = opening.end() if call is None else max(call.end, opening.end())
        if call is not None:
            yield call


def json_call(text: str, start: int, at: int) -> WrittenCall:
    """The call that begins at `start`, and whose JSON, an object or a list of such, begins at `at`."""
    value, end, problem = _json(text, at)
    calls = cast("list[Any]", value) if isinstance(value, list) else [value]
    call: Any = calls[0] if calls else None
    if isinstance(call, dict):
        fields = cast("dict[str, Any]", call)
        fields = fields["function"] if isinstance(fields.get("function"), dict) else fields
        name = fields.get("name", fields.get("tool_name"))
        if isinstance(name, str):
            return WrittenCall(name, fields.get("arguments", fields.get("parameters")), start, end)
    return WrittenCall("", None, start, end, problem or 'a call is an object with "name" and "arguments"')


def _json(text: str, at: int) -> tuple[Any, int, str | None]:
    """A value, where its closing marks end, and why it cannot be read."""
    at = _after(_FENCE, text, at)
    end, valid = json_end(text, at)
    if valid:
        after = _after(_SHUT, text, end)
    else:
        edge = _BLOCK_EDGE.search(text, end)
        end, after = edge.span() if edge and edge[1] else (len(text), len(text))
    try:
        return decoded(text[at:end]), after, None
    except ValueError as error:
        return None, after, f"the call is not valid JSON: {error}"


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _read(text: str, opening: re.Match[str]) -> WrittenCall | None:
    """The call that begins here; `None` if its mark was only mentioned."""
    start, at = opening.span()
    if opening["block"]:
        return _block(text, start, at)
    if opening["json"]:
        return json_call(text, start, at)
    if opening["word"]:
        return _function(text, start, opening)
    if opening["python"]:
        return python_call(text, start, at)
    if opening["gemma"]:
        return _gemma(text, start, at, opening["gemma"])
    if name := opening["gpt"] or opening["deepseek"] or opening["kimi"]:
        return _named(text, start, at, name)
    return WrittenCall("", None, start, len(text), f"{opening[0]} begins a call that is not finished")


def _named(text: str, start: int, at: int, name: str) -> WrittenCall:
    arguments, end, problem = _json(text, at)
    return WrittenCall(name, arguments, start, end, problem)


def _block(text: str, start: int, at: int) -> WrittenCall | None:
    at = _after(_FENCE, text, at)
    function = _OPENING.match(text, at)
    if function and function["word"]:
        return _function(text, start, function, in_block=True)
    if text.startswith("<tool_name>", at):
        return _elements(text, start, at)
    if named := _NAMED.match(text, at):
        return _named(text, start, named.end(), named[1])
    if glm := _GLM.match(text, at):
        return _parameters(text, start, glm.end(), glm[1], _GLM_KEY, "</arg_value>", r"\s*</tool_call>")
    if not text.startswith(("{", "["), at):
        edge = _BLOCK_EDGE.search(text, at) if text[start] == "<" else None
        if not (edge and edge[1]):
            return None
    return json_call(text, start, at)


def _elements(text: str, start: int, at: int) -> WrittenCall:
    edge = _BLOCK_EDGE.search(text, at)
    stop, end = edge.span() if edge else (len(text), len(text))
    found = re.compile(r"<tool_name>([^<]*)(</tool_name>)?\s*(<arguments>)?").match(text, at)
    assert found
    if not found[2]:
        return WrittenCall("", None, start, end, "<tool_name> is not closed")
    if not found[3]:
        problem = "after <tool_name> comes <arguments>{...}</arguments>" if text[found.end() : stop].strip() else None
        return WrittenCall(found[1].strip(), {}, start, end, problem)
    arguments, end, problem = _json(text, found.end())
    shut = re.compile(rf"\s*</arguments>(?:\s*</{_BLOCK})?")
    return WrittenCall(found[1].strip(), arguments, start, _after(shut, text, end), problem)


def _function(text: str, start: int, head: re.Match[str], in_block: bool = False) -> WrittenCall | None:
    prefix, word, name, at = head["prefix"], head["word"], head["function"].strip(), head.end()
    if name and text.startswith("{", _after(_FENCE, text, at)):
        return _named(text, start, at, name)
    key = re.compile(rf'<{prefix}parameter(?:=|\s+name=)"?([^<>"\n]*)"?[^<>]*>')
    end = rf"\s*(?:</{prefix}{word}>(?:\s*</{_BLOCK})?|(?=</{_BLOCK}))"
    begins = text.startswith((f"<{prefix}parameter", f"</{prefix}{word}>"), _after(_FENCE, text, at))
    if not begins and not (in_block and re.compile(end).match(text, at)):
        return WrittenCall(name, {}, start, at, f"<{head[0][1:]} is not finished") if in_block else None
    return _parameters(text, start, at, name, key, f"</{prefix}parameter>", end)


def _parameters(text: str, start: int, at: int, name: str, key: re.Pattern[str], shut: str, end: str) -> WrittenCall:
    """A call whose arguments are texts between `key` and `shut`, up to `end` behind the last one.

    A text ends at the last `shut` before the next `key`, which follows it at once, or before the end of the call: the
    last one before another call begins.
    """
    at = _after(_FENCE, text, at)
    if (nothing := re.compile(end).match(text, at)) and not key.match(text, at):
        return WrittenCall(name, {}, start, _after(_SHUT, text, nothing.end()), None, as_text=True)
    ends = re.compile(f"({re.escape(shut)}){end}")
    last = ends.search(text, at)
    another = _OPENING.search(text, last.end()) if last else None
    for later in ends.finditer(text, last.end(), another.start() if another else len(text)) if last else ():
        last = later
    first = key.match(text, at)
    edge = _BLOCK_EDGE.search(text, at)
    if last is None or first is None:
        missing = f"<parameter={first[1]:.80}>" if first else "<parameter=>"
        stop = edge.end() if edge and edge[1] else len(text)
        return WrittenCall(name, {}, start, stop, f"{missing} is not closed by {shut}")
    texts: dict[str, str] = {}
    between = re.compile(rf"{re.escape(shut)}\s*(?={key.pattern})")
    stop = last.start()
    while first:
        following = between.search(text, first.end(), last.end())
        value = text[first.end() : following.start() if following else stop]
        texts[first[1].strip()] = re.sub(r"\A\r?\n|\r?\n\Z", "", value)
        first = key.match(text, following.end()) if following else None
    return WrittenCall(name, texts, start, _after(_SHUT, text, last.end()), None, as_text=True)


def _gemma(text: str, start: int, at: int, name: str) -> WrittenCall:
    """Gemma's form: names without quotes, and strings between marks of their own."""
    depth, parts = 0, list[str]()
    for token in _GEMMA.finditer(text, at):
        if token.start() != at:
            break
        at = token.end()
        if token["json"]:
            depth += (token[0] in "{[") - (token[0] in "}]")
            parts.append(token[0])
        elif token["word"]:
            is_value = token[0] in ("true", "false", "null") or re.fullmatch(r"-?\d[\d.eE+-]*", token[0])
            parts.append(token[0] if is_value else encoded(token[0]))
        elif not token[0].isspace():
            parts.append(encoded(token["string"] or token["escaped"] or ""))
        if not depth:
            break
    try:
        arguments, problem = decoded("".join(parts)), None
    except ValueError as error:
        arguments, problem = None, f"the call is not valid: {error}"
    shut = re.compile(r"\s*(?:<end_function_call>|<tool_call\|>)")
    return WrittenCall(name, arguments, start, _after(shut, text, at), problem)


def python_call(text: str, start: int, at: int) -> WrittenCall:
    """The first call of a list of calls as Python writes them, `[name(key=value)]`, which begins at `at`."""
    end, depth = len(text), 0
    for token in _BRACKET.finditer(text, at):
        depth += bool(token["open"]) - bool(token["shut"])
        if depth <= 0 and token["shut"]:
            end = token.end()
            break
    after = _after(_SHUT, text, end)
    try:
        calls = ast.parse(text[at:end].strip(), mode="eval").body
        call = calls.elts[0] if isinstance(calls, ast.List) and calls.elts else calls
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("it is no call with named arguments")
        arguments = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return WrittenCall("", None, start, after, f"the call is not valid: {error}")
    return WrittenCall(ast.unparse(call.func), arguments, start, after)
