"""WikiGame on a wiki: a server of ours that speaks the parts of MediaWiki's API that are asked for."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_games import _mediawiki as mediawiki
from gem_games._encyclopedia import encyclopedia
from gem_games._mediawiki import ATTEMPTS, MediaWiki
from gem_games._page_text import PageText
from gem_games.wiki_game import WikiGame
from gem_testing import check_env

BOOK = encyclopedia(None)
PART = 2
"""Links in one answer."""


class Wiki(ThreadingHTTPServer):
    """The bundled encyclopedia as a wiki. Every page links to some that do not exist, and by redirects."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.redirects = {"Old Name": sorted(BOOK.titles)[0]}
        self.asked: list[dict[str, str]] = []
        self.troubles: list[tuple[int, dict[str, str], bytes]] = []
        """Answers that come first: status, headers, text."""
        self.silent = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/w/api.php"

    def answer(self, asked: dict[str, str]) -> dict[str, Any]:
        assert (asked["format"], asked["formatversion"]) == ("json", "2")
        if asked["action"] == "parse":
            return self.parsed(asked)
        if asked.get("list") == "allpages":
            assert (asked["apfilterredir"], asked["apnamespace"]) == ("nonredirects", "0")
            titles = [title for title in sorted(BOOK.titles) if title >= asked.get("apfrom", "")]
            pages = [{"pageid": 1, "ns": 0, "title": title} for title in titles[: int(asked["aplimit"])]]
            return {"batchcomplete": True, "query": {"allpages": pages}}
        return self.links(asked)

    def parsed(self, asked: dict[str, str]) -> dict[str, Any]:
        assert (asked["prop"], asked["section"], asked["redirects"]) == ("text", "0", "1")
        title = self.redirects.get(asked["page"], asked["page"])
        if title not in BOOK.pages:
            return {"error": {"code": "missingtitle", "info": "The page you specified doesn't exist."}}
        text = (
            f'<div class="mw"><table><tr><td>box</td></tr></table><p>{BOOK.pages[title].text}<sup>[1]</sup></p></div>'
        )
        return {"parse": {"title": title, "pageid": 1, "text": text}}

    def links(self, asked: dict[str, str]) -> dict[str, Any]:
        assert (asked["generator"], asked["gplnamespace"], asked["redirects"]) == ("links", "0", "1")
        links = [*sorted(BOOK.pages[asked["titles"]].links), asked["titles"]]
        start = int(asked.get("gplcontinue", "0"))
        assert asked.get("continue", "gplcontinue||") == "gplcontinue||"
        pages: list[dict[str, Any]] = [{"pageid": 7, "ns": 0, "title": one} for one in links[start : start + PART]]
        pages.append({"ns": 0, "title": f"Missing {start}", "missing": True})
        more = {"gplcontinue": str(start + PART), "continue": "gplcontinue||"}
        return {"query": {"pages": pages}, **({"continue": more} if start + PART < len(links) else {})}


class Handler(BaseHTTPRequestHandler):
    server: Wiki  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        self.server.asked.append(asked)
        assert self.headers["User-Agent"].startswith("gem-core")
        if self.server.troubles:
            status, headers, text = self.server.troubles.pop(0)
            if status == 0:
                self.server.silent.wait(60)
                return
        else:
            status, headers, text = 200, {}, json.dumps(self.server.answer(asked)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def wiki() -> Iterator[Wiki]:
    with Wiki() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.silent.set()
        server.shutdown()
        thread.join()


def test_pages_have_their_text_and_existing_links_of_all_answers(wiki: Wiki) -> None:
    library = MediaWiki(wiki.address)
    for title in BOOK.titles[:10]:
        page, own = library.page(title), BOOK.pages[title]
        assert page.title == title
        assert page.links == tuple(sorted(own.links))
        assert own.text.startswith(page.text)
        assert len(page.text) >= min(100, len(own.text))
    parts = [asked for asked in wiki.asked if "gplcontinue" in asked]
    assert len(parts) >= 10, "links came in several answers"


def test_a_redirect_leads_to_its_page(wiki: Wiki) -> None:
    library = MediaWiki(wiki.address)
    assert library.page("Old Name") == library.page(wiki.redirects["Old Name"])
    with pytest.raises(EnvError, match="missingtitle: The page you specified"):
        library.page("Nowhere")


def test_a_seed_is_an_episode_and_the_target_within_five_links(wiki: Wiki) -> None:
    env = gem_core.make("game:WikiGame-v0-easy", pages=wiki.address)
    assert isinstance(env, WikiGame)
    drawn: set[tuple[str, str]] = set()
    for seed in range(6):
        observation, info = env.reset(seed=seed)
        assert env.reset(seed=seed) == (observation, info)
        start, target = env.visited[0], env.target
        drawn.add((start, target))
        assert 1 <= BOOK.distances(start)[target] <= 5
        result = None
        while env.visited[-1] != target:
            step = min(env.page.links, key=lambda link: BOOK.distances(link)[target])
            result = env.step(f"\\boxed{{{step}}}")
        assert result is not None
        assert result[1:4] == (1.0, True, False)
    assert len(drawn) > 3


def test_it_keeps_the_contract(wiki: Wiki) -> None:
    check_env("game:WikiGame-v0-hard", pages=wiki.address)


BUSY = (503, {"Retry-After": "0"}, b"busy")
LAG = (200, {"Retry-After": "0"}, b'{"error": {"code": "maxlag", "info": "Waiting for a database"}}')
LIMITED = (429, {"Retry-After": "0"}, b"")


def test_a_wiki_that_is_busy_is_asked_again(wiki: Wiki) -> None:
    library = MediaWiki(wiki.address)
    title = BOOK.titles[0]
    before = library.page(title)
    wiki.troubles += [BUSY, LAG, LIMITED]
    assert library.page(title) == before
    assert not wiki.troubles


def test_a_wiki_that_stays_busy_is_an_error(wiki: Wiki) -> None:
    wiki.troubles += [BUSY] * ATTEMPTS
    with pytest.raises(EnvError, match=f"gave no answer in {ATTEMPTS} attempts: 503"):
        MediaWiki(wiki.address).title(random.Random(0))
    assert not wiki.troubles


def test_a_wiki_that_does_not_answer_is_an_error(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "SECONDS", 1.0)
    monkeypatch.setattr(mediawiki, "ATTEMPTS", 1)
    wiki.troubles += [(0, {}, b"")]
    with pytest.raises(EnvError, match="gave no answer in 1 attempts: TimeoutError"):
        MediaWiki(wiki.address).title(random.Random(0))


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ((200, {}, b"<html>A page</html>"), "does not answer as MediaWiki does, but b'<html>"),
        ((200, {}, b"[1]"), "does not answer as MediaWiki does"),
        ((404, {}, b""), "says 404 Not Found. Give the address of the wiki's api.php"),
        ((200, {}, b'{"error": {"code": "readapidenied", "info": "You need read permission"}}'), "readapidenied: You"),
        ((200, {}, b'{"query": {}}'), "unexpected answer"),
    ],
)
def test_what_is_no_wiki_is_refused_at_once(wiki: Wiki, trouble: tuple[int, dict[str, str], bytes], said: str) -> None:
    wiki.troubles += [trouble] * 2
    with pytest.raises(EnvError, match=said):
        MediaWiki(wiki.address).page(BOOK.titles[0])
    assert len(wiki.asked) == 1
    with pytest.raises(EnvError, match=said):
        MediaWiki(wiki.address).title(random.Random(0))


def test_a_wiki_that_is_gone_is_an_error_of_the_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "ATTEMPTS", 1)
    with Wiki() as server:
        address = server.address
    with pytest.raises(EnvError, match=r"gave no answer in 1 attempts: .*refused"):
        gem_core.make("game:WikiGame-v0-easy", pages=address).reset(seed=0)


@pytest.mark.parametrize("address", ["http://[", "no address", "/w/api.php", ""])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(EnvError, match=r"is no address.*api\.php"):
        MediaWiki(address)


def test_an_error_in_another_form_is_an_error(wiki: Wiki) -> None:
    wiki.troubles = [(200, {"Retry-After": "²"}, b'{"error": "x"}')]
    with pytest.raises(EnvError, match="says x"):
        MediaWiki(wiki.address).page("Old Name")


def test_paragraphs_are_told_apart_and_a_head_may_have_no_end() -> None:
    assert PageText("<head><title>t<body><p>a<br>b<p>c").text == "a b c"
