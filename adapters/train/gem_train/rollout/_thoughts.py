"""What later prompts show of a response whose thought they drop."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from gem_core.episode import TokenIds, as_token_ids
from gem_core.errors import TemplateError
from gem_core.responses import PAIRS, read_response
from gem_train.rollout._template import ChatTemplate

Thoughts: TypeAlias = Literal["keep", "drop"]
"""Whether later prompts have the thoughts of earlier responses."""

_SECRET = secrets.token_hex(8)
_THOUGHT, _SPEECH = f"GEMCORETHOUGHT{_SECRET}", f"GEMCORESPEECH{_SECRET}"
"""Stand for the thought and the words of a response."""
_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""In which templates look for the thought of a message."""


class PastResponse(NamedTuple):
    """A response as a later prompt shows it."""

    template: ChatTemplate
    """Writes the message before it, with the header of an earlier response."""
    ids: TokenIds


class _Case(NamedTuple):
    """All that a template's way to write an earlier response may depend on."""

    role: str
    """Of the message before it."""
    chained: bool
    """Only messages of tools have followed."""
    marks: tuple[str, str] | None
    """Of its thought, if it has one."""
    lead: str
    """White space before its speech."""
    trail: str
    """White space after its speech."""
    silent: bool
    """It has no speech."""


class _Style(NamedTuple):
    """How a template writes an earlier response."""

    template: ChatTemplate
    lead: int
    """Characters of the white space before the speech that it leaves out."""
    trail: int
    """The same for the white space after it."""


class SpokenResponses:
    """Earlier responses without their thoughts, as a chat template writes them.

    Templates of thinking models leave out the thoughts of earlier messages, may keep them between the calls of tools,
    and may write another header before an earlier message than before the next one, for example an empty thought. So
    this is looked up in the template, with short conversations. Where a template leaves thoughts in, they are dropped
    here, and the rest is written as a message without a thought.

    The ids of the speech are those that were sampled. If the speech begins within a token, the rest of this token is
    encoded anew.

    Args:
        template: the chat template.
    """

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._styles: dict[_Case, _Style | None] = {}
        self._templates: dict[tuple[str, str], ChatTemplate] = {}
        self.opening = _opening_of(template.header())
        """The mark with which the prompt itself opens the thought of the response; empty where it does not."""

    def shown(self, role: str, opening: str, text: str, ids: TokenIds, *, chained: bool) -> PastResponse:
        """A response as a later prompt shows it.

        Args:
            role: of the message before it.
            opening: the mark before it with which the prompt opened its thought.
            text: the response.
            ids: its tokens.
            chained: only messages of tools have followed, so that a template may still show the thought.

        Raises:
            TemplateError: the template drops the assistant's words.
        """
        thought, speech = read_response(opening + text)
        found = _spoken(opening, text, thought, speech)
        if found is None:  # said in several messages, with thoughts between them
            style = self._style(_Case(role, chained, _marks_of(thought), "", "", silent=not speech))
            return PastResponse(style.template if style else self._template, as_token_ids(self._template.words(speech)))
        start, stop = found
        said = text[start:stop]
        bare = said.strip()
        lead = said[: said.index(bare)] if bare else said
        trail = said[len(lead) + len(bare) :]
        style = self._style(_Case(role, chained, _marks_of(thought), lead, trail, silent=not bare))
        if style is None:
            return PastResponse(self._template, ids)
        return PastResponse(style.template, self._part(ids, text, start + style.lead, stop - style.trail))

    def _style(self, case: _Case) -> _Style | None:
        if case not in self._styles:
            self._styles[case] = self._found(case)
        return self._styles[case]

    def _found(self, case: _Case) -> _Style | None:
        """The style of a case; `None` if the template writes such a response as it was sampled."""
        lead, thought = case.lead, _written(case.marks)
        if thought and case.chained and self._stays_between_tools(case.role, thought):
            return None
        if thought and self._leaves_in(case.role, {"content": thought + _SPEECH}, "tool" if case.chained else "user"):
            lead, thought = lead.lstrip("\r\n"), ""
        generation = self._template.header(case.role)
        header, end = self._frame(case, thought + _SPEECH)
        if not case.marks and header == generation:
            return None
        if case.silent:
            kept_lead = kept_trail = ""
            header = self._text(case, thought + lead).removesuffix(end)
        else:
            before, after = self._frame(case, f"{thought}{lead}{_SPEECH}{case.trail}")
            kept_lead, kept_trail = before.removeprefix(header), after.removesuffix(end)
        return _Style(
            self._with_header(generation, header), len(case.lead) - len(kept_lead), len(case.trail) - len(kept_trail)
        )

    def _with_header(self, generation: str, header: str) -> ChatTemplate:
        same = next((at for at, pair in enumerate(zip(generation, header, strict=False)) if len({*pair}) > 1), None)
        same = min(len(generation), len(header)) if same is None else same
        ends = generation[same:], header[same:]
        if ends not in self._templates:
            self._templates[ends] = _PastTemplate(self._template, *ends) if any(ends) else self._template
        return self._templates[ends]

    def _frame(self, case: _Case, content: str) -> tuple[str, str]:
        """What the template writes before and after the speech of an earlier response."""
        before, found, after = self._text(case, content).partition(_SPEECH)
        if not found:
            raise TemplateError("the chat template drops the assistant's words, so no multi-turn prompt can be built")
        return before, after

    def _text(self, case: _Case, content: str) -> str:
        return self._template.earlier(case.role, {"content": content}, "tool" if case.chained else "user")

    def _stays_between_tools(self, role: str, thought: str) -> bool:
        """Whether a thought stays until the user's next message, as a part of the text or in a field of its own."""
        fields = {"content": _SPEECH, **dict.fromkeys(_FIELDS, _THOUGHT)}
        return any(
            self._leaves_in(role, response, "tool") and not self._leaves_in(role, response, "user")
            for response in ({"content": thought + _SPEECH}, fields)
        )

    def _leaves_in(self, role: str, response: Mapping[str, str], following: str) -> bool:
        """Whether an earlier response is written with its thought before a message of the role `following`."""
        try:
            return _THOUGHT in self._template.earlier(role, response, following)
        except TemplateError:  # refuses marks in the text of a message
            return True

    def _part(self, ids: TokenIds, text: str, start: int, stop: int) -> TokenIds:
        """The tokens of `text[start:stop]`, without the end of the turn, which the template writes."""
        first, reached = self._place(ids, text, start)
        last, _ = self._place(ids, text, stop)
        border = self._template.words(text[start:reached]) if reached > start else ()
        return as_token_ids(border) + ids[first : max(first, last)]

    def _place(self, ids: TokenIds, text: str, at: int) -> tuple[int, int]:
        """The fewest tokens that reach this character, and the number of characters that they have."""
        decode = self._template.decode
        count = bisect_left(range(len(ids)), at, key=lambda size: len(decode(ids[:size])))
        # A character may take several tokens, and the text of some of them is not part of the whole text.
        while not (text.startswith(part := decode(ids[:count])) and len(part) >= at) and count < len(ids):
            count += 1
        return count, len(part)


class _PastTemplate(ChatTemplate):
    """A chat template that ends with the header of an earlier response, in place of the next one's.

    Args:
        template: of the conversation.
        generation, header: the ends of the header of the next response and of an earlier one, where they differ.
    """

    def __init__(self, template: ChatTemplate, generation: str, header: str) -> None:
        _ = template._controls, template._turn_ends  # both are those of the conversation
        vars(self).update(vars(template), _frames={}, _kept={})
        self._generation, self._header = generation, header

    def _render(self, messages: Sequence[Mapping[str, Any]], *, generate: bool = True) -> str:
        return super()._render(messages, generate=generate).removesuffix(self._generation) + self._header


@lru_cache(maxsize=64)
def spoken_responses(template: ChatTemplate) -> SpokenResponses:
    """The responses of a template without their thoughts; one object for all conversations with it."""
    return SpokenResponses(template)


def _opening_of(header: str) -> str:
    """The opening mark of a thought that a header leaves open."""
    return next((opening for opening, closing in PAIRS.items() if header.rfind(opening) > header.rfind(closing)), "")


def _spoken(opening: str, text: str, thought: str, speech: str) -> tuple[int, int] | None:
    """Where the speech is in a response, with the white space around it; `None` if it is not in one piece."""
    whole = opening + text
    if whole.startswith(thought) and not whole[len(thought) : len(whole) - len(speech)].strip():
        return max(0, len(thought) - len(opening)), len(text)
    at = text.rfind(speech)
    return None if at < 0 else (at, at + len(speech))


def _marks_of(thought: str) -> tuple[str, str] | None:
    if not thought:
        return None
    return next((pair for pair in PAIRS.items() if thought.rstrip().endswith(pair[1])), ("<think>", "</think>"))


def _written(marks: tuple[str, str] | None) -> str:
    return "" if marks is None else f"{marks[0]}\n{_THOUGHT}\n{marks[1]}"
