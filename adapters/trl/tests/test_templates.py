"""The chat templates that the installed TRL ships, against the table of docs/templates.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import pytest
from families import IN_PARTS, TEMPLATES, family_rows
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from gem_core.errors import TemplateError
from gem_core.responses import MARKS
from gem_support.byte_level import byte_level_bpe
from gem_train.rollout import ChatTemplate, Conversation, end_token_ids

TOKEN = re.compile(
    r"<[|｜][\w▁ ]+[|｜]?>|<[\w ]+\|>|</?s>|<(?:image|sop|start_of_\w+|end_of_\w+)>|\[gMASK\]|\[/?INST\]"
)
"""Special tokens in the text of a template; those around thoughts and calls are in `MARKS`."""
BEGIN, END = "<begin of text>", "<end of text>"
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


class Family(NamedTuple):
    """What the page says of some templates."""

    ends: Sequence[str]
    headers: Sequence[str]
    tool_role: str
    native: bool


def _family(rows: Mapping[str, Sequence[str]]) -> Family:
    ends, headers = (rows.get(key, []) for key in ("a turn ends with", "headers end it, too"))
    return Family(ends, headers, rows["a tool's result"][0], [*rows["native tools"]] == ["yes"])


TABLE = {name: _family(rows) for name, rows in family_rows().items()}
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))


@cache
def tokenizer_of(name: str) -> PreTrainedTokenizerFast:
    """A small tokenizer with the tokens of a template, whose end is the family's, as of a chat model."""
    text = (TEMPLATES / f"{name}.jinja").read_text("utf-8")
    special = {*TOKEN.findall(text)} - MARKS
    tokenizer = byte_level_bpe()
    tokenizer.add_tokens([AddedToken(one, special=True, normalized=False) for one in sorted({*special, BEGIN, END})])
    marks = sorted(one for one in {*MARKS, "<tool_response>", "</tool_response>"} if one in text)
    tokenizer.add_tokens([AddedToken(one, special=False, normalized=False) for one in marks])
    tokenizer.bos_token, tokenizer.eos_token = BEGIN, END
    tokenizer.chat_template = text
    return tokenizer


def names(tokenizer: PreTrainedTokenizerFast, ids: object) -> list[str]:
    return tokenizer.convert_ids_to_tokens(ids)  # pyright: ignore[reportCallIssue, reportArgumentType]


def family_of(name: str) -> Family:
    return TABLE[name.removesuffix("_training")]


def test_the_page_names_each_template() -> None:
    assert {*TABLE} == {name for name in NAMES if not name.endswith("_training")}


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_a_response(name: str) -> None:
    """With the end of a chat model's tokenizer, and with that of a base model, which the template does not write."""
    tokenizer, family = tokenizer_of(name), family_of(name)
    template = ChatTemplate(tokenizer)
    found = names(tokenizer, template.ends)
    assert {*found} - {END} == {*family.ends, *family.headers}
    for end in [*family.ends[:1], END]:
        tokenizer.eos_token = end
        joined = names(tokenizer, end_token_ids(template, tokenizer, tokenizer.eos_token_id))
        assert {*joined} == {*family.ends, *family.headers, *found, end}
    tokenizer.eos_token = END


@pytest.mark.parametrize("name", TABLE)
def test_a_response_is_followed_by_what_the_template_writes(name: str) -> None:
    """After each end of the family and after a response that was cut off: every token of the template once."""
    tokenizer, family = tokenizer_of(name), family_of(name)
    template = ChatTemplate(tokenizer)
    header, _ = template.answer_header
    talk = [("user", "go"), ("assistant", "left"), ("user", "on")]
    messages: list[dict[str, object]] = [{"role": role, "content": text} for role, text in talk]
    if name in IN_PARTS:
        messages = [{**one, "content": [{"type": "text", "text": one["content"]}]} for one in messages]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    after = str(rendered).rpartition("left")[2].split()
    for end in ["", *(family.ends or family.headers)[:1]]:
        conversation = Conversation(template)
        conversation.observe("go", {})
        before = conversation.prompt().tolist()
        response = tokenizer.encode(f"{header}left{end}", add_special_tokens=False)
        assert conversation.respond(response).endswith("left")
        conversation.observe("on", {})
        prompt = conversation.prompt().tolist()
        assert prompt[: len(before) + len(response)] == before + response
        text = tokenizer.decode(prompt).rpartition("left")[2]
        assert text.replace("<|return|>", "<|end|>").split() == after


@pytest.mark.parametrize("name", TABLE)
def test_results_of_tools(name: str) -> None:
    tokenizer, family = tokenizer_of(name), family_of(name)
    template = ChatTemplate(tokenizer)
    assert template.tool_role == family.tool_role
    conversation = Conversation(template)
    conversation.observe("go", {})
    conversation.respond(tokenizer.encode("look", add_special_tokens=False))
    conversation.observe("it is left", {"use_tool": True})
    assert "it is left" in tokenizer.decode(conversation.prompt())
    if family.native:
        template.with_tools([TOOL])
    else:
        with pytest.raises(TemplateError):
            template.with_tools([TOOL])
