"""What WikiGame needs of a page in HTML: its text and the targets of its links."""

from __future__ import annotations

from html.parser import HTMLParser

TEXT = 400
"""Characters of the paragraphs' text that are kept."""
_LEFT_OUT = {"script", "style", "table", "sup", "nav", "head"}


class PageText(HTMLParser):
    """Reads a page: `text` has the beginning of its paragraphs, and `targets` the `href` of all its links, in order.

    Args:
        html: the page, or a part of it.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self._texts: list[str] = []
        self._size = 0
        self._paragraph = False
        self._left_out = 0
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        """The beginning of the paragraphs, with single spaces."""
        return " ".join("".join(self._texts).split())[:TEXT]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link, or where a paragraph or something that is left out begins."""
        if tag == "a" and (target := dict(attrs).get("href")):
            self.targets.append(target)
        elif tag in {"p", "br"}:
            self._paragraph = self._paragraph or tag == "p"
            self._texts.append(" ")
        elif tag == "body":  # the end of a head need not be written
            self._left_out = 0
        elif tag in _LEFT_OUT:
            self._left_out += 1

    def handle_endtag(self, tag: str) -> None:
        """Note where a paragraph or something that is left out ends."""
        if tag == "p":
            self._paragraph = False
            self._texts.append(" ")
        elif tag in _LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)

    def handle_data(self, data: str) -> None:
        """Keep text of paragraphs."""
        if self._paragraph and not self._left_out and self._size < 2 * TEXT:
            self._texts.append(data)
            self._size += len(data.strip())
