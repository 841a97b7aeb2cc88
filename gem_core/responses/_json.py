"""JSON inside other text."""

from __future__ import annotations

import json
from typing import Any

_DECODER = json.JSONDecoder(strict=False)


class Text(str):
    """A text for many calls of `json_end`. An error of `json` would count the lines of all of it."""

    def count(self, *_: Any) -> int:
        """None."""
        return 0

    rfind = count


def json_end(text: str, at: int) -> tuple[int, bool]:
    """Where the JSON that begins here ends, and whether it is valid; where it is not, how far it could be read.

    Blanks may stand before it. Values that are nested too deeply are not valid.
    """
    while text[at : at + 1].isspace():
        at += 1
    try:
        return _DECODER.raw_decode(text if type(text) is Text else Text(text), at)[1], True
    except json.JSONDecodeError as error:
        return error.pos, False
    except (RecursionError, ValueError):  # ValueError: a number with thousands of digits
        return len(text), False


def decoded(text: str) -> Any:
    """The value of a JSON text. Raises `ValueError`, also where it is nested too deeply."""
    import msgspec  # `import gem_core.env` does without

    try:
        return msgspec.json.decode(text.strip().encode(errors="replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encoded(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(value)
