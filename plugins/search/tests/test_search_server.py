"""The search server: its two ways to speak, its limits, its corpus and index, and how it starts and ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from search_servers import COMMAND, Server, asking, serving

from gem_core.errors import ToolError
from gem_search._bm25 import Bm25
from gem_search._budget import ByteBudget, OverBudget
from gem_search._corpus import BUNDLED, read_corpus
from gem_search._index import Index, open_index
from gem_search.tool import SearchTool

LINES = [
    {"id": "a", "contents": "Zebra\nA zebra has stripes."},
    {"title": "Lion", "text": "A lion has a mane."},
    {"id": 3, "text": "Zebras run from lions.", "more": {"of": "no concern"}},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n\n".join(map(json.dumps, LINES)))
    return path


def ended(*options: str | Path) -> tuple[int, str]:
    """A server that does not get as far as serving: its exit status and what it says."""
    process = subprocess.run([*COMMAND, *map(str, options)], capture_output=True, text=True, timeout=240)
    return process.returncode, process.stderr.splitlines()[-1]


# -- what it answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/retrieve", "/", "/search", "/inference"])
def test_gem_llms_client_is_answered_as_it_expects(server: Server, path: str) -> None:
    # The very bytes that gem-llm 0.1.0 sends, without a content type.
    body = b"\x83\xa5query\xb1capital of Canada\xa4topk\x02\xadreturn_scores\xc3"
    reply = httpx2.post(server.base + path, content=body)
    assert reply.headers["content-type"] == "application/msgpack"
    first, second = msgspec.msgpack.decode(reply.content)["result"]
    assert first["document"]["contents"].startswith("Ottawa\nOttawa, in the province of Ontario, is the capital")
    assert first["document"]["id"] == "ottawa"
    assert first["score"] > second["score"] > 0


def test_json_is_answered_as_json_in_the_shapes_of_gem_llm_and_search_r1(server: Server) -> None:
    one = {"query": "Mona Lisa", "topk": 1}
    many = {"queries": ["Mona Lisa", "xyzzy"], "topk": 1}
    document = {"contents": _contents("mona-lisa"), "id": "mona-lisa"}
    (hit,) = _ask(server, {**one, "return_scores": True})
    assert hit["document"] == document
    assert hit["score"] > 1
    assert _ask(server, one) == [{"document": document, "score": None}]
    assert _ask(server, many) == [[document], []]
    assert _ask(server, {**many, "return_scores": True}) == [[hit], []]
    assert len(_ask(server, {"query": "the largest city of the country"})) == 3


def _ask(server: Server, request: dict[str, Any]) -> Any:
    reply = httpx2.post(server.url, json=request, timeout=240)
    assert reply.headers["content-type"] == "application/json"
    return reply.json()["result"]


def _contents(id: str) -> str:
    (row,) = [row for row in map(json.loads, BUNDLED.read_text().splitlines()) if row["id"] == id]
    return row["contents"]


@pytest.mark.parametrize(
    ("sent", "accept", "got"),
    [
        ("application/json", "application/msgpack", "application/msgpack"),
        ("application/x-msgpack", "application/json", "application/json"),
        ("application/x-www-form-urlencoded", "*/*", "application/json"),
    ],
)
def test_the_headers_choose_the_form(server: Server, sent: str, accept: str, got: str) -> None:
    encode = msgspec.msgpack.encode if "msgpack" in sent else msgspec.json.encode
    headers = {"Content-Type": sent, "Accept": accept}
    reply = httpx2.post(server.url, content=encode({"query": "Mars"}), headers=headers)
    assert reply.headers["content-type"] == got
    decode = msgspec.msgpack.decode if "msgpack" in got else msgspec.json.decode
    assert decode(reply.content)["result"][0]["document"]["id"] == "mars"


def test_health_tells_what_is_served(server: Server) -> None:
    told = httpx2.get(server.base + "/health").json()
    assert told["status"] == "ready"
    assert told["passages"] == len(BUNDLED.read_text().splitlines()) > 200
    assert told["retriever"] == "bm25"


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "no application/msgpack of a query"),
        (b"{", 400, "no application/json of a query"),
        (b"\xff\xfe\x00", 400, "no application/msgpack of a query"),
        (b'{"query": 7}', 400, "Expected `str | null`, got `int`"),
        (b'{"query": "\xff"}', 400, "no application/json"),
        (b'{"x": ' + b"[" * 100_000 + b'], "query": "a"}', 400, "no application/json"),
        (b"{}", 400, "either 'query', a text, or 'queries', a list"),
        (b'{"query": "a", "queries": ["b"]}', 400, "either 'query'"),
        (b'{"query": " \\n"}', 400, "a query is empty"),
        (b'{"query": "' + b"a" * 4097 + b'"}', 400, "has 4097 characters, and may have 4096"),
        (b'{"queries": []}', 400, "from 1 to 1000 texts, not 0"),
        (b'{"queries": [' + b'"a",' * 1000 + b'"a"]}', 400, "from 1 to 1000 texts, not 1001"),
        (b'{"query": "a", "topk": 101}', 400, "'topk' must be from 1 to 100, not 101"),
        (b'{"query": "a", "topk": -1}', 400, "'topk' must be from 1 to 100, not -1"),
        (b'{"query": "a", "topk": 1e99}', 400, "topk"),
        (b" " * (16 * 2**20 + 1), 413, "more than 16777216 bytes"),
    ],
)
def test_bad_requests_are_told_what_is_wrong(server: Server, body: bytes, status: int, reason: str) -> None:
    reply = httpx2.post(server.url, content=body)
    assert reply.status_code == status
    assert reason in reply.json()["error"]


def test_an_answer_has_a_limit_that_is_known_before_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(json.dumps({"contents": f"{number}\n{'word ' * 20_000}"}) for number in range(20)))
    with serving("--corpus", path) as server:
        reply = httpx2.post(server.url, json={"queries": ["word"] * 1000, "topk": 20}, timeout=240)  # 2 GB
        assert reply.status_code == 413
        assert "Next: ask fewer queries at once" in reply.json()["error"]
        found = _ask(server, {"queries": ["word"] * 25, "topk": 20})
        assert [len(documents) for documents in found] == [20] * 25
        most = Path(f"/proc/{server.process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(most) < 600_000  # KB


def test_requests_share_memory_and_give_it_back() -> None:
    budget = ByteBudget(100)
    with budget.share() as take, budget.share() as take_too:
        take(60)
        with pytest.raises(OverBudget):
            take_too(41)
        take_too(40)
    with budget.share() as take:
        take(100)


def test_pages_of_other_sites_are_refused_in_json(server: Server) -> None:
    for headers, status in (({"Host": "evil.example"}, 400), ({"Origin": "null"}, 403)):
        reply = httpx2.post(server.url, json={"query": "Mars"}, headers=headers)
        assert (reply.status_code, "error" in reply.json()) == (status, True)


def test_other_places_and_methods_are_refused_in_json(server: Server) -> None:
    assert "POST to /retrieve" in httpx2.get(server.base + "/nowhere").json()["error"]
    assert httpx2.get(server.url).status_code == 405


def test_many_callers_get_each_their_own_and_health_does_not_wait(server: Server) -> None:
    words = _ids()
    replies: dict[int, Any] = {}

    def ask(number: int) -> None:
        queries = [f"{words[(number + shift) % len(words)]}" for shift in range(100)]
        replies[number] = queries, _ask(server, {"queries": queries, "topk": 1 + number % 5})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    during = 0
    while any(thread.is_alive() for thread in threads):
        assert httpx2.get(server.base + "/health", timeout=240).status_code == 200
        during += len(replies) < 32
    assert during > 0
    assert len(replies) == 32
    for number, (queries, found) in replies.items():
        assert len(found) == 100
        assert all(1 <= len(documents) <= 1 + number % 5 for documents in found)
        for query, documents in zip(queries, found, strict=True):
            assert set(query.split()) & set(documents[0]["contents"].lower().split())


def _ids() -> list[str]:
    """Titles of one plain word."""
    titles = [json.loads(line)["contents"].splitlines()[0] for line in BUNDLED.read_text().splitlines()]
    return [title.lower() for title in titles if title.isalpha()]


# -- corpus and index ----------------------------------------------------------------------------------------------


def test_a_corpus_of_ones_own_is_searched(corpus: Path) -> None:
    with serving("--corpus", corpus, "--topk", "1") as server:
        assert _ask(server, {"query": "stripes"})[0]["document"] == LINES[0]
        assert _ask(server, {"query": "mane"})[0]["document"] == {"contents": "Lion\nA lion has a mane.", "id": "1"}
        with asking(SearchTool(server.url)) as ask:
            assert "Doc 1(Title: Zebras run from lions.) \n" in ask("running")[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("zebra", "invalid character"),
        ('{"id": "1"}', "there is no text"),
        ('{"contents": " \\n"}', "there is no text"),
        ('{"contents": 7}', "Expected `str | null`, got `int`"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"contents": "\udcff"}', "line 3"),
    ],
)
def test_a_bad_line_is_an_error_with_its_place(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"contents": "good"}}\n\n{line}\n', errors="surrogateescape")
    with pytest.raises(ToolError) as error:
        read_corpus(path)
    assert f"{path}, line 3: " in str(error.value)
    assert reason in str(error.value)


def test_what_cannot_be_served_is_said_before_serving(tmp_path: Path, corpus: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    assert ended("--corpus", bad) == (1, f"Error: {bad}, line 1: there is no text. {_LOOKS}")
    status, error = ended("--model", "some-encoder", "--corpus", corpus)
    assert (status, "are for --retriever dense" in error) == (1, True)


_LOOKS = 'A line looks like {"id": "7", "contents": "Title\\nText"} or {"title": "Title", "text": "Text"}'


@pytest.mark.parametrize(("text", "reason"), [(None, "No such file"), ("\n \n", "has no passage")])
def test_no_corpus_is_an_error(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "none.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ToolError, match=reason):
        open_index(path, Bm25(), None)


def test_passages_stay_in_their_file_in_their_order(corpus: Path) -> None:
    passages = read_corpus(corpus)
    assert len(passages) == 3
    assert [passages[number].contents for number in (2, 0, 1)] == [[*passages.texts()][number] for number in (2, 0, 1)]
    assert [passages[number].id for number in range(3)] == ["a", "1", 3]


def test_words_are_found_in_their_forms_and_others_not() -> None:
    index = open_index(BUNDLED, Bm25(), None)
    assert _first(index, "PAINTERS; of: Tuscany!") == "leonardo-da-vinci"
    assert index.search(["", "the of and", "qwertz", "日本"], 5) == [[], [], [], []]
    (found,) = index.search(["the planet"], 100)
    assert 5 < len(found) < 100
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)


def _first(index: Index, query: str) -> Any:
    return index.corpus[index.search([query], 3)[0][0][0]].id


def test_an_index_is_kept_and_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "index"
    with serving("--index", folder) as server:
        first = _ask(server, {"query": "Which river flows through Vienna?", "return_scores": True})
    files = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    index = open_index(BUNDLED, Bm25(), folder)
    again = index.search(["Which river flows through Vienna?"], 3)[0]
    found = [{"document": msgspec.to_builtins(index.corpus[number]), "score": score} for number, score in again]
    assert found == first
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == files
    assert [path.name for path in folder.parent.iterdir()] == ["index"]


def _other_corpus(folder: Path, corpus: Path) -> None:
    corpus.write_text(corpus.read_text().replace("Zebra", "Okapi"))


def _other_settings(folder: Path, corpus: Path) -> None:
    manifest = folder / "gem_search.json"
    manifest.write_text(manifest.read_text().replace('"bm25"', '"dense"'))


def _other_version(folder: Path, corpus: Path) -> None:
    manifest = folder / "gem_search.json"
    manifest.write_text(manifest.read_text().replace('"version":1', '"version":0'))


def _no_manifest(folder: Path, corpus: Path) -> None:
    (folder / "gem_search.json").unlink()


def _damage(folder: Path, corpus: Path) -> None:
    for path in folder.glob("*.npy"):
        path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_other_corpus, "was built from another corpus"),
        (_other_settings, "was built with .*dense.*, not .*bm25"),
        (_other_version, "of another version"),
        (_no_manifest, "no index of this program"),
        (_damage, "cannot be read"),
    ],
)
def test_an_index_of_something_else_is_refused(
    tmp_path: Path, corpus: Path, change: Callable[[Path, Path], None], reason: str
) -> None:
    folder = tmp_path / "index"
    open_index(corpus, Bm25(), folder)
    change(folder, corpus)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ToolError, match=reason):
        open_index(corpus, Bm25(), folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_index_that_cannot_be_saved_is_an_error(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(ToolError, match="cannot be saved"):
        open_index(corpus, Bm25(), corpus / "index")
    assert [*tmp_path.iterdir()] == [corpus]


# -- beginning and end ---------------------------------------------------------------------------------------------


def test_a_busy_port_is_an_error(server: Server) -> None:
    status, error = ended("--port", str(server.port))
    assert status == 1
    assert error.startswith(f"Error: cannot listen at 127.0.0.1:{server.port}: Address already in use.")


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_though_clients_hang_on(how: signal.Signals, status: int) -> None:
    with serving() as server:
        assert [line.split()[0] for line in server.output] == ["Reading", "229", "Listening"]
        with httpx2.Client() as idle, socket.create_connection(("127.0.0.1", server.port)) as halfway:
            assert idle.get(server.base + "/health").status_code == 200
            halfway.sendall(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
            server.process.send_signal(how)
            assert server.process.wait(timeout=240) == status
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(server.base + "/health")


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    corpus = tmp_path / "large.jsonl"
    line = json.dumps({"contents": " ".join(f"word{number}" for number in range(200))}) + "\n"
    corpus.write_text(line * 20_000)
    options = ["--corpus", str(corpus), "--index", str(tmp_path / "index"), "--port", "0"]
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"Reading {corpus}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=240) == 0
        assert process.stdout.read() == ""
    assert [*tmp_path.iterdir()] == [corpus]


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, corpus: Path) -> None:
    class Interrupted(Bm25):
        def save(self, folder: Path) -> None:
            super().save(folder)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_index(corpus, Interrupted(), tmp_path / "index")
    assert [*tmp_path.iterdir()] == [corpus]
