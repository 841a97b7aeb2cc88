"""The summaries of a run as columns, which the page holds for all episodes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_train.records import RecordedSummary

_CHOICES: dict[str, Callable[[RecordedSummary], str | None]] = {
    "env": lambda one: one.entry or one.summary.env_id,
    "env_id": lambda one: one.summary.env_id,
    "agent": lambda one: one.summary.agent or None,
    "split": lambda one: one.split,
    "stop": lambda one: one.summary.stop_reason.value,
    "error": lambda one: one.summary.error,
}
"""Columns of few texts: each text once, and a number per episode."""

_PLAIN: dict[str, Callable[[RecordedSummary], Any]] = {
    "id": lambda one: one.id,
    "match": lambda one: one.summary.match if one.summary.agent else None,
    "seed": lambda one: str(one.summary.seed),  # 63 bits; a number of JavaScript has 53
    "task_id": lambda one: one.summary.task_id,
    "data_index": lambda one: one.data_index,
    "update": lambda one: one.update,
    "success": lambda one: int(one.summary.success),
    "turns": lambda one: one.summary.turns,
    "return": lambda one: finite(one.summary.total_reward),
    "tokens": lambda one: one.summary.response_tokens,
    "invalid": lambda one: one.summary.invalid,
    "truncated": lambda one: one.summary.truncated,
    "tool_calls": lambda one: one.summary.tool_calls,
    "tool_successes": lambda one: one.summary.tool_successes,
}


def columns(summaries: Sequence[RecordedSummary]) -> dict[str, Any]:
    """The columns of these episodes, as plain data.

    Returns:
        By name: a list with a value per episode, or for texts that repeat `{"values": [...], "of": [...]}`, where `of`
        has an index into `values` per episode.
    """
    chosen = {name: _choices(map(read, summaries)) for name, read in _CHOICES.items()}
    plain = {name: [read(one) for one in summaries] for name, read in _PLAIN.items()}
    return {**chosen, **plain}


def _choices(texts: Iterable[str | None]) -> dict[str, list[Any]]:
    places: dict[str | None, int] = {}
    of = [places.setdefault(text, len(places)) for text in texts]
    return {"values": list(places), "of": of}


def finite(number: float | None) -> float | str | None:
    """The number, or the name of one that JSON does not have: `NaN`, `Infinity`, `-Infinity`."""
    if number is None or number - number == 0:
        return number
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
