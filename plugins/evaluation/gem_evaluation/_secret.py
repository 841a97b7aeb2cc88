"""A key that an endpoint gets, and that it may repeat in what it sends."""

from __future__ import annotations

_SHORT = 8
"""Keys with fewer characters are words such as `EMPTY`, for servers without keys. A model may write them."""
_ANSWER_PART = 16
_MAX_LINE = 64 << 10


class Secret:
    """A key that no file and no output may have.

    Args:
        key: the key; empty if there is none.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def hidden(self, text: str, part: int = 8) -> str:
        """The text with `***` in place of the key, and of each part of it that has at least `part` characters.

        Mask a text before you cut it: a cut within the key would leave a part of it.
        """
        if not self._key:
            return text
        part = min(part, len(self._key))
        if not any(piece in text for piece in self._pieces((part + 1) // 2)):  # as almost always, and 100 times faster
            return text
        parts = {self._key[start : start + part] for start in range(len(self._key) - part + 1)}
        shown: list[str] = []
        end = 0
        for start in range(len(text) - part + 1):
            if text[start : start + part] in parts:
                if start > end or not shown:
                    shown += [text[end:start], "***"]
                end = start + part
        return "".join([*shown, text[end:]])

    def hidden_in_answer(self, text: str) -> str:
        """As `hidden`, for the text of a model: a short key is left, and parts have at least 16 characters."""
        return text if len(self._key) < _SHORT else self.hidden(text, _ANSWER_PART)

    def line(self, text: str, length: int = _MAX_LINE) -> str:
        """The beginning of a text, in one line without the key."""
        return " ".join(self.hidden(text[:_MAX_LINE]).split())[:length]

    def _pieces(self, size: int) -> list[str]:
        """The key in pieces. Each part of the key that is twice as long has a whole one."""
        return [self._key[start : start + size] for start in range(0, len(self._key) - size + 1, size)]
