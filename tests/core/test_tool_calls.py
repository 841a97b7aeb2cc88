"""What in a response is a call, in every form that models write, and what is none."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem_core.responses import speech_of, written_calls
from gem_core.tools import Function
from gem_core.tools import _calls as calls
from gem_core.tools._calls import Form, ParsedCall, find_call, written

TEXT: dict[str, Any] = {"type": "string"}


def function(name: str, *, required: tuple[str, ...] = (), **properties: Any) -> Function:
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return Function(name, "It does things.", schema)


PYTHON = Function(
    "python",
    "Runs code.",
    {"type": "object", "properties": {"code": TEXT}, "required": ["code"]},
    tag="python",
    fence="python",
)
SEARCH = Function(
    "search",
    "Finds.",
    {"type": "object", "properties": {"query": TEXT, "k": {"type": "integer"}}, "required": ["query"]},
    tag="search",
)
WEATHER = function("weather", required=("city",), city=TEXT, days={"type": "integer"}, exact={"type": "boolean"})
CLOCK = function("clock")


def found(response: str, *functions: Function, form: Form = "text") -> ParsedCall:
    call = find_call(response, functions or (PYTHON, SEARCH), form)
    assert call is not None
    return call


def block(inside: str) -> str:
    return f"I call it. <tool_call>{inside}</tool_call> And then?"


# -- tags and blocks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("<python>print(1)</python>", "print(1)"),
        ("so <python>\n print(1)\n</python> it is", "print(1)"),
        ("<python></python>", ""),
        ("```python\nprint(1)\n```", "print(1)"),
        ("```Python\nprint(1)\n```", "print(1)"),
        ("```python3\nprint(1)\n```", "print(1)"),
        ("```python3.11\nprint(1)\n```", "print(1)"),
        ("```python print(1)```", "print(1)"),
        ("```\npython\nprint(1)\n```", "print(1)"),
        ("```py\nprint(1)\n```", "print(1)"),
        ("Run it: ```python\nprint(1)\n```", "print(1)"),
        ("```python \r\nif 1:\r\n  print(1)\r\n```\r\n", "if 1:\n  print(1)"),
        ("~~~python\nprint(1)\n~~~", "print(1)"),
        ("- So:\n  ```python\n  if 1:\n    print(1)\n  ```", "if 1:\n  print(1)"),
        ("```python\ns = '```' + f'{x}```'\n```", "s = '```' + f'{x}```'"),
        ("<python>a = '{}'\x00\ud800</python>", "a = '{}'\x00\ud800"),
        # Tags in a string of the program are text; so are the quotes of a sentence.
        ("<python>s = '<python>'</python>", "s = '<python>'"),
        ("<python>s = '</python>'</python>", "s = '</python>'"),
        ('<python>s = r"""\n</python>\n"""\nprint(s)</python> ok', 's = r"""\n</python>\n"""\nprint(s)'),
        ('<python>print("it\'s </python>")</python>', 'print("it\'s </python>")'),
        ("<python># don't\nf()</python> It isn't <python>g()</python>", "# don't\nf()"),
        ("<python>s = 'a</python>", "s = 'a"),
        ("```python\ns = '<python>1</python>'\n```", "s = '<python>1</python>'"),
        # A tag that is named opens nothing.
        ("I use <python>. So: <python>1</python>", "1"),
        ("<python>\n```python\n1\n```\n</python>", "1"),
        ("<python>\n```\n1\n```\n</python>", "1"),
    ],
)
def test_code_between_tags_and_in_blocks(response: str, code: str) -> None:
    call = found(response, PYTHON)
    assert (call.function, call.arguments, call.problem) == ("python", {"code": code}, None)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "the answer is \\boxed{2}",
        "<python>print(1)",
        "print(1)</python>",
        "</python>print(1)<python>",
        "```python\nprint(1)",
        "```\nprint(1)\n```",
        "```pythonic\nprint(1)\n```",
        "```python```",
        "```text\nx\n```\nPython is a language. ```",
        "<Python>print(1)</Python>",
        "<tool_call>{}</tool_call>",  # all functions have tags, so the environment may use this one
    ],
)
def test_what_is_no_call_is_left_to_the_environment(response: str) -> None:
    assert find_call(response, [PYTHON, SEARCH], "text") is None


@pytest.mark.parametrize("functions", [(PYTHON, SEARCH, CLOCK), (CLOCK, SEARCH, PYTHON)])
@pytest.mark.parametrize(
    ("response", "first"),
    [
        ("<search>a</search> <python>1</python>", "search"),
        ("<python>1</python> <search>a</search>", "python"),
        ("<search>a <python>1</python></search>", "search"),  # it begins first
        (
            '<tool_call>{"name": "clock", "arguments": {"x": "<search>a</search> ```python\\n1\\n```"}}</tool_call>',
            "clock",
        ),
        ("```python\n1\n``` <python>2</python> <search>a</search>", "python"),
        ('<tool_call>{"name": "clock"}</tool_call><search>a</search>', "clock"),
        ("<tool_call>what?</tool_call><search>a</search>", ""),
        ("<search>a</search><tool_call>what?</tool_call>", "search"),
    ],
)
def test_the_call_that_begins_first_counts(functions: tuple[Function, ...], response: str, first: str) -> None:
    call = found(response, *functions)
    assert call.function == first
    assert response[: call.end].endswith(("</search>", "</python>", "```", "</tool_call>"))


def test_nothing_after_a_call_counts() -> None:
    response = "think <search> a b </search> more"
    assert response[: found(response).end] == "think <search> a b </search>"


# -- functions ---------------------------------------------------------------------------------------------------------

SAME_CALL = [
    '{"name": "weather", "arguments": {"city": "Rome", "days": 3, "exact": true}}',
    '\n{"arguments": {"exact": true, "days": 3, "city": "Rome"}, "name": "weather"}\n',
    '{"name": "weather", "parameters": {"city": "Rome", "days": 3, "exact": true}}',
    '{"name": "weather", "arguments": "{\\"city\\": \\"Rome\\", \\"days\\": 3, \\"exact\\": true}"}',
    '{"type": "function", "name": "weather", "arguments": {"city": "Oslo", "city": "Rome", "days": 3, "exact": true}}',
    "\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
    "<parameter=exact>\nTrue\n</parameter>\n</function>\n",
    "<function=weather><parameter=city>Rome</parameter><parameter=days>3</parameter>"
    "<parameter=exact>true</parameter></function>",
    '\n<tool_name>weather</tool_name>\n<arguments>{"city": "Rome", "days": 3, "exact": true}</arguments>\n',
]


def test_json_in_a_block_within_the_block() -> None:
    response = '<tool_call>\n```json\n{"name": "clock", "arguments": {}}\n```\n</tool_call>'
    call = find_call(response, [CLOCK], "native")
    assert call is not None
    assert (call.function, call.problem) == ("clock", None)


@pytest.mark.parametrize("form", ["text", "native"])
@pytest.mark.parametrize("inside", SAME_CALL)
def test_a_block_in_every_way_that_models_write_it(form: Form, inside: str) -> None:
    call = found(block(inside), WEATHER, CLOCK, form=form)
    assert call.problem is None
    assert (call.function, call.arguments) == ("weather", {"city": "Rome", "days": 3, "exact": True})
    assert block(inside)[: call.end].endswith("</tool_call>")


@pytest.mark.parametrize("inside", ['{"name": "clock"}', '{"name": "clock", "arguments": null}', "<function=clock>"])
def test_a_function_without_arguments(inside: str) -> None:
    call = found(block(inside), CLOCK)
    assert (call.function, call.arguments, call.problem) == ("clock", {}, None)


def test_a_response_that_is_nothing_but_json_is_a_native_call() -> None:
    response = ' {"name": "weather", "parameters": {"city": "Rome"}}\n'
    call = found(response, WEATHER, form="native")
    assert (call.function, call.arguments, call.end) == ("weather", {"city": "Rome"}, len(response))
    assert found(response, WEATHER) == call


@pytest.mark.parametrize(
    "response",
    ['{"name": "chess"}', '{"answer": 42}', "{", '[{"name": "weather"}]', 'so {"name": "clock"}', "{" * 50_000, "{}"],
)
def test_other_json_is_left_to_the_environment(response: str) -> None:
    assert find_call(response, [WEATHER, CLOCK], "native") is None


def test_in_the_native_form_a_tag_is_text() -> None:
    assert find_call("<python>1</python>", [PYTHON], "native") is None
    assert found(block('{"name": "python", "arguments": {"code": "1"}}'), PYTHON, form="native").arguments == {
        "code": "1"
    }


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("", "not valid JSON"),
        ("weather in Rome", "not valid JSON"),
        ('{"name": "weather", ', "not valid JSON"),
        ('{"name": "weather", "arguments": {"city": "\\ud800"}}', "not valid JSON"),
        ('{"name": "weather", "arguments": {"city": NaN}}', "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"name": "weather", "arguments": ' + '{"a":' * 100_000, "nested too deeply"),
        ("[]", 'object with "name"'),
        ("3", 'object with "name"'),
        ("{}", 'object with "name"'),
        ('{"name": 3}', 'object with "name"'),
        ('{"name": "wether", "arguments": {}}', "no tool 'wether'. Did you mean 'weather'?"),
        ('{"name": "weather", "arguments": []}', "must be an object"),
        ('{"name": "weather", "arguments": "Rome"}', "arguments are not valid JSON"),
        ('{"name": "weather", "arguments": "' + "[" * 100_000 + '"}', "nested too deeply"),
        ('{"name": "weather"}', "'city' is missing. It takes: city, days, exact"),
        ('{"name": "weather", "arguments": {"city": "Rome", "dais": 3}}', "no argument 'dais'. Did you mean 'days'"),
        ('{"name": "weather", "arguments": {"city": 3}}', "'city' must be of type string"),
        ('{"name": "weather", "arguments": {"city": "Rome", "days": "3"}}', "'days' must be of type integer"),
        ('{"name": "weather", "arguments": {"city": "Rome", "days": true}}', "'days' must be of type integer"),
        ('{"name": "weather", "arguments": {"city": "Rome", "exact": 1}}', "'exact' must be of type boolean"),
        ("<function=weather><parameter=city>Rome</function>", "<parameter=city> is not closed"),
        ("<function=weather><parameter=", "<parameter=> is not closed"),
        ("<function=weather></function>", "'city' is missing"),
        ("<tool_name>weather", "<tool_name> is not closed"),
        ("<tool_name>weather</tool_name>{}", "after <tool_name> comes <arguments>"),
        ("<tool_name>weather</tool_name><arguments>{", "not valid JSON"),
        (
            "<function=weather>\n<parameter=city>\nRome\n<parameter=days>\n3\n</parameter>\n</function>",
            "'city' is not closed",
        ),
        ("<function=weather><parameter=city>Rome<parameter=days>3</parameter></function>", "'city' is not closed"),
        ("weather<arg_key>city</arg_key><arg_value>Rome", "not closed by </arg_value>"),
        ("<tool_name>weather</tool_name>", "'city' is missing"),
    ],
)
def test_a_call_that_cannot_be_carried_out_says_why(inside: str, problem: str) -> None:
    call = found(block(inside), WEATHER, CLOCK)
    assert call.problem is not None
    assert problem in call.problem
    assert len(call.problem) < 400


def test_a_name_of_any_length_is_not_repeated_to_the_model() -> None:
    name = "w" * 200_000
    for inside in (f'{{"name": "{name}"}}', f"<function={name}>", f"<tool_name>{name}</tool_name>"):
        assert len(found(block(inside), WEATHER).problem or "") < 400
    call = found(block(json.dumps({"name": "weather", "arguments": {"city": "x", name: 1}})), WEATHER)
    assert len(call.problem or "") < 400


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (TEXT, "12", "12"),
        (TEXT, "null", "null"),
        (TEXT, "two\nlines\n", "two\nlines\n"),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": ["string", "null"]}, "12", "12"),
        ({"type": ["string", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "12", "12"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "None", None),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": None, "anyOf": "?", "type": {}}, "1", 1),
        ({"type": "boolean"}, "False", False),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({}, "plain words", "plain words"),
        (True, "1", 1),
    ],
)
def test_a_parameter_that_is_written_as_text_has_the_type_of_its_schema(schema: Any, text: str, value: Any) -> None:
    call = found(block(f"<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>"), function("f", x=schema))
    assert (call.arguments, call.problem) == ({"x": value}, None)


def test_a_mistake_is_not_compared_with_thousands_of_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[list[str]] = []
    monkeypatch.setattr(calls, "near_matches", lambda name, known: compared.append([name, *known]) or "")  # pyright: ignore
    names = [f"{number}{'ab' * 500}" for number in range(10_000)]
    many = [*map(function, names), function("f", **dict.fromkeys(names, TEXT))]
    for wrong in ({"name": "ab" * 500}, {"name": "f", "arguments": {"ab" * 500: 1}}):
        assert found(block(json.dumps(wrong)), *many).problem
    assert [(len(one), max(map(len, one))) for one in compared] == [(101, 64)] * 2


def test_half_a_character_reaches_no_tool() -> None:
    call = found(block("<function=f><parameter=x>\ud800 is \ud83d\nhalf</parameter></function>"), function("f", x=TEXT))
    assert call.arguments == {"x": "? is ?\nhalf"}


def test_a_parameter_that_is_written_again_and_again_has_its_schema_looked_at_once() -> None:
    class Schema(dict[str, Any]):
        looks = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.looks += key == "anyOf"
            return super().get(key, default)

    schema = Schema(anyOf=[{"type": "integer"}])
    call = found(block("<function=f>" + "<parameter=x>1</parameter>" * 1000 + "</function>"), function("f", x=schema))
    assert (call.arguments, schema.looks) == ({"x": 1}, 1)


@pytest.mark.parametrize(
    ("more", "allowed"),
    [
        ({}, False),
        ({"additionalProperties": False}, False),
        ({"additionalProperties": True}, True),
        ({"additionalProperties": {"type": "integer"}}, True),
        ({"patternProperties": {".*": {}}}, True),
        ({"allOf": [{"properties": {"y": {}}}]}, True),
    ],
)
def test_further_arguments_are_taken_where_the_schema_says_so(more: dict[str, Any], allowed: bool) -> None:
    taking = Function("f", "", {"type": "object", "properties": {"x": {}}, **more})
    call = found(block('{"name": "f", "arguments": {"x": 1, "y": 2}}'), taking)
    assert (call.problem is None) is allowed


@pytest.mark.parametrize("form", ["text", "native"])
def test_what_is_written_is_found(form: Form) -> None:
    for one, arguments in ((PYTHON, {"code": "1 < 2"}), (WEATHER, {"city": "</x>", "days": 2}), (CLOCK, {})):
        call = found(f"so {written(one, arguments, form)} then", PYTHON, WEATHER, CLOCK, form=form)
        assert (call.function, call.arguments, call.problem) == (one.name, arguments, None)


# -- anything ----------------------------------------------------------------------------------------------------------

PIECES = [
    "<tool_call>", "</tool_call>", "<python>", "</python>", "<search>", "</search>", "```", "```python", "\n", "{", "}",
    '"name"', ":", '"weather"', '"arguments"', "<function=weather>", "<parameter=", "city>", "</parameter>", "a", "\0",
    "<tool_name>", "</tool_name>", "<arguments>", "</arguments>", "\ud800", "[", "1", ",", '"city"', "</function>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(["text", "native"]))
def test_any_response_is_a_call_or_none(response: str, form: Form) -> None:
    call = find_call(response, [PYTHON, SEARCH, WEATHER], form)
    if call is not None:
        assert 0 < call.end <= len(response)
        assert call.problem is not None or call.function in ("python", "search", "weather")
        # Nothing after the call has a say.
        assert form == "native" or find_call(response[: call.end], [PYTHON, SEARCH, WEATHER], form) == call


@pytest.mark.parametrize("form", ["text", "native"])
@pytest.mark.parametrize(
    "piece",
    [
        "<search>", "</search>", "```", "```python", "```python3", "```\n", "`", "<tool_call>", "</tool_call>", "{",
        "[", '{"a":', "<parameter=", "<parameter=a>", "<function=", "<tool_name>", "<arguments>", "<", "\n", " ", "9",
        '"',
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "frame", ["{}", "<tool_call>{}</tool_call>", "<tool_call><function=weather>{}</tool_call>", "```python{}x"]
)
def test_the_time_grows_with_the_length_and_no_faster(form: Form, piece: str, frame: str) -> None:
    def seconds(characters: int) -> float:
        response = frame.replace("{}", piece * (characters // len(piece)))
        began = time.process_time()
        find_call(response, [PYTHON, SEARCH, WEATHER], form)
        return time.process_time() - began

    # If it were quadratic, four times the length would take sixteen times as long, and that is seconds here.
    assert seconds(200_000) < 6 * seconds(50_000) + 0.2


# -- dialects ----------------------------------------------------------------------------------------------------------

NOTE = function("note", required=("path",), path=TEXT, text=TEXT, line={"type": "integer"}, tags={"type": "array"})
WANTED = {"path": "a.txt", "text": 'one </tool_call> "two" <|call|>', "line": 3}
BODY = json.dumps(WANTED)
DIALECTS = {
    "hermes": '<tool_call>\n{"name": "note", "arguments": %s}\n</tool_call>',
    "unmarked end": 'So. <tool_call>{"name": "note", "arguments": %s}',
    "gpt-oss": "<|channel|>commentary to=functions.note <|constrain|>json<|message|>%s<|call|>",
    "gpt-oss, written": "<|start|>assistant to=functions.note<|channel|>commentary json<|message|>%s<|call|>",
    "gpt-oss, first": " to=functions.note<|channel|>commentary json<|message|>%s<|call|>",
    "deepseek v3": "<｜tool▁call▁begin｜>function<｜tool▁sep｜>note\n```json\n%s\n```<｜tool▁call▁end｜>",
    "deepseek v3.1": "<｜tool▁call▁begin｜>note<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi": "<|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>%s<|tool_call_end|>",
    "llama": '{"name": "note", "parameters": %s}',
    "llama, several": '{"name": "note", "parameters": %s}; {"name": "note", "parameters": {"path": "b"}}',
    "llama, with its token": '<|python_tag|>{"type": "function", "name": "note", "parameters": %s}',
    "mistral": '[TOOL_CALLS][{"name": "note", "arguments": %s, "id": "a1b2c3d4e"}]',
    "mistral, newer": "[TOOL_CALLS]note[ARGS]%s",
    "mistral, with an id": "[TOOL_CALLS]note[CALL_ID]a1b2c3d4e[ARGS]%s",
    "command a": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "note", "parameters": %s}]<|END_ACTION|>',
    "granite, phi": '<|tool_call|>[{"name": "note", "arguments": %s}]<|/tool_call|>',
    "a function with json": "<function=note>%s</function>",
    "a list": '[{"name": "note", "arguments": %s}]',
    "a block of its own": 'I write it:\n```json\n{"name": "note", "arguments": %s}\n```\nDone.',
}
IN_TEXT = {
    "llama, as python": "[note({})]|{}={!r}, ",
    "gemma 3": "```tool_code\nnote({})\n```|{}={!r}, ",
    "lfm2": "<|tool_call_start|>[note({})]<|tool_call_end|>|{}={!r}, ",
    "glm": "<tool_call>note\n{}</tool_call>|<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n",
    "qwen coder": "<tool_call>\n<function=note>\n{}</function>\n</tool_call>|<parameter={}>\n{}\n</parameter>\n",
    "without a block": "<function=note>\n{}</function>|<parameter={}>{}</parameter>",
    "seed": "<seed:tool_call>\n<function=note>\n{}</function>\n</seed:tool_call>|<parameter={}>{}</parameter>\n",
    "minimax": '<minimax:tool_call>\n<invoke name="note">\n{}</invoke>|<parameter name="{}">{}</parameter>\n',
    "muse glimmer": '<atem:invoke name="note">\n{}</atem:invoke>|<atem:parameter name="{}">{}</atem:parameter>\n',
    "functiongemma": "<start_function_call>call:note{{{}}}<end_function_call>|{}:<escape>{}<escape>,",
    "gemma 4": '<|tool_call>call:note{{{}}}<tool_call|>|{}:<|"|>{}<|"|>,',
}


def in_text(form: str, arguments: dict[str, Any]) -> str:
    """A call in a dialect that writes each argument as text."""
    frame, _, each = form.rpartition("|")
    if form.endswith("|>,"):  # Gemma 4's marks have the sign in them
        frame, each = form.split("<tool_call|>|")[0] + "<tool_call|>", form.split("<tool_call|>|")[1]
    written = "".join(each.format(name, value) for name, value in arguments.items())
    return frame.format(written.rstrip(", ")).replace("<escape>3<escape>", "3").replace('<|"|>3<|"|>', "3")


@pytest.mark.parametrize("dialect", [*DIALECTS, *IN_TEXT])
@pytest.mark.parametrize("before", ["", "<think>Maybe {}, or <tool_call>.</think>\n\n", "{} No.</think>"])
def test_a_call_in_each_dialect(dialect: str, before: str) -> None:
    make = DIALECTS.get(dialect, "").__mod__ if dialect in DIALECTS else None
    draft = make('{"path": "draft"}') if make else in_text(IN_TEXT[dialect], {"path": "draft"})
    call = make(BODY) if make else in_text(IN_TEXT[dialect], WANTED)
    response = before.replace("{}", draft) + call
    parsed = find_call(speech_of(response), [NOTE], "native")
    assert parsed is not None
    assert (parsed.function, parsed.arguments, parsed.problem) == ("note", WANTED, None)


@pytest.mark.parametrize("dialect", [*DIALECTS, *IN_TEXT])
def test_half_a_call_is_a_mistake_that_the_model_sees(dialect: str) -> None:
    whole = DIALECTS[dialect] % BODY if dialect in DIALECTS else in_text(IN_TEXT[dialect], WANTED)
    half = whole[: whole.index("two") + 1]
    parsed = find_call(half, [NOTE], "native")
    assert parsed is not None
    assert parsed.problem is not None


@pytest.mark.parametrize(
    "response",
    [
        "I could use <tool_call> here.",
        "Mistral's mark is [TOOL_CALLS].",
        "It begins with <function=note> and so on.",
        '<invoke name="note"> is how it begins.',
        'The JSON would be {"name": "note", "arguments": {"path": "a"}}.',
        '```json\n{"name": "Ann", "arguments": 3}\n```',
        '```python\n{"name": "note", "arguments": {"path": "a"}}\n```',
        "to=functions.note",
        "<|channel|>commentary to=user<|message|>Hello.",
        '[{"name": "Ann", "arguments": 3}]',
    ],
)
def test_what_names_a_mark_is_no_call(response: str) -> None:
    assert find_call(response, [NOTE], "native") is None


def test_where_json_can_be_nothing_else_any_name_is_a_call() -> None:
    response = '```json\n{"name": "chess", "arguments": {}}\n```'
    call = find_call(response, [NOTE], "native", any_name=True)
    assert call is not None
    assert "no tool 'chess'" in (call.problem or "")


@pytest.mark.parametrize("any_name", [True, False])
def test_where_json_can_be_nothing_else_it_may_follow_words(any_name: bool) -> None:
    response = 'I write it.\n{"name": "note", "arguments": {"path": "a"}}\n'
    call = find_call(response, [NOTE], "native", any_name=any_name)
    assert (call.arguments if call else None) == ({"path": "a"} if any_name else None)
    assert find_call(f"{response} It is JSON.", [NOTE], "native", any_name=any_name) is None


@pytest.mark.parametrize("to", ["browser.search code", "python code"])
def test_a_builtin_tool_of_gpt_oss_is_a_mistake_that_the_model_sees(to: str) -> None:
    response = f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>analysis to={to}<|message|>f(1)"
    call = find_call(speech_of(response), [NOTE], "native")
    assert call is not None
    assert call.problem is not None


@pytest.mark.parametrize("piece", ["[TOOL_CALLS]a ", "[TOOL_CALLS]</b>", "<tool_call></tool_call>"])
def test_the_time_of_all_calls_grows_with_the_length_and_no_faster(piece: str) -> None:
    def seconds(characters: int) -> float:
        response = piece * (characters // len(piece))
        began = time.process_time()
        for _ in written_calls(response):
            pass
        return time.process_time() - began

    assert seconds(200_000) < 6 * seconds(50_000) + 0.2


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("left </parameter> right", "left </parameter> right"),
        ("</function> in a text", "</function> in a text"),
        ("left <parameter=other> right", "left <parameter=other> right"),
        ("left\n<parameter=other>\nright", "left\n<parameter=other>\nright"),
        ("<function=f>\n<parameter=other>\n1\n</parameter>\n</function>", None),
        ("    indented\n\n", "    indented\n\n"),
    ],
)
def test_a_parameter_ends_at_its_last_closing(value: str, read: str | None) -> None:
    inside = f"<function=note>\n<parameter=path>\na\n</parameter>\n<parameter=text>\n{value}\n</parameter>\n</function>"
    call = found(block(inside), NOTE)
    assert (call.arguments, call.problem) == ({"path": "a", "text": value if read is None else read}, None)


def test_two_calls_do_not_run_together() -> None:
    one = "<tool_call>\n<function=note>\n<parameter=path>\n{}\n</parameter>\n</function>\n</tool_call>"
    for between in ("", "\n", " and then "):
        response = f"{one.format('a')}{between}{one.format('b')}"
        call = found(response, NOTE, form="native")
        assert (call.arguments, call.end) == ({"path": "a"}, len(one.format("a")))


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"line": 3.0}, {"line": 3}),
        ({"line": ""}, {}),
        ({"line": None, "tags": None}, {}),
        ({"text": ""}, {"text": ""}),
    ],
)
def test_whole_numbers_and_what_is_left_empty(given: dict[str, Any], arguments: dict[str, Any]) -> None:
    call = found(block(json.dumps({"name": "note", "arguments": {"path": "a", **given}})), NOTE)
    assert (call.arguments, call.problem) == ({"path": "a", **arguments}, None)
    for wrong in (3.5, "3"):
        assert found(block(json.dumps({"name": "note", "arguments": {"path": "a", "line": wrong}})), NOTE).problem
    assert found(block('{"name": "note", "arguments": {"path": null}}'), NOTE).problem


def test_an_empty_parameter_of_another_type_is_left_out() -> None:
    call = found(
        block("<function=note>\n<parameter=path>\na\n</parameter>\n<parameter=line>\n</parameter>\n</function>"), NOTE
    )
    assert (call.arguments, call.problem) == ({"path": "a"}, None)


@pytest.mark.parametrize("start", ["<|start|>assistant", ""])
def test_a_message_to_a_function_may_have_elements(start: str) -> None:
    parameter = '<x:parameter name="path">a</x:parameter>'
    element = f'<x:function_calls>\n<x:invoke name="edit">\n{parameter}\n</x:invoke>\n</x:function_calls>'
    functions = [Function("edit", "", {"type": "object", "properties": {"path": {"type": "string"}}})]
    call = find_call(f"{start} to=edit<|message|>{element}<|eot|>", functions, "native")
    assert call is not None
    assert (call.function, call.arguments, call.problem) == ("edit", {"path": "a"}, None)
