"""Chromium, and what every test asks of a page: no errors, no request to another host."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
sys.path.insert(0, str(Path(__file__).parent.parent))  # made_up

SCREENSHOTS = os.environ.get("GEM_VIEWER_SCREENSHOTS")
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]  # tests may run as root
SLOW = 20_000
"""Milliseconds that only a hang reaches."""


class Tab:
    """A page in the browser, and the things that tests do with it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.said: list[str] = []
        self.hosts: set[str] = set()
        page.set_default_timeout(SLOW)
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.address = address
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")

    def go(self, fragment: str) -> None:
        """Open a view by its address."""
        self.page.evaluate("(fragment) => { location.hash = fragment; }", fragment)

    def text(self, selector: str) -> str:
        """The text of an element, once it is there."""
        return self.page.locator(selector).first.text_content()

    def texts(self, selector: str) -> list[str]:
        """The texts of all such elements."""
        return self.page.locator(selector).all_text_contents()

    def wait(self, selector: str, text: str = "") -> Any:
        """An element with this text, once it is there."""
        found = self.page.locator(selector, has_text=text).first
        found.wait_for()
        return found

    def press(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            self.page.keyboard.press(key)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self.page.evaluate(expression)

    def screenshot(self, name: str) -> None:
        """Keep an image for people; nothing compares it."""
        if SCREENSHOTS:
            Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"))


Opener = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium here; as root: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Opener:
    """Opens a file, without a network, or the address of a server, and checks at the end what the page said."""

    @contextmanager
    def opened(target: Path | str, fragment: str = "", **options: Any) -> Generator[Tab, None, None]:
        offline = isinstance(target, Path)
        address = target.resolve().as_uri() if isinstance(target, Path) else target
        settings = {"viewport": {"width": 1300, "height": 900}, "offline": offline, **options}
        context = chromium.new_context(**settings)
        try:
            tab = Tab(context.new_page(), address + fragment)
            yield tab
            assert tab.said == []
            assert tab.hosts <= {"", urlsplit(address).netloc}
        finally:
            context.close()

    return opened
