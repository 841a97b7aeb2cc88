"""The token state of one episode: the one place where prompts are built."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gem_core.env import Info, shown_text
from gem_core.episode import Logprobs, PlacedImage, TokenIds, TokenSequence, as_token_ids
from gem_core.errors import PolicyError, TemplateError
from gem_core.image import IMAGES, images_of
from gem_train.rollout._images import ImagePrompt
from gem_train.rollout._template import ChatTemplate
from gem_train.rollout._thoughts import PastResponse, Thoughts, spoken_responses


class Span(NamedTuple):
    """Where a response is: positions `start` to before `end` of a token sequence."""

    sequence: int
    start: int
    end: int


class _Seen(NamedTuple):
    """An image of the conversation."""

    number: int
    """How many were shown before it."""
    uri: str
    grid: tuple[int, int, int]


@dataclass(slots=True)
class _Exchange:
    """A message, and the response to it."""

    message: str
    role: str
    images: tuple[_Seen, ...] = ()
    response: Span | None = None
    summary: TokenIds | None = None
    """The response, where it is no place in a sequence: a summary of all that was said after the message."""
    text: str = ""
    """The response or summary as text."""
    sampled: bool = True
    """It was sampled, after the header of the prompt; otherwise it is all speech."""
    past: tuple[ChatTemplate, bool, PastResponse] | None = None
    """The response as a later prompt showed it; for which template, and whether only messages of tools followed."""
    written: tuple[ChatTemplate, int | None, TokenIds] | None = None
    """The ids of the message as a prompt had them, and for which template and after which id."""


class _Before(NamedTuple):
    """The conversation before its newest message."""

    sequences: int
    length: int
    """Of the last of these sequences."""
    images: int
    """Images in it."""
    template: ChatTemplate


class Conversation:
    """Token in, token out.

    Sampled ids are appended unchanged and never decoded and encoded again; only the template's own bridge tokens
    are added between them. A prompt continues the token sequence before it id by id, unless a bounded history drops
    a message, a summary replaces earlier ones, the list of tools changes, or an earlier thought is dropped: then it
    starts a new sequence.

    Args:
        template: the chat template.
        history: `None` shows the whole episode, `1` only the present observation, `k` the last `k` observations and
            the responses between them.
        thoughts: `keep` leaves earlier responses as they were sampled. `drop` shows them as the template shows those of
            earlier turns, without their thoughts; see `SpokenResponses`.

    Raises:
        ValueError: `history` below 1.
    """

    def __init__(self, template: ChatTemplate, history: int | None = None, thoughts: Thoughts = "keep") -> None:
        if history is not None and history < 1:
            raise ValueError(f"history must be None (all) or at least 1 observation, not {history}")
        self.sequences: list[TokenSequence] = []
        self.response: Span | None = None
        """Where the newest response is."""
        self.opening = spoken_responses(template).opening
        """The mark with which the prompt itself opens the thought of the response; empty where it does not."""
        self._bare = self._template = template
        self._before = _Before(0, 0, 0, template)
        self._withdrawn: tuple[_Exchange, ChatTemplate] | None = None
        self._exchanges: deque[_Exchange] = deque(maxlen=history)
        self._images: list[str] = []
        self._drops = thoughts == "drop"

    @property
    def prompt_length(self) -> int:
        """Number of tokens of the prompt for the next response."""
        return len(self.sequences[-1].ids)

    def prompt(self) -> TokenIds:
        """Token ids of the prompt for the next response, as a copy; an `ImagePrompt` if it shows images."""
        sequence = self.sequences[-1]
        if sequence.images:
            return ImagePrompt(sequence.ids, [self._images[one.index] for one in sequence.images])
        return sequence.ids[:]

    def length_with(self, request: str) -> int:
        """Number of tokens of a prompt with this request in place of the newest message; see `ask_summary`."""
        if not self._drops:
            return self._before.length + len(self._template.bridge_tokens(request))
        newest = self._exchanges.pop()
        self._exchanges.append(_Exchange(request, "user"))
        length = len(self._whole_prompt().ids)
        self._exchanges[-1] = newest
        return length

    def observe(self, observation: str, info: Info) -> str:
        """Add an observation, with its info's `prefix`, `suffix` and images; returns the message.

        Raises:
            TemplateError: it has images, and the model reads text only, or its template shows none.
            EnvError: an image is damaged.
        """
        message = shown_text(observation, info)
        self._before = self._state()
        template = self._template
        if "tools" in info:
            template = self._bare.with_tools(info["tools"]) if info["tools"] else self._bare
            self.opening = spoken_responses(template).opening
        continues = template is self._template and 0 < len(self._exchanges) != self._exchanges.maxlen
        self._template = template
        role = template.tool_role if info.get("use_tool") else "user"
        exchange = _Exchange(message, role, self._seen(info) if IMAGES in info else ())
        self._exchanges.append(exchange)
        if self._drops:
            self._continue_or_begin()
        elif continues:
            self._continue(exchange)
        else:
            self.sequences.append(self._whole_prompt())
        return message

    def respond(self, ids: Iterable[int], logprobs: Logprobs | None = None) -> str:
        """Add the sampled ids, unchanged, and their log-probabilities where there are any; returns their text.

        Raises:
            OverflowError, TypeError: something in `ids` is not a token id.
            PolicyError: an id that stands for an image.
        """
        sampled, sequence = as_token_ids(ids), self.sequences[-1]
        reader = self._template.images
        if reader is not None and not reader.reserved.isdisjoint(sampled):
            raise PolicyError(
                f"the policy said an id that stands for an image: {sampled.tolist()!r:.200}. The model would look for "
                f"its patches. Keep the engine from sampling {sorted(reader.reserved)}"
            )
        text = self._template.decode(sampled)  # before anything is appended: it may raise, and the policy try again
        start = len(sequence.ids)
        sequence.add_response(sampled, logprobs)
        self.response = Span(len(self.sequences) - 1, start, len(sequence.ids))
        self._exchanges[-1].response, self._exchanges[-1].text = self.response, text
        return text

    def say(self, text: str) -> None:
        """Add a response that was not sampled. Raises `TemplateError` where it would become control tokens."""
        self.respond(self._template.words(text))
        self._exchanges[-1].text, self._exchanges[-1].sampled = text, False

    def ask_summary(self, request: str) -> None:
        """Withdraw the newest message, and ask for a summary. The message comes after the summary; see `compact`."""
        self._withdraw()
        asked = _Exchange(request, "user")
        self._exchanges.append(asked)
        if self._drops:
            self._continue_or_begin()
        else:
            self._continue(asked)

    def compact(self, text: str | None = None) -> None:
        """Begin a new sequence with the first message, a summary of all that was said after it, and the newest message.

        The summary has the place of the response to the first message, and is treated like any earlier response.

        Args:
            text: the summary. `None` for the newest response, which `ask_summary` asked for.

        Raises:
            TemplateError: the text would become control tokens of the chat template.
        """
        if sampled := text is None:
            assert self.response is not None, "nothing was sampled"
            summary, text = self._ids_at(self.response), self._exchanges[-1].text
        else:
            summary = as_token_ids(self._template.words(text))
            self._withdraw()
        assert self._withdrawn is not None, "no summary was asked for"
        (newest, self._template), self._withdrawn = self._withdrawn, None
        first = self._exchanges[0]
        first.response, first.summary, first.text, first.sampled, first.past = None, summary, text, sampled, None
        self._exchanges.clear()
        self._exchanges.extend((first, newest))
        self.sequences.append(self._whole_prompt())

    def _state(self) -> _Before:
        last = self.sequences[-1] if self.sequences else TokenSequence.starting(as_token_ids())
        return _Before(len(self.sequences), len(last.ids), len(last.images), self._template)

    def _withdraw(self) -> None:
        """Take the newest message out of the sequences, and keep it for later."""
        self._withdrawn = self._exchanges.pop(), self._template
        before = self._before
        del self.sequences[before.sequences :]
        last = self.sequences[-1]
        del last.ids[before.length :], last.logprobs[before.length :], last.images[before.images :]
        self._template = before.template

    def _seen(self, info: Info) -> tuple[_Seen, ...]:
        """The images of an observation, read once."""
        uris, reader = [one.uri for one in images_of(info)], self._template.images
        if not uris:
            return ()
        if reader is None:
            raise TemplateError(
                f"an observation shows {len(uris)} image(s), and this model reads text only. Use a vision-language "
                "model and an adapter that passes images to it (docs/images.md), or another environment"
            )
        seen = tuple(_Seen(len(self._images) + place, uri, reader.read(uri).grid) for place, uri in enumerate(uris))
        self._images += uris
        return seen

    def _continue(self, exchange: _Exchange) -> None:
        """Append a message to the newest sequence, which ends with the response before it."""
        sequence = self.sequences[-1]
        shown = exchange.message, exchange.role, len(exchange.images)
        self._add(exchange, as_token_ids(self._template.following(sequence.ids[-1], *shown)), sequence)

    def _continue_or_begin(self) -> None:
        """Append to the newest sequence what the prompt has beyond it; begin another if it does not continue it."""
        prompt = self._whole_prompt()
        if self.sequences:
            newest = self.sequences[-1]
            length, images = len(newest.ids), len(newest.images)
            if prompt.ids[:length] == newest.ids and prompt.images[:images] == newest.images:
                newest.add_prompt(prompt.ids[length:])
                newest.images += prompt.images[images:]
                return
        self.sequences.append(prompt)

    def _whole_prompt(self) -> TokenSequence:
        """The prompt of a new sequence: all messages that the history shows, and the responses between them."""
        prompt = TokenSequence.starting(as_token_ids())
        others = [number for number, exchange in enumerate(self._exchanges) if exchange.role != "tool"]
        for number, exchange in enumerate(self._exchanges):
            past = self._past(exchange, chained=not others or number >= others[-1])
            self._add(exchange, self._written(exchange, past.template, prompt.ids[-1] if number else None), prompt)
            prompt.add_prompt(past.ids)
        return prompt

    def _past(self, exchange: _Exchange, *, chained: bool) -> PastResponse:
        """The response to a message as a prompt shows it. `chained`: only messages of tools have followed."""
        ids = exchange.summary if exchange.response is None else self._ids_at(exchange.response)
        if ids is None or not self._drops:
            return PastResponse(self._template, as_token_ids() if ids is None else ids)
        if exchange.past is None or exchange.past[:2] != (self._template, chained):
            spoken = spoken_responses(self._template)
            opening = spoken.opening if exchange.sampled else ""
            past = spoken.shown(exchange.role, opening, exchange.text, ids, chained=chained)
            exchange.past = self._template, chained, past
        return exchange.past[2]

    def _ids_at(self, span: Span) -> TokenIds:
        return self.sequences[span.sequence].ids[span.start : span.end]

    def _add(self, exchange: _Exchange, ids: TokenIds, sequence: TokenSequence) -> None:
        """Add a message. Here, and only here, the placeholder of an image becomes as many as it has tokens."""
        reader = self._template.images
        if exchange.images and reader is not None:
            for image in exchange.images:
                place = ids.index(reader.placeholder)
                sequence.add_prompt(ids[:place])
                start, count = len(sequence.ids), reader.tokens(image.grid)
                sequence.add_prompt(as_token_ids([reader.placeholder]) * count)
                sequence.images.append(PlacedImage(start, start + count, image.number, image.grid))
                ids = ids[place + 1 :]
        sequence.add_prompt(ids)

    def _written(self, exchange: _Exchange, template: ChatTemplate, last: int | None) -> TokenIds:
        """The ids of a message with its frame.

        Args:
            exchange: the message.
            template: writes it.
            last: the id before it, of the response that it follows, which may have sampled a part of the frame; `None`
                for the first message.
        """
        if exchange.written is None or exchange.written[:2] != (template, last):
            shown = exchange.message, exchange.role, len(exchange.images)
            ids = template.initial_prompt(*shown) if last is None else template.following(last, *shown)
            exchange.written = template, last, as_token_ids(ids)
        return exchange.written[2]
