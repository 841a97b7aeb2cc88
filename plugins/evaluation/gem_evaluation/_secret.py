"""A key that an endpoint gets, and that it may repeat in what it sends."""

from __future__ import annotations

from collections.abc import Iterator

_MIN_SECRET = 16
"""Shorter keys are words such as `EMPTY` for servers without keys, which a model may write."""


class Secret:
    """A key that no file and no output may have.

    Args:
        key: the key; empty if there is none.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def hidden(self, text: str, part: int = 8) -> str:
        """The text with `***` in place of the key, and of each part of it with at least `part` characters.

        Mask a text before you cut it: a cut within the key would leave a part of it.
        """
        if not self._key:
            return text
        text, shown, end = text.replace(self._key, "***"), list[str](), 0
        for first, after in _joined(self._parts(text, part)):
            shown += [text[end:first], "***"]
            end = after
        return "".join([*shown, text[end:]])

    def hidden_in_answer(self, text: str) -> str:
        """As `hidden`, for the text of a model: a short key is left, and parts have at least 16 characters."""
        return self.hidden(text, _MIN_SECRET) if len(self._key) >= _MIN_SECRET else text

    def _parts(self, text: str, part: int) -> Iterator[tuple[int, int]]:
        """Where the text has a part of the key."""
        size = (part + 1) // 2  # each part has a piece of the key that begins at a multiple of this
        for place in range(0, len(self._key) - size + 1, size):
            start = text.find(self._key[place : place + size])
            while start >= 0:
                first, end = self._extended(text, start, place, size)
                if end - first >= part:
                    yield first, end
                start = text.find(self._key[place : place + size], start + size)

    def _extended(self, text: str, start: int, place: int, size: int) -> tuple[int, int]:
        """The longest part of the key around a piece of it."""
        end, after = start + size, place + size
        while start and place and text[start - 1] == self._key[place - 1]:
            start, place = start - 1, place - 1
        while end < len(text) and after < len(self._key) and text[end] == self._key[after]:
            end, after = end + 1, after + 1
        return start, end


def _joined(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans as one, in order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
