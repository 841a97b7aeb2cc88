"""The interface of retrievers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

Ranking: TypeAlias = "list[tuple[int, float]]"
"""Numbers of passages and their scores, best first."""


class Retriever(Protocol):
    """Finds passages. Built from passages or loaded from a folder, then used by one thread at a time."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Everything except the passages that an index depends on."""
        ...

    def build(self, texts: Iterable[str]) -> None:
        """Index passages, which are numbered from 0."""
        ...

    def save(self, folder: Path) -> None:
        """Write the index into a folder."""
        ...

    def load(self, folder: Path) -> None:
        """Use what `save` wrote; large parts stay on the disk and are mapped into memory."""
        ...

    def search(self, queries: Sequence[str], topk: int) -> list[Ranking]:
        """At most `topk` passages for each query."""
        ...
