"""Which groups of episodes a batch keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gem_core.episode import Episode
from gem_core.errors import AdvantageError

GroupMetric = Literal["success", "return"]
"""What the episodes of a group are compared by."""

_EQUAL = 1e-9
"""Returns that differ by less are equal: sums of the same rewards in another order."""


@dataclass(frozen=True)
class GroupFilter:
    """Drops groups without signal: an estimator that compares the episodes of a group gives all of them 0.

    This is the dynamic sampling of DAPO (Yu et al. 2025, arXiv:2503.14476, section 3.2): a group counts if its episodes
    are neither all alike in success, nor, judged on the return, all alike in their undiscounted return.

    Args:
        judged_on: success or return. Shaped rewards differ between episodes that all fail, so success is stricter.
        limit: how many groups may be played for each group of a batch, on average. More stop the run.
    """

    judged_on: GroupMetric
    limit: int = 10

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"the limit of a group filter must be at least 1, not {self.limit}")

    def has_signal(self, episodes: Sequence[Episode]) -> bool:
        """Whether the episodes of a group differ. A single episode does not."""
        if self.judged_on == "success":
            return len({episode.success for episode in episodes}) > 1
        returns = [episode.total_reward for episode in episodes]
        return bool(returns) and max(returns) - min(returns) > _EQUAL

    def check(self, filtered: int, groups: int) -> None:
        """Stop a run that finds too little signal.

        Args:
            filtered: groups dropped while this batch was collected.
            groups: groups of a batch.

        Raises:
            AdvantageError: the limit is exceeded.
        """
        if filtered + groups > self.limit * groups:
            raise AdvantageError(
                f"{filtered} groups without signal in {self.judged_on} were played for a batch of {groups}, more than "
                f"the limit of {self.limit} groups for each one allows: the tasks are too easy or too hard for this "
                "policy. Use other tasks, raise the limit, or train without the filter."
            )
