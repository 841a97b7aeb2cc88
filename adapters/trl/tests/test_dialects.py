"""Thoughts and calls as TRL's templates write them, read back; and what docs/templates.md says of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from families import IN_PARTS, TEMPLATES, family_rows
from transformers.utils.chat_template_utils import _compile_jinja_template

from gem_core.responses import read_response, speech_of
from gem_core.tools import Function, find_call

WITHOUT_CALLS = {"lfm2", "deepseek_r1_distill"}
"""Templates that write no calls, of families whose others do."""

TEXT = {"type": "string"}
PROPERTIES = {"path": TEXT, "text": TEXT, "line": {"type": "integer"}}
NOTE = Function("note", "Notes.", {"type": "object", "properties": PROPERTIES, "required": ["path"]})
ARGUMENTS = {"path": "a.txt", "text": 'one </tool_call> "two"', "line": 3}
THOUGHT = "It may be left."


ROWS = {name: rows for name, rows in family_rows().items() if name not in IN_PARTS}


def answer(name: str, **message: Any) -> str:
    """What an assistant writes, by its template."""
    template = _compile_jinja_template((TEMPLATES / f"{name}.jinja").read_text("utf-8"))
    user = {"role": "user", "content": "Go."}
    settings = {"bos_token": "<s>", "eos_token": "</s>", "tools": [NOTE.schema], "strftime_now": lambda _: "today"}
    told = {"role": "assistant", "content": "", "reasoning_content": THOUGHT, "thinking": THOUGHT, **message}
    opening = template.render(messages=[user], add_generation_prompt=True, **settings)
    whole = template.render(messages=[user, told], add_generation_prompt=False, **settings)
    shared = next(
        (at for at, (one, other) in enumerate(zip(opening, whole, strict=False)) if one != other), len(opening)
    )
    return whole[shared:]


def call_of(name: str) -> str:
    """A call; DeepSeek's template wants the arguments as JSON."""
    arguments = json.dumps(ARGUMENTS) if name.startswith("deepseek") else ARGUMENTS
    call = {"type": "function", "id": "abcdefghi", "function": {"name": "note", "arguments": arguments}}
    return answer(name, tool_calls=[call])


@pytest.mark.parametrize("name", ROWS)
def test_a_call_is_read_as_the_template_writes_it(name: str) -> None:
    response = call_of(name)
    if "a.txt" not in response:
        assert "a call begins with" not in ROWS[name] or name in WITHOUT_CALLS
        return
    assert any(mark in response for mark in ROWS[name]["a call begins with"])
    call = find_call(speech_of(response), [NOTE], "native")
    assert call is not None
    assert (call.function, call.arguments, call.problem) == ("note", ARGUMENTS, None)


@pytest.mark.parametrize("name", ROWS)
def test_a_thought_is_told_from_speech_as_the_template_writes_it(name: str) -> None:
    read = read_response(answer(name, content="Yes."))
    assert read.speech.startswith("Yes.")
    assert THOUGHT not in read.speech
    marks = ROWS[name].get("thoughts", [])
    if THOUGHT in read.thought:
        assert marks
    if len(marks) == 2:
        assert speech_of(f"{marks[0]}\n{THOUGHT}\n{marks[1]}\n\nYes.") == "Yes."
        assert speech_of(f"{THOUGHT}{marks[1]}Yes.") == "Yes."
