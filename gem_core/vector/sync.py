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
        self._at_work: int | None = None

    def _submit(self, calls: Mapping[int, Call]) -> None:
        for index, call in calls.items():
            self._at_work = index
            self._members[index].perform(call, self._arrive)
            self._at_work = None

    def _gather(self, wanted: int, timeout: float | None) -> None:
        # Calls are still there only if Ctrl-C interrupted one of them, and kept the others from being made.
        if self._at_work is not None:
            self._seats[self._at_work].lose()
        self._submit({index: self._again(index, call) for index, call in self._calls.items()})

    def drain(self) -> None:
        """Forget the calls that Ctrl-C interrupted, and all results. Raises as `VectorEnv.drain`."""
        for index in self._calls:
            self._seats[index].lose()
            self._seats[index].ended = None
        self._calls.clear()
        super().drain()

    def _wake(self) -> None:
        """Nothing ever waits here."""

    def _shut_down(self) -> None:
        for member in self._members:
            member.close()
