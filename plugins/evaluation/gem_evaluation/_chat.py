"""Models behind OpenAI-compatible chat endpoints."""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import msgspec
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from gem_core.errors import described, near_matches
from gem_evaluation._conversation import Prompt, Reply, Usage
from gem_evaluation._endpoints import DEFAULT_KEY, Endpoint
from gem_evaluation._errors import ModelError, ModelSetupError
from gem_evaluation._limiter import LAST_LIMIT, Limiter
from gem_evaluation._models import as_chat
from gem_evaluation._refusals import Refusal
from gem_evaluation._replies import limit_body, read_models, read_reply
from gem_evaluation._secret import Secret

ATTEMPTS = 6
"""Requests for one response. Those that were refused because there were too many do not count."""
MAX_REFUSALS = 100
FIRST_WAIT, MAX_WAIT = 0.5, 30.0
"""Seconds between two attempts, the first and the longest, unless the endpoint asks for another pause."""
MAX_ASKED_WAIT = 3600.0
"""An endpoint that asks to wait for more seconds ends the evaluation."""
_YEAR = 365 * 86400.0
_LIST_SECONDS, _MAX_MODELS = 30.0, 10_000
_TIMEOUT = (asyncio.TimeoutError, httpx2.TimeoutException)
_LOST = (asyncio.TimeoutError, httpx2.TransportError)
"""Errors of a connection on which no reply came."""
_LASTING = (401, 402, 403, 429)
"""Statuses of a key, an account or a quota, which no repetition mends."""


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
        self._secret = Secret("")
        # Waits only: what is played never depends on it.
        self._rng = random.Random()
        self.wrappers = ()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model, its URLs and the fields of requests. The client's version changes no response."""
        return {
            "kind": "chat",
            "model": self._endpoint.model,
            "base_url": [url for url in self._endpoint.urls if url is not None],
            "options": self._options,
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
            raise ModelError(f"{self.name}: no response after {requests} requests; the last one: {error}") from error
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
                reply = await self._response(replica, body)
            except Exception as error:  # whatever an endpoint sends is an error of this request alone
                later = any(message["role"] == "assistant" for message in body["messages"])
                return self._judged(error, replica, turn, later)
            except BaseException:
                replica.limiter.failed()
                raise
            replica.limiter.succeeded(turn)
            return reply
        finally:
            replica.under_way -= 1

    async def _response(self, replica: _Replica, body: Mapping[str, Any]) -> Reply:
        # Not `chat.completions.create`, which walks through every message of every request, nor its models.
        asked = replica.client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        # The client's own limit is for each read: an endpoint could send a byte now and then.
        response = await asyncio.wait_for(asked, self._timeout)
        return read_reply(response.content, self._secret)

    def _judged(self, error: Exception, replica: _Replica, turn: float, later: bool) -> Reply:
        """What a failed request means. Raises unless the prompt does not fit.

        Args:
            error: what was raised.
            replica: that was asked.
            turn: of the limiter.
            later: the endpoint has taken the beginning of this conversation before, so only its length is new.
        """
        if isinstance(error, openai.APIStatusError):
            return self._judged_status(error, replica, turn, later)
        cause = _cause(error)
        if isinstance(cause, _LOST):
            replica.limiter.overloaded()
        else:
            replica.limiter.failed()
        raise _Retriable(f"{replica.url}: {self._line(cause)}") from error

    def _judged_status(self, error: openai.APIStatusError, replica: _Replica, turn: float, later: bool) -> Reply:
        status, limiter = error.status_code, replica.limiter
        refusal = Refusal(status, error.response.content)
        text = refusal.line(self._secret)
        said = text[:500]
        wait = _asked_wait(error.response.headers)
        if wait is not None and wait > MAX_ASKED_WAIT:
            limiter.failed()
            raise ModelSetupError(
                f"{replica.url} asks to wait {wait:.0f} seconds ({status}: {said}). Run the same "
                "command then to continue"
            ) from error
        if status == 429 and "insufficient_quota" not in text:
            limiter.refused(turn, wait)
            raise _Retriable(f"429: {said}", wait, refused=True)
        if _is_passing(status):
            limiter.overloaded()
            raise _Retriable(f"{status}: {said}", wait)
        limiter.failed()
        if 300 <= status < 400:
            place = self._secret.line(error.response.headers.get("location", ""), 200)
            raise _Retriable(
                f"{status}: it redirects to {place!r}, and a prompt is not sent where an endpoint says. Give that "
                "address as the URL if it is right"
            ) from error
        if refusal.says_full(later=later):
            return Reply("", context_full=True)
        if status == 404:
            raise ModelSetupError(
                f"{replica.url} has no such page or model ({said}). Is the URL right? It usually ends in /v1"
            ) from error
        if (status in _LASTING and not refusal.is_of_the_prompt()) or refusal.is_of_the_account():
            raise ModelSetupError(f"{self.name}: {status}: {said}") from error
        raise ModelError(f"{self.name}: {status}: {said}") from error

    def _line(self, error: BaseException) -> str:
        """An error for a file: it may quote what an endpoint sent."""
        text = f"no reply within {self._timeout:g} seconds" if isinstance(error, _TIMEOUT) else described(error)
        return self._secret.line(text, 500)

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
        if key and not (key.isascii() and key.isprintable()):
            raise ModelSetupError(
                f"the environment variable {variable} has a character that no key can have, such as a line break. Set "
                "it again"
            )
        self._secret = Secret(key or "")
        return openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=url,
            timeout=self._timeout,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(
                follow_redirects=False,  # an endpoint does not choose where a prompt and a key go
                headers={"Accept-Encoding": "identity"},
                event_hooks={"response": [limit_body]},
            ),
        )

    async def _check(self, client: openai.AsyncOpenAI) -> None:
        """Ask which models there are, so that a wrong name or URL is known before anything is played."""
        try:
            asked = client.with_options(timeout=_LIST_SECONDS).get("/models", cast_to=httpx2.Response)
            known = read_models((await asyncio.wait_for(asked, _LIST_SECONDS)).content)
        except openai.AuthenticationError as error:
            said = Refusal(error.status_code, error.response.content).line(self._secret)[:500]
            raise ModelSetupError(f"{client.base_url} does not take the key: {said}") from error
        except Exception as error:
            if not isinstance(cause := _cause(error), _LOST):
                return  # not every server has this list
            raise ModelSetupError(
                f"no server answers at {client.base_url} ({self._line(cause)}). Is the URL right? It usually ends in "
                "/v1"
            ) from error
        if known and self._endpoint.model not in known:
            hint = near_matches(self._endpoint.model, [one for one in known[:_MAX_MODELS] if len(one) < 200])
            shown = ", ".join(one[:200] for one in map(self._secret.hidden, known[:20]))
            raise ModelSetupError(
                f"{client.base_url} has no model {self._endpoint.model!r}.{self._secret.hidden(hint)} It has: {shown}"
                f"{' ...' if len(known) > 20 else ''}"
            )


def _cause(error: Exception) -> BaseException:
    """The error behind the client's own."""
    return (isinstance(error, openai.APIConnectionError) and error.__cause__) or error


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


def _is_passing(status: int) -> bool:
    """Whether the same request may be answered later. 409 and 425 are retried by OpenAI's own client, too."""
    return status in (408, 409, 425, 498) or (status >= 500 and status != 501)


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that an endpoint asks to wait, in `retry-after-ms` or `retry-after`; `None` if it doesn't say."""
    milliseconds = _retry_after(headers.get("retry-after-ms"))
    return _retry_after(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000


def _retry_after(text: str | None) -> float | None:
    """Seconds that an endpoint asks to wait; `None` if it doesn't say, or says what cannot be meant."""
    try:
        seconds = float(text or "nan")
    except ValueError:
        seconds = _seconds_until(text or "")
    return max(0.0, seconds) if seconds <= _YEAR else None  # not a number is not


def _seconds_until(date: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except Exception:  # untrusted text: the parser raises several types for dates that don't exist
        return math.nan
