"""A server that speaks the protocol of chat endpoints, with faults on request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Body = dict[str, Any]
Fault = Callable[[Body], "Response | None"]


class ChatServer:
    """Answers chats with a function, in a thread.

    Args:
        answer: takes a request's body, and returns the text of the response or its whole message.
    """

    def __init__(self, answer: Callable[[Body], str | Body]) -> None:
        self.requests: list[Body] = []
        """The bodies of all requests."""
        self.headers: list[dict[str, str]] = []
        self.faults: list[Fault] = []
        """Asked in turn for each request; the first response that one gives is sent."""
        self.models = ["stub"]
        self.gate: Callable[[], bool] = lambda: True
        """While it is false, requests wait."""
        self._answer = answer
        routes = [
            Route("/v1/models", self._list, methods=["GET"]),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=0, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    @property
    def url(self) -> str:
        """For clients."""
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    @contextmanager
    def running(self) -> Iterator[ChatServer]:
        """Serve meanwhile."""
        from gem_support.waiting import wait_until

        self._thread.start()
        try:
            wait_until(lambda: self._server.started, "the server did not start")
            yield self
        finally:
            self.gate = lambda: True
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(120)
            assert not self._thread.is_alive()

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": one, "object": "model"} for one in self.models]})

    async def _chat(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        while not self.gate():
            await asyncio.sleep(0.01)
        for fault in self.faults:
            if (response := fault(body)) is not None:
                return response
        return completed(self._answer(body))


def completed(answer: str | Body, finish: str = "stop") -> Response:
    """A response as endpoints give it."""
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return JSONResponse(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "stub", "choices": [choice], "usage": usage}
    )


def refused(status: int, message: str = "no", code: str | None = None, **headers: str) -> Response:
    """An error as endpoints give it."""
    error = {"message": message, "type": "error", "code": code}
    return JSONResponse(
        {"error": error}, status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def first(count: int, response: Callable[[], Response]) -> Fault:
    """A fault of the first requests."""
    left = [count]

    def fault(body: Body) -> Response | None:
        left[0] -= 1
        return response() if left[0] >= 0 else None

    return fault


def guess(body: Body) -> str:
    """A player of GuessTheNumber that is no better than chance, and always the same."""
    import hashlib

    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    return f"\\boxed{{{digest[0] % 10 + 1}}}"
