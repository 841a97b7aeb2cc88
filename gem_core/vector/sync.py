"""One environment after the other, in the caller's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gem_core.image import IMAGES
from gem_core.partner import PARTNER_REPLIES
from gem_core.vector._base import VectorEnv
from gem_core.vector._calls import EnvCall, Transition
from gem_core.vector._hosted import HostedEnv
from gem_core.vector._tasks import TaskPlan


class SyncVectorEnv(VectorEnv):
    """The cheapest backend for environments that answer in microseconds. It cannot enforce a timeout."""

    def __init__(self, hosted: Sequence[HostedEnv], plan: TaskPlan, **settings: Any) -> None:
        super().__init__(plan, **settings)
        self._hosted = hosted
        self._at_work: int | None = None

    def _submit(self, calls: Mapping[int, EnvCall]) -> None:
        hosted, states, under_way, results = self._hosted, self._states, self._calls, self._results
        for slot, call in calls.items():
            self._at_work = slot
            if type(call) is str:
                outcome = hosted[slot].answer(call)
                if type(outcome) is Transition and not (outcome[2] or outcome[3]):
                    # What `_arrive` does with a turn in the middle of an episode, which nearly every turn is.
                    del under_way[slot]
                    info = outcome[4]
                    states[slot].turns.append(
                        (call, outcome[0], outcome[1], info.get(IMAGES), info.get(PARTNER_REPLIES))
                    )
                    results[slot] = outcome
                else:
                    hosted[slot].emit(outcome, self._arrive)
            else:
                hosted[slot].perform(call, self._arrive)
        self._at_work = None

    def _gather(self, wanted: int, timeout: float | None) -> None:
        # Calls are still there only if Ctrl-C interrupted one of them, and kept the others from being made.
        if self._at_work is not None:
            self._states[self._at_work].lose()
        self._submit({slot: self._again(slot, call) for slot, call in self._calls.items()})

    def drain(self) -> None:
        """Forget the calls that Ctrl-C interrupted, and all results. Raises as `VectorEnv.drain`."""
        for slot in self._calls:
            self._states[slot].lose()
            self._states[slot].ended = None
        self._calls.clear()
        super().drain()

    def _wake(self) -> None:
        """Nothing ever waits here."""

    def _shut_down(self) -> None:
        for hosted in self._hosted:
            hosted.close()
