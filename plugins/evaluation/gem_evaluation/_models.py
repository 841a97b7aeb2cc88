"""What an evaluation asks: anything that answers prompts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from gem_core.env import Env
from gem_core.errors import described
from gem_evaluation._conversation import THINKING, Message, Prompt, Reasoning, Reply, Usage
from gem_evaluation._errors import ModelError
from gem_train.rollout import as_utf8, texts_around


def installed(*names: str) -> dict[str, str]:
    """Versions of distributions; those that are not installed are left out."""
    found: dict[str, str] = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


class Model(Protocol):
    """Answers prompts, many at a time."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that could change a response, as plain data and without secrets."""
        ...

    @property
    def most_at_once(self) -> int:
        """Episodes that may be under way at a time."""
        ...

    def session(self) -> AbstractAsyncContextManager[Any]:
        """Open while an evaluation asks. Raises `ModelSetupError` where no request can succeed."""
        ...

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the conversation so far.
            episode: the same text for each prompt of an episode, and another for each other episode.

        Raises:
            ModelError: no response. The episode has failed.
            ModelSetupError: no request can succeed. The evaluation ends.
        """
        ...

    def cost(self, usage: Usage) -> float:
        """Dollars of a response."""
        ...

    def status(self) -> str:
        """A few words for the line of progress, for example requests at a time."""
        ...

    @property
    def wrappers(self) -> Sequence[Callable[[Env], Env]]:
        """What environments are wrapped in for this model."""
        ...


class LocalPlayer:
    """What models have in common that cost nothing and need no connection."""

    wrappers: Sequence[Callable[[Env], Env]] = ()

    def session(self) -> AbstractAsyncContextManager[Any]:
        """Nothing to open."""
        return nullcontext()

    def cost(self, usage: Usage) -> float:
        """Nothing."""
        return 0.0

    def status(self) -> str:
        """Nothing to say."""
        return ""


Messages = Sequence[Mapping[str, Any]]
AnswerFunction = Callable[[Messages], "str | Reply | Awaitable[str | Reply]"]


class FunctionModel(LocalPlayer):
    """A Python function as a model.

    Args:
        function: takes messages, each with `role` and `content`, and returns the response. It may be a coroutine
            function; otherwise it runs in a thread.
        name: for people, and the identity of the model: give another name to another model.
        most_at_once: episodes that may be under way at a time.
    """

    def __init__(self, function: AnswerFunction, name: str, most_at_once: int = 16) -> None:
        self._function = function
        self.name = name
        self.most_at_once = most_at_once
        self._threads: ThreadPoolExecutor | None = None

    def session(self) -> AbstractAsyncContextManager[Any]:
        """Threads, one for each episode that may be under way."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None]:
        self._threads = ThreadPoolExecutor(self.most_at_once, "gem-eval")
        try:
            yield
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name."""
        return {"kind": "function", "name": self.name}

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """What the function says. Raises `ModelError` where it raises, or says something that is no text."""
        messages = [as_chat(message) for message in prompt.messages]
        try:
            if inspect.iscoroutinefunction(self._function):
                answer = await self._function(messages)
            else:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads, self._function, messages)
                if inspect.isawaitable(answer):
                    answer = await answer
        except Exception as error:
            raise ModelError(f"{self.name} raised {described(error)}") from error
        if not isinstance(answer, str | Reply):
            raise ModelError(f"{self.name} gave {answer!r:.200}, which is no text")
        return Reply(answer) if isinstance(answer, str) else answer


def _content(message: Message) -> str | list[dict[str, Any]]:
    """The text of a message, or parts where it shows images."""
    if not message.images:
        return as_utf8(message.content)
    before, *after = texts_around(message.content, len(message.images))
    parts: list[dict[str, Any]] = [{"type": "text", "text": as_utf8(before)}]
    for uri, text in zip(message.images, after, strict=True):
        parts.append({"type": "image_url", "image_url": {"url": uri}})
        parts.append({"type": "text", "text": as_utf8(text)})
    return [part for part in parts if part.get("text") != ""]


def as_chat(message: Message) -> dict[str, Any]:
    """A message as chat endpoints take it."""
    content = _content(message)
    if message.role == "tool" and message.call_id is None:  # the text form: endpoints know no answer without a call
        return {"role": "user", "content": content}
    chat: dict[str, Any] = {"role": message.role, "content": content}
    if message.reasoning is not None:
        _add_reasoning(chat, message.reasoning)
    if message.call_id is not None:
        chat["tool_call_id"] = message.call_id
    if message.calls:
        chat["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return chat


def _add_reasoning(chat: dict[str, Any], reasoning: Reasoning) -> None:
    """Add a thought as the endpoint gave it: in a field of its own, or as a part of the content."""
    text = as_utf8(reasoning.text)
    if reasoning.field == THINKING:
        thought = {"type": THINKING, THINKING: [{"type": "text", "text": text}]}
        chat["content"] = [thought, *([{"type": "text", "text": chat["content"]}] if chat["content"] else [])]
    else:
        chat[reasoning.field] = text
