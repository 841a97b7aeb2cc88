"""Models behind a real endpoint on this machine, which misbehaves on request."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from gem_evaluation import ModelSetupError, evaluate, load_model
from gem_evaluation._chat import ChatModel
from gem_evaluation._conversation import Message, Prompt, Reply
from gem_evaluation._endpoints import Endpoint
from gem_evaluation._errors import ModelError
from gem_support.chat_server import ChatServer, completed, first, guess, refused

PROMPT = Prompt([Message("user", "How are you?")])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_evaluation._chat.FIRST_WAIT", 0.001)
    monkeypatch.setattr("gem_evaluation._limiter.FIRST_PAUSE", 0.001)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda body: "fine").running() as found:
        yield found


def ask(server: ChatServer, prompt: Prompt = PROMPT, **settings: Any) -> Reply:
    """One response of the server."""
    endpoint = Endpoint("stub", server.url, **settings.pop("endpoint", {}))

    async def asked() -> Reply:
        model = ChatModel(endpoint, **settings)
        async with model.session():
            return await model.respond(prompt, "an episode")

    return asyncio.run(asked())


def test_a_response_has_its_text_and_what_it_took(server: ChatServer) -> None:
    reply = ask(server, options={"temperature": 0.5})
    assert (reply.text, reply.truncated, reply.calls) == ("fine", False, ())
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.requests) == (10, 5, 1)
    [body] = server.requests
    assert body == {"model": "stub", "messages": [{"role": "user", "content": "How are you?"}], "temperature": 0.5}


@pytest.mark.parametrize(
    "response",
    [
        lambda: refused(500),
        lambda: refused(503, retry_after="0.01"),
        lambda: refused(429, retry_after="0.01"),
        lambda: refused(429, retry_after="Thu, 01 Jan 1970 00:00:00 GMT"),
        lambda: JSONResponse({"id": "x", "choices": []}),
        lambda: JSONResponse({"id": "x", "choices": None}),
        lambda: JSONResponse({"id": "x", "choices": ["fine"]}),
        lambda: JSONResponse({"id": "x", "choices": {"message": "fine"}}),
        lambda: JSONResponse({"error": {"message": "busy", "code": 529}}),
        lambda: completed({"content": 5}),
        lambda: JSONResponse({"choices": [{"message": {"content": ""}, "finish_reason": "error"}]}),
        lambda: Response("{", media_type="application/json"),
        lambda: Response("<html>busy</html>", media_type="text/html"),
        lambda: Response('{"choices":' + "[" * 200_000 + "]" * 200_000 + "}", media_type="application/json"),
        lambda: Response(b"x" * (9 << 20), media_type="application/json"),
        lambda: Response(gzip.compress(b"x" * (9 << 20)), headers={"content-encoding": "gzip"}),
        lambda: Response(b"fine", headers={"content-encoding": "br"}),
        lambda: Response(b"{}", headers={"x-long": "y" * 70_000}),
        lambda: RedirectResponse("http://127.0.0.1:9/v1"),
        # Python's codec of this name takes hours for that.
        lambda: Response(b"a" * (1 << 20) + b"-" + b"z" * (1 << 20), 500, media_type="text/plain; charset=punycode"),
    ],
    ids=[
        "500",
        "503",
        "429",
        "429 with a date",
        "no choice",
        "null",
        "text",
        "no list",
        "error",
        "number",
        "broken off",
        "half a document",
        "a page",
        "nested",
        "large",
        "compressed",
        "another compression",
        "a long header",
        "a redirect",
        "a charset",
    ],
)
def test_a_passing_fault_costs_a_request_and_nothing_else(server: ChatServer, response: Any) -> None:
    server.faults = [first(2, response)]
    reply = ask(server)
    assert (reply.text, reply.usage.requests) == ("fine", 3)


@pytest.mark.parametrize("length", [b"100", b"88888888888888888888"])
def test_a_cut_connection_is_tried_again(server: ChatServer, length: bytes) -> None:
    class Cut(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
            await send({"type": "http.response.body", "body": b"{", "more_body": False})

    server.faults = [first(1, Cut)]
    assert ask(server).usage.requests == 2


def test_silence_ends_with_the_time_limit(server: ChatServer) -> None:
    server.gate = lambda: len(server.requests) > 1
    reply = ask(server, timeout=5)
    assert (reply.text, reply.usage.requests >= 2) == ("fine", True)


def test_a_reply_in_drops_ends_with_the_time_limit(server: ChatServer) -> None:
    class Drops(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while len(server.requests) == 1:
                await send({"type": "http.response.body", "body": b" ", "more_body": True})
                await asyncio.sleep(0.05)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    server.faults = [first(1, Drops)]
    assert ask(server, timeout=1).usage.requests == 2


def test_a_prompt_goes_nowhere_else(server: ChatServer) -> None:
    with ChatServer(guess).running() as other:
        server.faults = [lambda body: RedirectResponse(f"{other.url}/chat/completions", 307)]
        with pytest.raises(ModelError, match=rf"307: it redirects to '{other.url}/chat/completions'"):
            ask(server)
        assert not other.requests


def test_a_lasting_fault_is_the_last_word_of_the_endpoint(server: ChatServer) -> None:
    server.faults = [lambda body: refused(500, "the disk is full")]
    with pytest.raises(ModelError, match="no response after 6 requests; the last one: 500: the disk is full"):
        ask(server)


def test_refusals_are_no_failures(server: ChatServer) -> None:
    server.faults = [first(10, lambda: refused(429, retry_after="0"))]
    assert ask(server).usage.requests == 11


@pytest.mark.parametrize(
    "said",
    [
        {"message": "This model's maximum context length is 1024 tokens. However, you requested 2000 tokens"},
        {"message": "too long", "code": "context_length_exceeded"},
    ],
)
def test_a_prompt_that_does_not_fit_is_no_failure(server: ChatServer, said: dict[str, str]) -> None:
    server.faults = [lambda body: refused(400, **said)]
    assert ask(server).context_full


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_only_a_later_turn_is_refused_for_is_its_length(status: int) -> None:
    """Whatever the endpoint says: it took the beginning of the same conversation."""
    with ChatServer(guess).running() as server:
        server.faults = [lambda body: refused(status, "no") if len(body["messages"]) > 1 else None]
        results = evaluate("game:GuessTheNumber-v0-easy", ChatModel(Endpoint("stub", server.url)), tasks=5)
    assert results.together.episodes.finished == 5
    assert results.together.policy_faults["context_full"] >= 3


def test_milliseconds_to_wait_come_first(server: ChatServer) -> None:
    server.faults = [first(1, lambda: refused(429, retry_after="1000000", retry_after_ms="10"))]
    assert ask(server).usage.requests == 2


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 507, 520, 522, 524, 529])
def test_what_may_pass_is_asked_again(server: ChatServer, status: int) -> None:
    server.faults = [first(1, lambda: refused(status, "later"))]
    assert ask(server).usage.requests == 2


def test_what_is_not_implemented_is_not_asked_again(server: ChatServer) -> None:
    server.faults = [lambda body: refused(501, "never")]
    with pytest.raises(ModelError, match="501: never"):
        ask(server)
    assert len(server.requests) == 1


def test_what_the_endpoint_does_not_understand_fails_the_episode(server: ChatServer) -> None:
    server.faults = [lambda body: refused(400, "top_k is not a field")]
    with pytest.raises(ModelError, match="400: top_k is not a field"):
        ask(server)


@pytest.mark.parametrize(
    "response",
    [
        lambda: refused(401, "wrong key"),
        lambda: refused(429, "pay first", code="insufficient_quota"),
        lambda: refused(402, "pay first"),
    ],
)
def test_what_no_repetition_mends_ends_the_evaluation(server: ChatServer, response: Any) -> None:
    server.faults = [lambda body: response()]
    with pytest.raises(ModelSetupError, match=r"wrong key|pay first"):
        ask(server)
    assert len(server.requests) == 1


def test_an_endpoint_that_asks_for_days_ends_the_evaluation(server: ChatServer) -> None:
    server.faults = [lambda body: refused(429, "come back later", retry_after="1000000")]
    with pytest.raises(ModelSetupError, match=r"asks to wait 1000000 seconds \(429: come back later\)"):
        ask(server)


@pytest.mark.parametrize("value", ["inf", "nan", "9" * 20, "soon", "Tue, 03 Mar 99999999999999999999 00:00:00 GMT"])
def test_a_wait_that_cannot_be_meant_is_no_wait(server: ChatServer, value: str) -> None:
    server.faults = [first(1, lambda: refused(429, retry_after=value))]
    assert ask(server).usage.requests == 2


def test_an_unknown_model_is_answered_with_those_there_are(server: ChatServer) -> None:
    server.models = ["qwen", "llama"]
    with pytest.raises(ModelSetupError, match=r"has no model 'stub'.* It has: qwen, llama"):
        ask(server)


def test_a_wrong_url_is_named() -> None:
    with pytest.raises(ModelSetupError, match=r"no server answers at http://127.0.0.1:9/v1/"):
        evaluate("qa:Sample", load_model("stub", base_url="http://127.0.0.1:9/v1"), tasks=1)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelSetupError, match="OPENAI_API_KEY, which holds the key for gpt-x, is not set"):
        evaluate("qa:Sample", load_model("gpt-x"), tasks=1)


@pytest.mark.parametrize("key", ["secret-123\n", "secret-123\rX-Other: 1", "s\u00e9cret-123"])
def test_a_key_that_cannot_be_sent_is_named(server: ChatServer, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelSetupError, match="OPENAI_API_KEY has a character that no key can have") as refusal:
        ask(server)
    assert "cret" not in str(refusal.value)
    assert not server.requests


def test_a_key_goes_to_the_endpoint_and_nowhere_else(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("MY_KEY", "secret-123")
    model = ChatModel(Endpoint("stub", server.url, api_key_env="MY_KEY"))
    evaluate("qa:Sample", model, tasks=2, output=tmp_path)
    assert server.headers[-1]["authorization"] == "Bearer secret-123"
    assert not any(b"secret-123" in path.read_bytes() for path in tmp_path.iterdir())


def test_replicas_share_the_requests() -> None:
    with ChatServer(guess).running() as one, ChatServer(guess).running() as other:
        model = ChatModel(Endpoint("stub", [one.url, other.url]), concurrency=4)
        results = evaluate("game:GuessTheNumber-v0-easy", model, tasks=20)
        assert results.together.episodes.finished == 20
        assert one.requests
        assert other.requests


def test_text_that_was_cut_off_reaches_the_environment_as_nothing(server: ChatServer) -> None:
    server.faults = [lambda body: completed("\\boxed{1} and then", finish="length")]
    results = evaluate("game:GuessTheNumber-v0-easy", ChatModel(Endpoint("stub", server.url)), tasks=3)
    assert results.together.truncated_share == results.together.invalid_share == 1.0


def test_other_forms_of_a_response_are_read(server: ChatServer) -> None:
    functions = [{"name": "python", "arguments": {"code": "1"}}, {"name": "python", "arguments": None}]
    calls = [{"id": 7, "function": functions[0]}, {"function": functions[1]}, {"id": "x"}]
    server.faults = [lambda body: completed({"content": [{"type": "text", "text": "fine"}], "tool_calls": calls})]
    reply = ask(server)
    assert reply.text == "fine"
    assert [(call.id, call.arguments) for call in reply.calls] == [("7", '{"code": "1"}'), ("call_1", "")]


def test_half_a_character_in_a_response_is_not_the_endpoints_fault(server: ChatServer) -> None:
    page = r'{"choices": [{"message": {"content": "\\boxed{3} \ud800"}}]}'
    server.faults = [lambda body: Response(page, media_type="application/json")]
    results = evaluate("game:GuessTheNumber-v0-easy", ChatModel(Endpoint("stub", server.url)), tasks=1)
    assert results.together.episodes.finished == 1
    assert results.together.requests == len(server.requests) > 1


def test_a_key_that_the_endpoint_repeats_is_not_written_down(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-123")
    server.faults = [first(1, lambda: refused(400, "key secret-123?")), lambda body: refused(500, "key secret-123?")]
    for _ in range(2):
        with pytest.raises(ModelError, match=r"key \*\*\*\?"):
            ask(server)


def test_no_file_of_a_run_has_a_part_of_the_key(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    key = "sk-proj-Zq8vT3mWx5Lr9KpY2nBd7JfHcG4sAeU6"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = itertools.cycle([refused(400, "x" * 470 + key), refused(400, key), completed(f"\\boxed{{5}} {key}")])
    server.faults = [lambda body: next(said)]
    evaluate("game:GuessTheNumber-v0-easy", ChatModel(Endpoint("stub", server.url)), tasks=6, output=tmp_path)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"***" in written
    assert not any(key[start : start + 8].encode() in written for start in range(len(key) - 7))


def test_a_list_of_models_does_not_show_the_key(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-proj-Zq8vT3mWx5Lr9KpY2nBd7JfHcG4sAeU6"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.models = [f"stub2 {key}", "x" * 190 + key]
    with pytest.raises(ModelSetupError, match=r"It has: stub2 \*\*\*, x+") as refusal:
        ask(server)
    assert not any(key[start : start + 8] in str(refusal.value) for start in range(len(key) - 7))


def test_a_password_in_a_url_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ModelSetupError, match="a user or a password") as refusal:
        evaluate("qa:Sample", load_model("stub", base_url="http://me:hunter2@127.0.0.1:9/v1"), output=tmp_path / "run")
    assert "hunter2" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_a_url_that_ends_too_early_is_named(server: ChatServer) -> None:
    url = server.url.removesuffix("/v1")
    with pytest.raises(ModelSetupError, match=rf"{url} has no such page.*usually ends in /v1"):
        evaluate("qa:Sample", load_model("stub", base_url=url), tasks=1)
