"""WikiGame on a Kiwix file that the test writes: our own pages, redirects, and links that lead nowhere."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libzim")

from libzim.writer import Creator, Hint, Item, StringProvider

import gem_core
from gem_core.errors import EnvError
from gem_games._encyclopedia import encyclopedia
from gem_games._kiwix import KiwixFile
from gem_games.wiki_game import WikiGame
from gem_testing import check_env

BOOK = encyclopedia(None)
PAGE = """<html><head><title>x</title><style>p {{}}</style></head><body><script>var p = 1;</script>
<table><tr><td><p>A box.</p></td></tr></table><p>{text}</p>
<a href="https://elsewhere.example/Sea">out</a> <a href="#top">top</a> <a href="mailto:a@b.example">mail</a>
<a href="//[">bad</a> <a href="no%20such%20page">red</a> <a href="../style.css">style</a> {links}</body></html>"""


class Entry(Item):
    def __init__(self, path: str, title: str, content: str, mimetype: str = "text/html") -> None:
        super().__init__()
        self._parts = (path, title, content, mimetype)

    def get_path(self) -> str:
        return self._parts[0]

    def get_title(self) -> str:
        return self._parts[1]

    def get_mimetype(self) -> str:
        return self._parts[3]

    def get_contentprovider(self) -> StringProvider:
        return StringProvider(self._parts[2])

    def get_hints(self) -> dict[Hint, int]:
        return {Hint.FRONT_ARTICLE: self._parts[3] == "text/html"}


def written(path: Path, entries: list[Entry], redirects: list[tuple[str, str, str]] = []) -> str:  # noqa: B006
    with Creator(path).config_indexing(False, "eng") as creator:
        for entry in entries:
            creator.add_item(entry)
        for place, title, target in redirects:
            creator.add_redirection(place, title, target, {Hint.FRONT_ARTICLE: True})
        creator.set_mainpath(entries[0].get_path())
    return str(path)


def place(title: str) -> str:
    return f"wiki/{title.replace(' ', '_')}"


def html(title: str) -> str:
    page = BOOK.pages[title]
    links = " ".join(f'<a href="{link.replace(" ", "_")}#part">{link}</a>' for link in page.links)
    return PAGE.format(text=page.text.replace("&", "&amp;"), links=links)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bundled encyclopedia as a Kiwix file."""
    entries = [Entry(place(title), title, html(title)) for title in BOOK.titles]
    style = Entry("style.css", "Style", "p {}", "text/css")
    return written(tmp_path_factory.mktemp("kiwix") / "book.zim", [*entries, style])


def test_pages_have_their_text_and_links(book: str) -> None:
    library = KiwixFile(book)
    for title in BOOK.titles:
        read, own = library.page(title), BOOK.pages[title]
        assert read.title == title
        assert set(read.links) == set(own.links)
        assert own.text.startswith(read.text)
        assert len(read.text) >= min(100, len(own.text))


def test_every_page_is_drawn_and_nothing_else(book: str) -> None:
    library = KiwixFile(book)
    rng = random.Random(0)
    assert {library.title(rng) for _ in range(8000)} == set(BOOK.titles)


def test_the_target_is_within_five_links(book: str) -> None:
    env = gem_core.make("game:WikiGame-v0-easy", pages=book)
    assert isinstance(env, WikiGame)
    for seed in range(50):
        _, info = env.reset(seed=seed)
        start, target = env.visited[0], env.target
        near = BOOK.distances(start)
        assert 1 <= near[target] <= 5
        assert env.reset(seed=seed)[1] == info, "a seed is an episode"
        while env.visited[-1] != target:
            step = min(env.page.links, key=lambda link: BOOK.distances(link)[target])
            result = env.step(f"\\boxed{{{step}}}")
        assert result[1:4] == (1.0, True, False)


def test_the_limit_of_turns_limits_the_walk(book: str) -> None:
    env = WikiGame(max_turns=1, pages=book)
    for seed in range(20):
        env.reset(seed=seed)
        assert env.target in env.page.links


def test_it_keeps_the_contract(book: str) -> None:
    check_env("game:WikiGame-v0-hard-freenav", pages=book)


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A and B lead to each other; the links go by redirects, twins and a page that leads nowhere."""
    links = '<a href="A">a</a> <a href="End">e</a> <a href="T{}"></a><a href="T2">t</a>'
    entries = [
        Entry("A", "Alpha", PAGE.format(text="First.", links='<a href="Bee">b</a> <a href="./A">me</a> <a href="T1">')),
        Entry("B", "Beta", PAGE.format(text="", links=links)),
        Entry("End", "End", "<p>Nothing"),
        Entry("T1", "Twin", "<p>One"),
        Entry("T2", "Twin", "<p>Two"),
        Entry("T{}", "Braces {}", "<p>No move can name it"),
    ]
    return written(tmp_path / "small.zim", entries, [("Bee", "Bee", "B")])


def test_redirects_are_followed_and_titles_lead_where_they_say(small: str) -> None:
    library = KiwixFile(small)
    assert library.page("Bee") == library.page("Beta")
    assert library.page("Alpha").links[0] == "Beta"
    assert {"Alpha", "End"} <= set(library.page("Beta").links) <= {"Alpha", "End", "Twin"}
    assert library.page("End").links == ()
    found = "Alpha" if library.page("Twin").text == "One" else "Beta"
    assert [title for title in ("Alpha", "Beta") if "Twin" in library.page(title).links] == [found]


def test_what_cannot_be_played_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.zim").write_bytes(b"no archive" * 100)
    for name, said in (("none.zim", "cannot be read"), ("broken.zim", "cannot be read")):
        with pytest.raises(EnvError, match=said):
            gem_core.make("game:WikiGame-v0-easy", pages=str(tmp_path / name)).reset(seed=0)
    alone = written(tmp_path / "alone.zim", [Entry("A", "Alpha", "<p>Alone")])
    with pytest.raises(EnvError, match="no page with links to others was found in 20 draws"):
        gem_core.make("game:WikiGame-v0-easy", pages=alone).reset(seed=0)
    with pytest.raises(EnvError, match="has no page 'Beta'"):
        KiwixFile(alone).page("Beta")
    style: list[Any] = [Entry("s.css", "Style", "p {}", "text/css")]
    with pytest.raises(EnvError, match="no page was found in 1000 draws"):
        KiwixFile(written(tmp_path / "style.zim", style)).title(random.Random(0))
