"""What cannot be read is compared as it is written, without what only sets it: sizes, spaces, braces around a sign."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gem_math._choices import without_markup
from gem_math._tokens import Token, Unread, tokens, undelimited

_SPACE = re.compile(r"\s+")
_FORMULA = re.compile(r"[\\_^=\d]")


def are_alike(given: str, reference: str) -> bool:
    """Are two answers written alike, of which one or both cannot be read?"""
    one, other = map(_plain, (given, reference))
    return (bool(one) and one == other) or have_same_tokens(given, reference)


def have_same_tokens(given: str, reference: str) -> bool:
    """Are they the same but for what only sets them?"""
    try:
        return normal(tokens(given)) == normal(tokens(reference))
    except Unread:
        return False


def normal(found: Sequence[Token]) -> str:
    """The tokens as a text that is the same however they are set."""
    pieces: list[str] = []
    before = ""
    for place, token in enumerate(found):
        text = token.text.casefold() if token.kind == "word" else token.text
        text = f"\\{text}" if token.kind == "command" else text
        if _is_idle_brace(found, place):
            continue
        pieces.append(text if token.kind == before == "letters" else f" {text}")
        before = token.kind
    return "".join(pieces)


def _is_idle_brace(found: Sequence[Token], place: int) -> bool:
    """Is it one of two braces around a single sign?"""
    before = place - 2 if found[place].text == "}" else place
    group = found[max(0, before) : before + 3]
    if len(group) < 3 or (group[0].text, group[2].text) != ("{", "}"):
        return False
    return len(group[1].text) == 1 or group[1].kind == "command"


def _plain(text: str) -> str:
    plain = _SPACE.sub(" ", without_markup(undelimited(text.strip(" .$")))).strip(" .$")
    return plain if _FORMULA.search(plain) else plain.casefold()
