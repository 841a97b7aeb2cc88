"""One environment after the other, in the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gem_core.vector.autoreset import Autoreset
from gem_core.vector.base import VectorEnv
from gem_core.vector.member import Member


class SyncVectorEnv(VectorEnv):
    """The cheapest backend for environments that answer in microseconds."""

    def __init__(
        self, members: Sequence[Member], env_ids: Sequence[str], *, autoreset: Autoreset, group_size: int
    ) -> None:
        super().__init__(env_ids, autoreset=autoreset, group_size=group_size)
        self._members = members
        self._results: dict[int, Any] = {}

    def _submit(self, index: int, method: str, argument: Any) -> None:
        self._results[index] = getattr(self._members[index], method)(argument)

    def _receive(self, at_least: int) -> dict[int, Any]:
        results, self._results = self._results, {}
        return results

    def _settle(self) -> None:
        self._results.clear()

    def _shut_down(self) -> None:
        for member in self._members:
            member.close()
