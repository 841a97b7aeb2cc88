"""Models behind OpenAI-compatible chat endpoints."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from gem_core.errors import described, near_matches
from gem_evaluation._conversation import THINKING, Prompt, Reasoning, Reply, ToolCall, Usage
from gem_evaluation._endpoints import DEFAULT_KEY, Endpoint
from gem_evaluation._errors import ModelError, ModelSetupError
from gem_evaluation._limiter import LAST_LIMIT, Limiter
from gem_evaluation._models import as_chat, installed
from gem_train.rollout import as_utf8

ATTEMPTS = 6
"""Requests for one response. Those that were refused because there were too many do not count."""
MAX_REFUSALS = 100
FIRST_WAIT, MAX_WAIT = 0.5, 30.0
"""Seconds between two attempts, the first and the longest, unless the endpoint asks for another pause."""
MAX_ASKED_WAIT = 3600.0
"""An endpoint that asks to wait for more seconds ends the evaluation."""
_OVERLOADED = {408, 500, 502, 503, 504, 529}
_FULL = ("maximum context length", "context length", "context_length_exceeded", "context window", "too many tokens")


@dataclass
class _Replica:
    """One URL of an endpoint."""

    url: str
    client: openai.AsyncOpenAI
    limiter: Limiter
    under_way: int = 0


class _Retriable(Exception):
    """A request without a response, to be repeated."""

    def __init__(self, reason: str, wait: float | None = None, refused: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.refused = refused


class ChatModel:
    """A model behind an endpoint.

    Requests go to the replica with the fewest under way. Failed ones are repeated; see `ATTEMPTS`.

    Args:
        endpoint: where it is.
        options: fields of each request, for example `temperature`; they override the endpoint's.
        concurrency: requests at a time for each replica; `None` finds out.
        timeout: seconds that one request may take.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        options: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
        timeout: float = 600.0,
    ) -> None:
        self._endpoint = endpoint
        self._options = {**endpoint.options, **(options or {})}
        self._concurrency = concurrency
        self._timeout = timeout
        self._replicas: list[_Replica] = []
        self._key = ""
        # Waits only: what is played never depends on it.
        self._rng = random.Random()
        self.wrappers = ()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model, its URLs, the fields of requests, and the version of the client."""
        return {
            "kind": "chat",
            "model": self._endpoint.model,
            "base_url": [url for url in self._endpoint.urls if url is not None],
            "options": self._options,
            "versions": installed("openai"),
        }

    @property
    def most_at_once(self) -> int:
        """Enough episodes for all requests that the replicas may take."""
        return len(self._endpoint.urls) * (self._concurrency or LAST_LIMIT)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """Connections, while an evaluation asks. Raises `ModelSetupError` where there is no key or no such model."""
        return self._open()

    def cost(self, usage: Usage) -> float:
        """Dollars of a response."""
        return self._endpoint.cost(usage.prompt_tokens, usage.completion_tokens)

    def status(self) -> str:
        """The limits that were found."""
        limit = sum(int(one.limiter.limit) for one in self._replicas)
        rates = [rate for one in self._replicas if (rate := one.limiter.rate) is not None]
        paced = f", {sum(rates):.1f}/s" if rates else ""
        refused = sum(one.limiter.refusals for one in self._replicas)
        return f"{limit} at a time{paced}{f', {refused} refused' if refused else ''}"

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """Ask; see `Model.respond`."""
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [as_chat(message) for message in prompt.messages],
            **self._options,
        }
        if prompt.tools:
            body["tools"] = prompt.tools
        began = time.monotonic()
        asking = AsyncRetrying(
            retry=retry_if_exception_type(_Retriable), stop=_Patience(), wait=self._wait, reraise=True
        )
        try:
            reply = cast("Reply", await asking(self._ask, body))
        except _Retriable as error:
            requests = asking.statistics["attempt_number"]
            last = self._without_key(str(error))
            raise ModelError(f"{self.name}: no response after {requests} requests; the last one: {last}") from error
        requests = asking.statistics["attempt_number"]
        usage = Usage(reply.usage.prompt_tokens, reply.usage.completion_tokens, requests, time.monotonic() - began)
        return msgspec.structs.replace(reply, usage=usage)

    async def _ask(self, body: Mapping[str, Any]) -> Reply:
        """One request, to one replica."""
        replica = min(self._replicas, key=lambda one: one.under_way / one.limiter.limit)
        replica.under_way += 1
        try:
            turn = await replica.limiter.acquire()
            try:
                # Not `chat.completions.create`, which walks through every message of every request, nor its models.
                completion = await replica.client.post("/chat/completions", cast_to=object, body=body)
                reply = _reply(completion)
            except openai.APIStatusError as error:
                return self._judged(error, replica, turn)
            except openai.APIConnectionError as error:  # a timeout as well
                replica.limiter.overloaded()
                cause = error.__cause__ or error
                raise _Retriable(f"{replica.url}: {described(cause)}") from error
            except (openai.APIError, ValueError) as error:  # a response that is no JSON, or not of this protocol
                replica.limiter.failed()
                raise _Retriable(f"{replica.url}: {described(error)}") from error
            except BaseException:
                replica.limiter.failed()
                raise
            replica.limiter.succeeded(turn)
            return reply
        finally:
            replica.under_way -= 1

    def _judged(self, error: openai.APIStatusError, replica: _Replica, turn: float) -> Reply:
        """What an error of the endpoint means. Raises unless the prompt does not fit."""
        status, said, limiter = error.status_code, self._without_key(_said(error)), replica.limiter
        wait = _retry_after(error)
        if wait is not None and wait > MAX_ASKED_WAIT:
            limiter.failed()
            raise ModelSetupError(
                f"{replica.url} asks to wait {wait:.0f} seconds ({status}: {said}). Run the same "
                "command then to continue"
            ) from error
        if status == 429 and "insufficient_quota" not in said:
            limiter.refused(turn, wait)
            raise _Retriable(f"429: {said}", wait, refused=True)
        if status in _OVERLOADED:
            limiter.overloaded()
            raise _Retriable(f"{status}: {said}", wait)
        limiter.failed()
        if status == 400 and any(words in said.lower() for words in _FULL):
            return Reply("", context_full=True)
        if status == 404:
            raise ModelSetupError(
                f"{replica.url} has no such page or model ({said}). Is the URL right? It usually ends in /v1"
            ) from error
        if status in (401, 403, 429):
            raise ModelSetupError(f"{self.name}: {status}: {said}") from error
        raise ModelError(f"{self.name}: {status}: {said}") from error

    def _without_key(self, text: str) -> str:
        """Some endpoints repeat a wrong key in their answer, which is written to a file."""
        return text.replace(self._key, "***") if self._key else text

    def _wait(self, state: RetryCallState) -> float:
        error = _failure(state)
        backoff = min(MAX_WAIT, FIRST_WAIT * 2 ** min(state.attempt_number, 10)) * self._rng.uniform(0.5, 1.0)
        return error.wait if error.wait is not None else backoff

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None]:
        clients = [self._client(url) for url in self._endpoint.urls]
        try:
            for client in clients:
                await self._check(client)
            self._replicas = [_Replica(str(client.base_url), client, Limiter(self._concurrency)) for client in clients]
            yield
        finally:
            for client in clients:
                await client.close()

    def _client(self, url: str | None) -> openai.AsyncOpenAI:
        if url is not None and "@" in urlsplit(url).netloc:
            raise ModelSetupError(
                f"the URL of {self.name} has a user or a password, which run.json would show. Remove it, and name the "
                "environment variable with the key as api_key_env in the endpoints file"
            )
        variable = self._endpoint.api_key_env
        key = os.environ.get(variable)
        if key is None and (url is None or variable != DEFAULT_KEY):
            raise ModelSetupError(
                f"the environment variable {variable}, which holds the key for {self.name}, is not set. Set it, or "
                "give --base-url for a server that needs no key"
            )
        self._key = key or ""
        return openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=url,
            timeout=self._timeout,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(),
        )

    async def _check(self, client: openai.AsyncOpenAI) -> None:
        """Ask which models there are, so that a wrong name or URL is known before anything is played."""
        try:
            known = [model.id async for model in client.with_options(timeout=30).models.list()]
        except openai.AuthenticationError as error:
            raise ModelSetupError(
                f"{client.base_url} does not take the key: {self._without_key(_said(error))}"
            ) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise ModelSetupError(
                f"no server answers at {client.base_url} ({described(cause)}). Is the URL right? It usually ends in /v1"
            ) from error
        except (openai.APIError, TypeError, ValueError):  # not every server has this list
            return
        if known and self._endpoint.model not in known:
            hint = near_matches(self._endpoint.model, known)
            shown = ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
            raise ModelSetupError(f"{client.base_url} has no model {self._endpoint.model!r}.{hint} It has: {shown}")


class _Patience:
    """How many failures of a request are enough."""

    def __init__(self) -> None:
        self._failures = self._refusals = 0

    def __call__(self, state: RetryCallState) -> bool:
        refused = _failure(state).refused
        self._refusals += refused
        self._failures += not refused
        return self._failures >= ATTEMPTS or self._refusals >= MAX_REFUSALS


def _failure(state: RetryCallState) -> _Retriable:
    assert state.outcome is not None
    return cast("_Retriable", state.outcome.exception())


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text with JSON; some servers send the JSON itself."""


class _Call(msgspec.Struct):
    id: str | int | None = None
    function: _Function | None = None


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: Any = None
    """A text, or parts of one."""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    """A text, of vLLM, SGLang and DeepSeek. Others use these names for something else, which is no reason to lose the
    response."""
    reasoning: Any = None
    """A text, of newer vLLM and OpenRouter."""


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    """What is read of a response."""

    choices: list[_Choice]
    usage: _Usage | None = None


def _reply(completion: object) -> Reply:
    """A response as a reply. Raises `_Retriable` where it has no choice or another form, as overloaded servers give."""
    try:
        if isinstance(completion, str):  # another content type
            completion = msgspec.json.decode(completion)
        read = msgspec.convert(completion, _Completion, strict=False)
        choice = read.choices[0]
    except (msgspec.DecodeError, IndexError) as error:
        raise _Retriable(f"a response without a choice that can be read: {completion!r:.200}") from error
    text = _text(choice.message.content)
    calls = tuple(
        ToolCall(
            as_utf8(f"call_{number}" if call.id is None else str(call.id)),
            as_utf8(call.function.name or ""),
            _arguments(call.function),
        )
        for number, call in enumerate(choice.message.tool_calls or ())
        if call.function is not None
    )
    counted = read.usage or _Usage()
    usage = Usage(counted.prompt_tokens or 0, counted.completion_tokens or 0)
    cut_off = choice.finish_reason == "length"
    return Reply(as_utf8(text), calls, cut_off, usage=usage, reasoning=_reasoning(choice.message))


def _reasoning(message: _Message) -> Reasoning | None:
    """The thought of a message, if it has one apart from its text."""
    parts = [part.thinking for part in message.content if part.thinking] if isinstance(message.content, list) else []
    found = {
        "reasoning_content": _text(message.reasoning_content),
        "reasoning": _text(message.reasoning),
        THINKING: "".join(map(_text, parts)),
    }
    given = [field for field in ("reasoning_content", "reasoning") if getattr(message, field) == ""]
    # A field without a thought is sent back as well: some endpoints ask for it in each message with function calls.
    chosen = next((field for field, text in found.items() if text), given[0] if given else None)
    return None if chosen is None else Reasoning(as_utf8(found[chosen]), chosen)


def _text(content: Any) -> str:
    """A text that is given as a whole or in parts; empty for anything else."""
    if isinstance(content, str):
        return content
    return "".join(map(_part_text, cast("list[Any]", content))) if isinstance(content, list) else ""


def _part_text(part: Any) -> str:
    found: Any = part.text if isinstance(part, _Part) else None
    if isinstance(part, dict):
        found = cast("dict[str, Any]", part).get("text")
    return found if isinstance(found, str) else ""


def _arguments(function: _Function) -> str:
    given = function.arguments or ""
    return as_utf8(given if isinstance(given, str) else json.dumps(given))


def _said(error: openai.APIStatusError) -> str:
    """What an endpoint says about an error, in one line."""
    body: Any = error.body
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        text = str(fields.get("message") or fields.get("detail") or fields)
        code = fields.get("code")
        return " ".join(f"{text}{f' ({code})' if code else ''}".split())[:500]
    return " ".join(str(error.message).split())[:500]


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds that the endpoint asks to wait."""
    from email.utils import parsedate_to_datetime

    text = error.response.headers.get("retry-after")
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
