"""The search tool: what a policy sees of a server that answers, is slow, is dead, or lies."""

from __future__ import annotations

import os
import pickle
import threading
import time
from functools import partial
from typing import Any

import msgspec
import pytest
from search_servers import Liar, Server, asking, drips, floods, says, says_raw, serving, silent

import gem_core
from gem_core.errors import ToolError
from gem_core.tools import Toolbox, ToolEnv
from gem_search._messages import Document, Found, Hit
from gem_search.tool import SearchTool
from gem_support.waiting import wait_until

GOOD = msgspec.msgpack.encode(
    Found([Hit(Document('"Rome"\nIt lies\non the Tiber.')), Hit(Document("Bare title"), 0.5)])
)
SHOWN = '\n\n<information>Doc 1(Title: "Rome") It lies\non the Tiber.\nDoc 2(Title: Bare title) \n</information>\n\n'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\n"


def passage(contents: Any) -> bytes:
    return msgspec.msgpack.encode({"result": [{"document": {"contents": contents}}]})


@pytest.fixture(autouse=True)
def _no_address_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCH_URL", raising=False)


# -- a server that answers -----------------------------------------------------------------------------------------


def test_a_result_has_the_frame_of_gem_llm_and_counts_as_a_success() -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        observation, info = ask(" Rome ")
    assert observation == SHOWN
    assert (info["tool_use_counter"], info["tool_success_counter"], info["tool_type"]) == (1, 1, "search")
    assert "tool_error" not in info


def test_the_request_is_that_of_gem_llms_client_byte_by_byte() -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url, topk=5)) as ask:
        ask("who?")
    assert server.requests[0].startswith(b"POST /retrieve HTTP/1.1\r\n")
    assert server.requests[0].endswith(b"\r\n\r\n\x83\xa5query\xa4who?\xa4topk\x05\xadreturn_scores\xc3")


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = gem_core.make_tool("search:Passages")
    with pytest.raises(ToolError, match="gem-core search-server"), asking(tool):
        pass
    with Liar(says(GOOD)) as server:
        monkeypatch.setenv("SEARCH_URL", server.url)
        with asking(tool) as ask:
            assert ask("Rome")[0] == SHOWN


def test_more_results_than_wanted_are_cut_and_none_is_said() -> None:
    nothing = says(msgspec.msgpack.encode({"result": []}))
    with Liar(says(GOOD), nothing) as server, asking(SearchTool(server.url, topk=1)) as ask:
        assert "Doc 2" not in ask("one")[0]
        observation, info = ask("two")
    assert observation == "\n\n<information>Nothing was found.\n</information>\n\n"
    assert info["tool_success_counter"] == 2


def test_texts_are_cleaned() -> None:
    contents = "  Ti\x1b[2Jtle\r\n\x00te\x9bxt\u00e9 \n"
    with Liar(says(passage(contents))) as server, asking(SearchTool(server.url)) as ask:
        assert "(Title: Ti[2Jtle) texté\n<" in ask("x")[0]


@pytest.mark.parametrize(("query", "said"), [("  ", "empty"), ("long " * 1000, "more than 4096 characters")])
def test_a_query_that_cannot_be_is_not_sent(query: str, said: str) -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        observation, info = ask(query)
    assert said in observation
    assert said in info["tool_error"]
    assert server.requests == []


def test_a_query_with_half_a_character_is_sent_without_it() -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        assert ask("Ro\ud800me")[0] == SHOWN
    assert b"\xa4Rome" in server.requests[0]


# -- memory --------------------------------------------------------------------------------------------------------


def test_results_are_remembered_until_others_push_them_out() -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url, cache=2)) as ask:
        for query in ("a", "b", "a", "a", "c", "a", "b"):
            assert ask(query)[0] == SHOWN
    assert [_query(request) for request in server.requests] == ["a", "b", "c", "b"]


def test_nothing_is_remembered_without_a_cache_and_no_failure_ever() -> None:
    with Liar(says(GOOD)) as server, asking(SearchTool(server.url, cache=0)) as ask:
        ask("a"), ask("a")
    assert len(server.requests) == 2
    with Liar(says(b"", "404 Not Found"), says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        assert "tool_error" in ask("a")[1]
        assert ask("a")[0] == SHOWN


def test_a_result_of_megabytes_is_not_kept() -> None:
    with Liar(says(passage("long " * 100_000)), says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        assert "long" in ask("a")[0]
        assert ask("a")[0] == SHOWN


def test_cookies_are_not_kept() -> None:
    with Liar(says(GOOD, more="Set-Cookie: a=b\r\n")) as server, asking(SearchTool(server.url)) as ask:
        ask("a"), ask("b")
    assert b"cookie" not in server.requests[1].lower()


def test_what_a_server_adds_to_a_passage_is_not_read() -> None:
    no_time = b"\xc7\x0c\xff" + b"\xff" * 12  # whoever makes an object of it raises
    answer = b"\x81\xa6result\x91\x81\xa8document\x82\xa8contents\xa4Rome\xa2id" + no_time
    with Liar(says(answer)) as server, asking(SearchTool(server.url)) as ask:
        assert "(Title: Rome)" in ask("a")[0]


def _query(request: bytes) -> str:
    return msgspec.msgpack.decode(request.partition(b"\r\n\r\n")[2])["query"]


# -- a server that fails, is slow, or lies -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [says(b"", "503 Service Unavailable"), says(b"", "429 Too Many"), says(b"<h1>", "500 Oops"), says_raw(b"")],
)
def test_what_may_pass_is_tried_again(failure: Any) -> None:
    with Liar(failure, failure, says(GOOD)) as server, asking(SearchTool(server.url)) as ask:
        assert ask("Rome")[0] == SHOWN
    assert len(server.requests) == 3
    with Liar(failure) as server, asking(SearchTool(server.url, retries=1)) as ask:
        observation, info = ask("Rome")
    assert len(server.requests) == 2
    assert observation.startswith("\n\n<information>Error: the search server ")
    assert server.url in info["search_error"]


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "413 Too Large", "204 No Content"])
def test_a_refusal_is_not_tried_again(status: str) -> None:
    with Liar(says(b"", status)) as server, asking(SearchTool(server.url)) as ask:
        observation, info = ask("Rome")
    assert len(server.requests) == 1
    assert "refused" in observation
    assert info["search_error"].endswith(status[:3])
    assert info["tool_success_counter"] == 0


def test_redirects_are_not_followed() -> None:
    with Liar(says(b"", "302 Found", more="Location: /retrieve\r\n")) as server, asking(SearchTool(server.url)) as ask:
        assert "refused" in ask("Rome")[0]
    assert len(server.requests) == 1


DEEP = 100_000
LIES = {
    "nothing": says(b""),
    "noise": says(bytes(range(256)) * 8),
    "a web page": says(b"<html><body>Welcome to the login page</body></html>", kind="text/html"),
    "JSON": says(b'{"result": []}', kind="application/json"),
    "another schema": says(msgspec.msgpack.encode({"results": []})),
    "a list": says(msgspec.msgpack.encode([1, 2])),
    "results that are none": says(msgspec.msgpack.encode({"result": [{"document": None}]})),
    "contents that are a number": says(passage(7)),
    "contents that are missing": says(msgspec.msgpack.encode({"result": [{"document": {}}]})),
    "nesting": says(b"\x81\xa6result" + b"\x91" * DEEP + b"\x90"),
    "nesting where nobody looks": says(b"\x82\xa1x" + b"\x91" * DEEP + b"\x90" + b"\xa6result\x90"),
    "invalid UTF-8": says(b"\x81\xa6result\x91\x81\xa8document\x81\xa8contents\xa2\xff\xfe"),
    "a lone surrogate": says(b"\x81\xa6result\x91\x81\xa8document\x81\xa8contents\xa3\xed\xa0\x80"),
    "a cut answer": says(GOOD[:-5]),
    "a huge length inside": says(b"\x81\xa6result\xdd\xff\xff\xff\xff"),
    "compressed noise": says(b"\x1f\x8b" + b"x" * 100, more="Content-Encoding: gzip\r\n"),
    "a body without end": floods(OK + b"\r\n", b"x" * 65536),
    "a body said to be long": floods(OK + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
    "chunks without end": floods(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    "bad chunks": says_raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "no HTTP": says_raw(b"220 mail.example ESMTP\r\n"),
    "headers without end": floods(OK, b"X: y\r\n" * 1000),
    "less than it said": says_raw(OK + b"Content-Length: 1000\r\n\r\nabc"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_an_error_that_the_model_can_read(lie: str) -> None:
    with Liar(LIES[lie]) as server, asking(SearchTool(server.url, retries=0)) as ask:
        observation, info = ask("Rome")
    assert observation.startswith("\n\n<information>Error: the search server")
    assert len(observation) < 200
    assert info["tool_error"]
    assert info["search_error"]


SLOW = {
    "silence": silent,
    "a slow head": drips(OK, b"X: y\r\n"),
    "a slow body": drips(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "slow chunks": drips(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}


@pytest.mark.parametrize("slowness", SLOW)
@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_the_time_limit_holds_for_the_whole_call(slowness: str) -> None:
    with Liar(SLOW[slowness]) as server, asking(SearchTool(server.url, timeout=1, retries=9)) as ask:
        begin = time.monotonic()
        observation, _ = ask("Rome")
        took = time.monotonic() - begin
    assert "no answer within 1 seconds" in observation
    assert 1 <= took < 10
    assert len(server.requests) == 1


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_retries_end_with_the_time_limit() -> None:
    with Liar(says(b"", "503 Busy")) as server, asking(SearchTool(server.url, timeout=2, retries=100)) as ask:
        assert "no answer within 2 seconds" in ask("Rome")[0]
    assert 1 < len(server.requests) < 20


# -- life ----------------------------------------------------------------------------------------------------------


def test_a_tool_can_be_sent_elsewhere_before_and_after_its_use() -> None:
    tool = gem_core.make_tool("search:Passages", topk=1)
    with Liar(says(GOOD)) as server:
        tool = pickle.loads(pickle.dumps(SearchTool(server.url, topk=1, cache=5)))
        for _ in range(2):
            with asking(tool) as ask:
                assert "Rome" in ask("Rome")[0]
            tool = pickle.loads(pickle.dumps(tool))
            assert (tool.topk, tool.timeout) == (1, 5.0)
    assert len(server.requests) == 2  # nothing is remembered once it is closed


def test_nothing_is_left() -> None:
    def state() -> tuple[int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    with Liar(says(GOOD)) as server:
        tool = SearchTool(server.url, cache=0)
        with asking(tool) as ask:  # whatever is opened once for good
            ask("x")
        before = state()
        for _ in range(3):
            with asking(tool) as ask:
                assert ask("x")[0] == ask("x")[0] == SHOWN
        with Liar(silent) as other, asking(SearchTool(other.url, timeout=0.2)) as ask:
            ask("x")
    wait_until(lambda: state() <= before)


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "localhost:8000"},
        {"url": "ftp://there/"},
        {"url": "http:///retrieve"},
        {"url": 7},
        {"topk": 0},
        {"topk": 101},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": "5"},
        {"retries": -1},
        {"cache": True},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=f"{next(iter(arguments.values()))!r}"):
        SearchTool(**arguments)


def test_sixteen_environments_share_a_toolbox_while_the_server_dies_and_comes_back() -> None:
    server = Server()
    toolbox = Toolbox([SearchTool(server.url, retries=1, cache=0)])
    wrapper = partial(ToolEnv, tools=toolbox, max_tool_uses=None)
    try:
        with gem_core.make_vec("qa:Sample", 16, backend="thread", seed=0, wrappers=[wrapper]) as vec:
            observations, _ = vec.reset()
            queries = [f"<search>{text.splitlines()[0]}</search>" for text in observations]
            for alive in (True, False, True):
                if not alive:
                    server.end()
                elif server.process.poll() is not None:
                    server = Server(port=server.port)
                replies, _, terminated, _, infos = vec.step(queries)
                assert not any(terminated)
                assert all(("tool_error" not in info) == alive for info in infos)
                assert all(("Doc 1(Title:" if alive else "cannot be reached") in reply for reply in replies)
            assert [(i["tool_use_counter"], i["tool_success_counter"]) for i in infos] == [(3, 2)] * 16
    finally:
        server.end()


def test_the_bundled_passages_answer_the_sample_questions() -> None:
    questions = gem_core.make("qa:Sample")
    with serving() as server, asking(SearchTool(server.url)) as ask:
        for index in range(40):
            shown, _ = questions.reset(row=index)
            found, _ = ask(shown.splitlines()[0])
            assert any(answer.lower() in found.lower() for answer in questions.unwrapped.answer), shown
