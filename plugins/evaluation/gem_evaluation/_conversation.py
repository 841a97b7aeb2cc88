"""Episodes as chat messages, for models that are asked in text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from gem_core.env import Info, shown_text
from gem_core.episode import Episode, StopReason, Turn
from gem_core.image import images_of
from gem_core.responses import speech_of
from gem_core.vector import Transition
from gem_train.rollout import BaseEpisodeBuilder, Thoughts, as_utf8

DRAWN_ACTION = "drawn_action"
"""Key of `info`: the action that was played in place of the given one, as of a random player."""
THINKING = "thinking"
"""The type of a part of a message's content that is a thought, and its field."""
UNUSED_CALL = "This call was not carried out: no tool calls are left in this episode."


class ToolCall(msgspec.Struct, frozen=True):
    """A function call of a model."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: usually JSON."""


Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Usage(msgspec.Struct, frozen=True):
    """What a response took."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    requests: Annotated[int, msgspec.Meta(ge=0, lt=2**16)] = 1
    """Requests to the endpoint, those that failed included."""
    seconds: float = 0.0
    """From the first request to the response, waiting included."""


class Reasoning(msgspec.Struct, frozen=True):
    """What a model thought before a response, apart from its text. It is in no action."""

    text: str
    field: str = "reasoning_content"
    """The field of the message in which the endpoint gave it, and gets it back."""


class Reply(msgspec.Struct, frozen=True):
    """A model's response to a prompt."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    truncated: bool = False
    """The token limit cut it off."""
    context_full: bool = False
    """The prompt does not fit the model's context, so there is no response."""
    usage: Usage = Usage()
    reasoning: Reasoning | None = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chat message."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""
    call_id: str | None = None
    """Of a tool: which call it answers."""
    images: tuple[str, ...] = ()
    """That it shows, as data URIs."""
    reasoning: Reasoning | None = None
    """Of an assistant."""


class Prompt(msgspec.Struct, frozen=True):
    """What a model is asked."""

    messages: list[Message]
    tools: list[dict[str, Any]] = []
    """Functions that may be called, as JSON schemas."""


@dataclass(frozen=True)
class ConversationSettings:
    """How episodes become prompts."""

    system_prompt: str | None = None
    history: int | None = None
    """`None`: the whole episode in every prompt. `k`: the last `k` observations."""
    max_tool_uses: int | None = None
    """As of the `ToolEnv`: surplus calls of one response are not carried out."""
    truncated_is_invalid: bool = True
    """A response cut off by the token limit reaches the environment as an empty action, as in training."""
    thoughts: Thoughts = "keep"
    """`keep`: later prompts have the thoughts of earlier responses. `drop`: only those since the last message of the
    user, which are thoughts between function calls."""


@dataclass
class _Exchange:
    """Observations, and the response to them."""

    observations: list[Message]
    reply: Reply | None = None


@dataclass
class _Unplayed:
    """Calls of the last response that the environment has not been told."""

    calls: deque[ToolCall] = field(default_factory=lambda: deque[ToolCall]())
    current: ToolCall | None = None


class MessageBuilder(BaseEpisodeBuilder):
    """Turns observations into prompts of messages, replies into actions, and all of it into an `Episode`.

    Each function call of a reply is an action of its own, so rewards and counters are those of calls made one by one.

    Args:
        episode: what is known at the start.
        settings: how prompts are built.
        observation, info: what `reset` gave.
    """

    def __init__(self, episode: Episode, settings: ConversationSettings, observation: str, info: Info) -> None:
        super().__init__(episode)
        self._settings = settings
        self._tools: list[dict[str, Any]] = []
        self._exchanges: deque[_Exchange] = deque(maxlen=settings.history)
        self._unplayed = _Unplayed()
        self._shown = observation, info
        self._begin(observation, info)

    @property
    def prompt(self) -> Prompt:
        """The messages that the model sees next."""
        system = self._settings.system_prompt
        messages = [] if system is None else [Message("system", system)]
        exchanges = [*self._exchanges]
        asked = [number for number, one in enumerate(exchanges) if any(m.call_id is None for m in one.observations)]
        for number, exchange in enumerate(exchanges):
            messages += exchange.observations
            if exchange.reply is not None:
                thoughts = self._settings.thoughts == "keep" or not asked or number >= asked[-1]
                messages.append(_said(exchange.reply, thoughts=thoughts))
        return Prompt(_without_orphans(messages), self._tools)

    def act(self, completion: Reply) -> str | None:
        """Take a reply; returns the first action, or `None` where the prompt did not fit the context."""
        if completion.context_full:
            self.end(StopReason.CONTEXT_FULL, *self._shown)
            return None
        self._exchanges[-1].reply = completion
        if completion.calls:
            self._unplayed.calls.extend(completion.calls)
            return self._call_next(completion)
        invalid = completion.truncated and self._settings.truncated_is_invalid
        return self._play(completion.text, "" if invalid else completion.text, completion)

    def record(self, transition: Transition) -> None:
        """Take the environment's answer, then send what is left of the reply's calls."""
        super().record(transition)
        used = transition.info.get("tool_use_counter", 0)
        self._unplayed.current = None
        if self.over or not self._unplayed.calls:
            return
        limit = self._settings.max_tool_uses
        if limit is not None and used >= limit:
            unused = [Message("tool", UNUSED_CALL, call_id=call.id) for call in self._unplayed.calls]
            self._exchanges[-1].observations += unused
            self._unplayed.calls.clear()
            return
        self._call_next(None)

    def close_turn(self, reward: float, info: Info) -> None:
        """Take what the environment paid and said; a drawn action stands for the reply."""
        super().close_turn(reward, info)
        turn = self.episode.turns[-1]
        if (drawn := turn.info.pop(DRAWN_ACTION, None)) is not None:
            turn.action = turn.response = drawn
            self._exchanges[-1].reply = Reply(drawn)

    def _call_next(self, reply: Reply | None) -> str:
        call = self._unplayed.current = self._unplayed.calls.popleft()
        written = _written(call)
        before = reply.text if reply is not None else ""
        return self._play(f"{before}{written}", written, reply)

    def _play(self, response: str, said: str, reply: Reply | None) -> str:
        """A turn, and what the environment gets. `reply`: where the turn is the first one of a reply."""
        self._pending, self._said = Turn(0, 0, 0, self._message, response, speech_of(said), truncated=False), said
        if reply is not None:
            self._pending.truncated = reply.truncated and not reply.calls
            self._pending.reasoning = "" if reply.reasoning is None else reply.reasoning.text
        return said

    def _observe(self, observation: str, info: Info) -> str:
        text = shown_text(observation, info)
        self._shown = observation, info
        if "tools" in info:
            self._tools = info["tools"]
        call = self._unplayed.current
        role: Literal["tool", "user"] = "tool" if call is not None or info.get("use_tool") else "user"
        shown = tuple(one.uri for one in images_of(info))
        message = Message(role, text, call_id=None if call is None else call.id, images=shown)
        if self._exchanges and self._exchanges[-1].reply is None:  # another answer to the same reply
            self._exchanges[-1].observations.append(message)
        else:
            self._exchanges.append(_Exchange([message]))
        return text

    def _is_full(self) -> bool:
        return False


def _said(reply: Reply, *, thoughts: bool) -> Message:
    """A reply as later prompts show it."""
    if thoughts:
        return Message("assistant", reply.text, reply.calls, reasoning=reply.reasoning)
    return Message("assistant", speech_of(reply.text), reply.calls)


def _written(call: ToolCall) -> str:
    """A call as the environment reads it; arguments that are no JSON stay the text that they are."""
    text = as_utf8(call.arguments)
    arguments: Any
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        arguments = text
    body: Mapping[str, Any] = {"name": as_utf8(call.name), "arguments": arguments}
    return f"<tool_call>{msgspec.json.encode(body).decode()}</tool_call>"


def _without_orphans(messages: list[Message]) -> list[Message]:
    """Answers to calls that a short history no longer shows are messages of the user."""
    shown = {call.id for message in messages for call in message.calls}
    return [
        msgspec.structs.replace(one, role="user", call_id=None)
        if one.call_id is not None and one.call_id not in shown
        else one
        for one in messages
    ]
