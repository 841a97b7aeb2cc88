"""The tokens that structure a conversation, and text that must not become one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast


class ControlTokens:
    """Tokens that only a chat template may write: special ones, and others that it frames messages with.

    Args:
        ids: by the text that a tokenizer reads as this token.
        harmless: ids among them that ordinary text may have, such as that of an unknown word.
    """

    def __init__(self, ids: Mapping[str, int], harmless: Iterable[int] = ()) -> None:
        self._ids = frozenset(ids.values()).difference(harmless)
        texts = sorted(filter(None, ids), key=len, reverse=True)
        self._texts = re.compile("|".join(map(re.escape, texts)) if texts else r"(?!)")

    @classmethod
    def of(cls, tokenizer: Any, framing: Iterable[int] = ()) -> ControlTokens:
        """Those of a Hugging Face tokenizer.

        Args:
            tokenizer: its special tokens are control tokens.
            framing: ids that a template writes around a message; the added tokens among them are control tokens, too.
        """
        added: Mapping[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
        special = {*getattr(tokenizer, "all_special_ids", ()), *framing}
        ids = {str(token): number for number, token in added.items() if token.special or number in special}
        texts: Sequence[str] = getattr(tokenizer, "all_special_tokens", ())
        ids |= dict(zip(map(str, texts), getattr(tokenizer, "all_special_ids", ()), strict=False))
        ends = {getattr(tokenizer, name, None) for name in ("bos_token_id", "eos_token_id")}
        unknown: int | None = getattr(tokenizer, "unk_token_id", None)
        return cls(ids, () if unknown is None or unknown in ends else (unknown,))

    def among(self, ids: Iterable[int]) -> list[int]:
        """Those of these ids that are control tokens, in order."""
        control = self._ids
        return [number for number in ids if number in control]

    def written_in(self, text: str) -> bool:
        """Whether a tokenizer could take a part of this text for a control token."""
        return self._texts.search(text) is not None

    def broken(self, text: str, mark: str) -> str:
        """The text with a mark inside of everything that could be taken for a control token."""
        while (found := self._texts.search(text)) and len(found[0]) > 1:
            text = self._texts.sub(lambda one: f"{one[0][:1]}{mark}{one[0][1:]}", text)
        return text


def changed_texts(value: Any, change: Callable[[str], str]) -> Any:
    """JSON data with each of its texts changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {changed_texts(key, change): changed_texts(one, change) for key, one in pairs}
    if isinstance(value, list | tuple):
        return [changed_texts(one, change) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
