"""The messages of client and server, as MessagePack or JSON.

| request | response |
| --- | --- |
| `query` | `{"result": [hit, ...]}` as gem-llm's server does |
| `queries` | `{"result": [[hit, ...], ...]}` as Search-R1's does: with `return_scores` hits, otherwise documents |
| an invalid one | `{"error": "..."}` and an HTTP status from 400 |
"""

from __future__ import annotations

from typing import Any

import msgspec

MAX_QUERY_LENGTH = 4096
"""Characters."""
MAX_RESULTS = 100
"""Passages for one query."""
MSGPACK, JSON = "application/msgpack", "application/json"


class Request(msgspec.Struct):
    """One query or several."""

    query: str | None = None
    queries: list[str] | None = None
    topk: int | None = None
    """Passages for each query; `None` leaves it to the server."""
    return_scores: bool = False


class Document(msgspec.Struct):
    """A passage."""

    contents: str
    """Its title in the first line, its text in the others."""
    id: Any = None
    """A text or a number."""


class Hit(msgspec.Struct):
    """A passage that was found."""

    document: Document
    score: float | None = None


class Found(msgspec.Struct):
    """The hits for one query, best first."""

    result: list[Hit]


class Refusal(msgspec.Struct):
    """Why there is no answer."""

    error: str
