"""The built site: complete, and nothing in it comes from another host. `nox -s docs` builds it first."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Tags whose target a browser loads by itself."""


class Loaded(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADS.get(tag, ""))
        if address:
            self.addresses.append(address)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The text of each page by its path in the site."""
    found = {path.relative_to(SITE).as_posix(): path.read_text() for path in SITE.rglob("*.html")}
    assert found, "no site: run `nox -s docs`, or `mkdocs build --strict` first"
    return found


def test_no_page_loads_anything_from_another_host(pages: dict[str, str]) -> None:
    foreign = {
        (name, address)
        for name, text in pages.items()
        for address in Loaded(text).addresses
        if urlsplit(address).netloc
    }
    assert not foreign


def test_every_package_has_a_page_in_the_navigation(pages: dict[str, str]) -> None:
    packages = [*ROOT.glob("adapters/*/gem_*"), *ROOT.glob("plugins/*/gem_*")]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in packages}
    assert {folder for folder in folders if f"{folder}/index.html" not in pages} == set()
    assert {folder for folder in folders if f'href="{folder}/"' not in pages["index.html"]} == set()


def test_every_page_of_docs_is_in_the_site(pages: dict[str, str]) -> None:
    sources = [path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    missing = {
        str(source)
        for source in sources
        if (f"{source.parent}/index.html" if source.name == "index" else f"{source}/index.html") not in pages
    }
    assert not missing


@pytest.mark.parametrize("source", sorted((ROOT / "docs" / "reference").glob("*.md")), ids=lambda source: source.stem)
def test_the_reference_has_what_its_page_names(pages: dict[str, str], source: Path) -> None:
    text = pages["reference/index.html" if source.stem == "index" else f"reference/{source.stem}/index.html"]
    assert not [
        name for name in re.findall(r"^::: (\S+)", source.read_text(), re.MULTILINE) if f'id="{name}"' not in text
    ]


def test_the_reference_has_the_names_inside_of_modules(pages: dict[str, str]) -> None:
    text = pages["reference/env/index.html"]
    assert not [name for name in ("Env.reset", "Wrapper") if f'id="gem_core.env.{name}"' not in text]


def test_files_outside_docs_have_pages(pages: dict[str, str]) -> None:
    assert "one advantage per turn" in pages["index.html"].lower()
    assert "0.1.0" in pages["changelog/index.html"]
    assert "EnvConformance" in pages["repository/examples/plugin/tests/test_maze.py/index.html"]
