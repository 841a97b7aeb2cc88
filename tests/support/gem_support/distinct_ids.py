"""Ids whose environments differ, where many ids differ in what a test sets anyway."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core import spec


def distinct(ids: Iterable[str], *given: str) -> list[str]:
    """The first id of each class and keyword arguments, apart from the arguments that a test gives."""
    found: dict[str, str] = {}
    for one in ids:
        known = spec(one)
        others = {name: value for name, value in sorted(known.kwargs.items()) if name not in given}
        found.setdefault(f"{known.entry_point} {others}", one)
    return [*found.values()]
