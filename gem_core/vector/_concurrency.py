"""Limits of how many episodes of an environment are under way at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gem_core.errors import near_matches
from gem_core.vector._tasks import is_whole_number


class ConcurrencyLimits:
    """How many episodes of each environment of a vector may be under way at once.

    A limit that leaves a place for each slot of its environment limits nothing.

    Args:
        env_ids: of each slot.
        limits: episodes by environment id.

    Raises:
        ValueError: an id that no slot has, or a limit below 1.
    """

    def __init__(self, env_ids: Sequence[str], limits: Mapping[str, int] | None = None) -> None:
        slots = Counter(env_ids)
        checked = limits_of(slots, limits)
        self._limits = {env_id: limit for env_id, limit in checked.items() if limit < slots[env_id]}

    def limited(self, env_id: str) -> bool:
        """Whether this environment has fewer places than slots."""
        return env_id in self._limits

    def left(self, env_id: str, taken: int) -> int | None:
        """Free places, given the number of episodes under way; `None` without a limit."""
        limit = self._limits.get(env_id)
        return None if limit is None else limit - taken


def limits_of(env_ids: Iterable[str], limits: Mapping[str, int] | None) -> dict[str, int]:
    """The limits, checked.

    Raises:
        ValueError: an id that is not among `env_ids`, or a limit that is no whole number above 0.
    """
    known, given = [*env_ids], _mapping(limits)
    if unknown := [env_id for env_id in given if env_id not in known]:
        raise ValueError(
            f"env_limits names {unknown[0]!r}, and the environments are {known}.{near_matches(str(unknown[0]), known)}"
        )
    if wrong := {env_id: limit for env_id, limit in given.items() if not is_whole_number(limit) or limit < 1}:
        raise ValueError(f"a limit of env_limits is a whole number of episodes, at least 1, not {wrong}")
    return given


def _mapping(limits: Any) -> dict[str, int]:
    if limits is not None and not isinstance(limits, Mapping):
        raise ValueError(f"env_limits must be {{id: episodes at once}}, not {limits!r:.200}")
    return {**(limits or {})}
