"""Runs of all frameworks, as their adapters' tests recorded them, in one page. By `nox -s recorded`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomllib

from gem_train.records import open_records
from gem_viewer._page import write_page

ROOT = Path(__file__).parents[4]
FOLDER = Path(os.environ.get("GEM_RECORDED_RUNS", ROOT / ".nox" / "recorded-runs"))


def needed() -> Iterator[str]:
    """The adapters whose sessions leave a run here, which some do only with a clone of their framework."""
    for file in sorted(ROOT.glob("adapters/*/gem_*/plugin.py")):
        name = file.parents[1].name
        session = tomllib.loads((file.parents[1] / "package.toml").read_text())[name]
        if session.get("clone", "PATH") in os.environ:
            yield name


NEEDED = [*needed()]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page([open_records(FOLDER / name) for name in NEEDED], path, done=lambda _: None)
    return path


@pytest.mark.parametrize("framework", NEEDED)
def test_a_run_has_all_that_the_page_shows(framework: str) -> None:
    records = open_records(FOLDER / framework)
    assert records.gaps == []
    assert records.metrics
    assert {"gem-core"} < {*records.versions}
    trained = [index for index, one in enumerate(records.summaries) if one.update is not None]
    for index in trained[:: max(1, len(trained) // 40)]:
        one = records.episode(index)
        if one.episode.turns:
            assert one.trained is not None
            assert None not in one.trained.advantages
            assert None not in one.trained.logprobs


def test_all_open_in_one_page(open_page: Any, page: Path) -> None:
    with open_page(page) as tab:
        assert all(name in tab.text("h1") for name in NEEDED)
        assert {"Success", "Return", "Turns"} <= set(tab.texts(".chart figcaption"))
        tab.screenshot("recorded_run")
        tab.press("2")
        tab.wait(".count", "episodes")
        tab.screenshot("recorded_episodes")


@pytest.mark.parametrize("framework", NEEDED)
def test_every_view_of_each(open_page: Any, framework: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page([open_records(FOLDER / framework)], path, done=lambda _: None)
    with open_page(path) as tab:
        tab.wait(".chart", "Success")
        tab.press("2")
        tab.wait(".count", "episodes")
        tab.page.locator(".long-table").focus()
        tab.press("Home", "Enter")
        tab.wait(".chat")
        tab.press("t")
        tab.wait(".token-body")
        tab.screenshot(f"recorded_{framework}")
        tab.press("3")
        tab.wait("h1")
