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
    a message, a summary replaces earlier ones, or the list of tools changes: then it starts a new sequence.

    Args:
        template: the chat template.
        history: `None` shows the whole episode, `1` only the present observation, `k` the last `k` observations and
            the responses between them.

    Raises:
        ValueError: `history` below 1.
    """

    def __init__(self, template: ChatTemplate, history: int | None = None) -> None:
        if history is not None and history < 1:
            raise ValueError(f"history must be None (all) or at least 1 observation, not {history}")
        self.sequences: list[TokenSequence] = []
        self.response: Span | None = None
        """Where the newest response is."""
        self._bare = self._template = template
        self._before = _Before(0, 0, 0, template)
        self._withdrawn: tuple[_Exchange, ChatTemplate] | None = None
        self._exchanges: deque[_Exchange] = deque(maxlen=history)
        self._images: list[str] = []

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

    @property
    def length_before(self) -> int:
        """Number of tokens up to the newest response: `prompt_length` without the message after it."""
        return self._before.length

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
        continues = template is self._template and 0 < len(self._exchanges) != self._exchanges.maxlen
        self._template = template
        role = template.tool_role if info.get("use_tool") else "user"
        exchange = _Exchange(message, role, self._seen(info) if IMAGES in info else ())
        self._exchanges.append(exchange)
        if continues:
            sequence = self.sequences[-1]
            self._add(exchange, self._bridge(exchange, sequence.ids), sequence)
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
        self._exchanges[-1].response = self.response
        return text

    def ask_summary(self, request: str) -> None:
        """Withdraw the newest message, and ask for a summary. The message comes after the summary; see `compact`."""
        self._withdraw()
        asked = _Exchange(request, "user")
        self._exchanges.append(asked)
        self._add(asked, self._bridge(asked, self.sequences[-1].ids), self.sequences[-1])

    def compact(self, text: str | None = None) -> None:
        """Begin a new sequence with the first message, a summary of all that was said after it, and the newest message.

        The summary has the place of the response to the first message.

        Args:
            text: the summary. `None` for the newest response, which `ask_summary` asked for; its ids stay as they are.

        Raises:
            TemplateError: the text would become control tokens of the chat template.
        """
        if text is not None:
            summary = as_token_ids(self._template.words(text))
            self._withdraw()
        else:
            assert self.response is not None, "nothing was sampled"
            sequence, start, end = self.response
            summary = self.sequences[sequence].ids[start:end]
        assert self._withdrawn is not None, "no summary was asked for"
        (newest, self._template), self._withdrawn = self._withdrawn, None
        first = self._exchanges[0]
        first.response, first.summary = None, summary
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

    def _whole_prompt(self) -> TokenSequence:
        """The prompt of a new sequence: all messages that the history shows, and the responses between them."""
        first, *later = self._exchanges
        prompt = TokenSequence.starting(as_token_ids())
        initial = self._template.initial_prompt(first.message, first.role, len(first.images))
        self._add(first, as_token_ids(initial), prompt)
        before = first
        for exchange in later:
            if before.summary is not None:
                prompt.add_prompt(before.summary)
            elif before.response is not None:
                sequence, start, end = before.response
                prompt.add_prompt(self.sequences[sequence].ids[start:end])
            self._add(exchange, self._bridge(exchange, prompt.ids), prompt)
            before = exchange
        return prompt

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

    def _bridge(self, exchange: _Exchange, before: TokenIds) -> TokenIds:
        """What follows the response before a message; where the policy sampled a part of it, only the rest."""
        shown = exchange.message, exchange.role, len(exchange.images)
        return as_token_ids(self._template.following(before[-1], *shown))
