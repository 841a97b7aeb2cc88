"""Where a model's thought ends and its speech begins."""

from __future__ import annotations

from typing import NamedTuple

_CLOSING = "</think>"


class ReadResponse(NamedTuple):
    """A response in two parts."""

    thought: str
    """What stands before the last closing mark, marks included; empty where there is none."""
    speech: str
    """What was said: all that environments, tools and judges get."""


def read_response(text: str) -> ReadResponse:
    """Split a response after the last closing mark of a thought."""
    end = text.rfind(_CLOSING)
    cut = 0 if end < 0 else end + len(_CLOSING)
    return ReadResponse(text[:cut], text[cut:])


def speech_of(text: str) -> str:
    """What a response says, without what was only thought."""
    return read_response(text).speech
