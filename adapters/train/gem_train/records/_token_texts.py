"""Texts of tokens, where a character may take several of them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from gem_train.rollout._recorder import as_utf8

TokenText: TypeAlias = "str | bytes"
"""The text of a token, or its UTF-8 where it begins or ends within a character."""

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
"""The name of a byte in SentencePiece's vocabularies."""


class Decoder(Protocol):
    """The part of a tokenizer that turns ids into text."""

    def decode(self, token_ids: Any, /, **kwargs: Any) -> Any:
        """Token ids to text."""
        ...


def token_text(tokenizer: Decoder, token: int) -> TokenText:
    """The text of a token between others; empty if the tokenizer does not know the id.

    The bytes of a part of a character are read from the token's name, as byte-level vocabularies have it. They count
    only if they decode as the tokenizer does. A tokenizer that does not name bytes has signs of replacement instead.
    """
    try:
        alone = str(tokenizer.decode([token], skip_special_tokens=False))
        if "\ufffd" in alone:
            return _bytes_of(tokenizer, token, alone) or alone
        # Some tokenizers leave out a space at the beginning of a text.
        twice = str(tokenizer.decode([token, token], skip_special_tokens=False))
    except Exception:  # an id that the tokenizer does not have
        return ""
    return as_utf8(twice[len(alone) :] if twice.startswith(alone) else alone)


def token_pieces(texts: Iterable[TokenText]) -> list[str]:
    """The texts of tokens that follow each other: a character of several tokens is that of the last of them.

    Returns:
        One text per token; joined, they are the text of all. Bytes that no token completes are signs of replacement.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces: list[str] = []
    for text in texts:
        if isinstance(text, bytes):
            pieces.append(decoder.decode(text))
            continue
        _end(decoder, pieces)
        pieces.append(text)
    _end(decoder, pieces)
    return pieces


def _end(decoder: codecs.IncrementalDecoder, pieces: list[str]) -> None:
    if rest := decoder.decode(b"", final=True):
        pieces[-1] += rest


def _bytes_of(tokenizer: Any, token: int, text: str) -> TokenText | None:
    """The bytes of a token with this text, as a text if they are whole characters; `None` if its name has none."""
    name = tokenizer.convert_ids_to_tokens(token) if hasattr(tokenizer, "convert_ids_to_tokens") else None
    named = name if isinstance(name, bytes) else _named_bytes(str(name))
    if named is None or named.decode("utf-8", "replace") != text:
        return None
    try:
        return named.decode("utf-8")
    except UnicodeDecodeError:
        return named


def _named_bytes(name: str) -> bytes | None:
    if found := _BYTE.fullmatch(name):
        return bytes([int(found[1], 16)])
    try:
        return bytes([_LETTERS[letter] for letter in name])
    except KeyError:
        return None


def _byte_letters() -> dict[str, int]:
    """The bytes of GPT-2's byte-level vocabulary by the letters that name them.

    A byte that Latin-1 prints is its own letter; the others have those from 256 on, in order.
    """
    own = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [one for one in range(256) if one not in own]
    return {chr(one): one for one in own} | {chr(256 + place): one for place, one in enumerate(others)}


_LETTERS = _byte_letters()
