"""One environment after the other, in the caller's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gem_core.vector.base import VectorEnv
from gem_core.vector.calls import Call
from gem_core.vector.member import Member


class SyncVectorEnv(VectorEnv):
    """The cheapest backend for environments that answer in microseconds. It cannot enforce a timeout."""

    def __init__(self, members: Sequence[Member], seats: Any, **settings: Any) -> None:
        super().__init__(seats, **settings)
        self._members = members

    def _submit(self, calls: Mapping[int, Call]) -> None:
        for index, call in calls.items():
            self._members[index].perform(call, self._arrive)

    def _gather(self, wanted: int, timeout: float | None) -> None:
        # Only calls that an interruption kept from being made are still there.
        for index in list(self._calls):
            self._seats[index].lose()
        self._calls.clear()

    def _shut_down(self) -> None:
        for member in self._members:
            member.close()
