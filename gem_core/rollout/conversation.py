"""The token state of one episode: the one place where prompts are built."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gem_core.env import Info, shown_text
from gem_core.episode import Logprobs, TokenIds, TokenSequence, as_token_ids
from gem_core.rollout.template import ChatTemplate


class Span(NamedTuple):
    """Where a response is: positions `start` to before `end` of a token sequence."""

    sequence: int
    start: int
    end: int


@dataclass(slots=True)
class _Exchange:
    """A message, and the response to it."""

    message: str
    role: str
    response: Span | None = None


class Conversation:
    """Token in, token out.

    Sampled ids are appended unchanged and never decoded and encoded again; only the template's own glue is added
    between them. A prompt continues the token sequence before it id by id, unless a bounded history drops a message or
    the list of tools changes: then it starts a new sequence.

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
        self._exchanges: deque[_Exchange] = deque(maxlen=history)

    @property
    def prompt_length(self) -> int:
        """Number of tokens of the prompt for the next response."""
        return len(self.sequences[-1].ids)

    def prompt(self) -> TokenIds:
        """Token ids of the prompt for the next response, as a copy."""
        return self.sequences[-1].ids[:]

    def observe(self, observation: str, info: Info) -> str:
        """Add an observation, with its info's `prefix` and `suffix`; returns the message as it stands in the prompt."""
        message = shown_text(observation, info)
        role = "tool" if info.get("use_tool") else "user"
        template = self._template
        if "tools" in info:
            template = self._bare.with_tools(info["tools"]) if info["tools"] else self._bare
        continues = template is self._template and 0 < len(self._exchanges) != self._exchanges.maxlen
        self._template = template
        self._exchanges.append(_Exchange(message, role))
        if continues:
            self.sequences[-1].add_prompt(self._glue(self._exchanges[-1], self.sequences[-1].ids))
        else:
            self.sequences.append(TokenSequence.starting(self._whole_prompt()))
        return message

    def respond(self, ids: Iterable[int], logprobs: Logprobs | None = None) -> str:
        """Add the sampled ids, unchanged, and their log-probabilities where there are any; returns their text.

        Raises:
            OverflowError, TypeError: something in `ids` is not a token id.
        """
        sampled, sequence = as_token_ids(ids), self.sequences[-1]
        text = self._template.decode(sampled)  # before anything is appended: it may raise, and the policy try again
        start = len(sequence.ids)
        sequence.add_response(sampled, logprobs)
        self.response = Span(len(self.sequences) - 1, start, len(sequence.ids))
        self._exchanges[-1].response = self.response
        return text

    def _whole_prompt(self) -> TokenIds:
        """The prompt of a new sequence: all messages that the history shows, and the responses between them."""
        first, *later = self._exchanges
        ids = as_token_ids(self._template.opening(first.message, first.role))
        before = first
        for exchange in later:
            if before.response is not None:
                sequence, start, end = before.response
                ids += self.sequences[sequence].ids[start:end]
            ids += self._glue(exchange, ids)
            before = exchange
        return ids

    def _glue(self, exchange: _Exchange, before: TokenIds) -> TokenIds:
        glue = self._template.glue(exchange.message, exchange.role)
        # Where the policy sampled the end of turn itself, the template's must not follow it.
        doubled = bool(glue) and before[-1:] == as_token_ids(glue[:1])
        return as_token_ids(glue[1:] if doubled else glue)
