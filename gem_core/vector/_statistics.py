"""What the environments of a vector did, per environment id."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EnvStatistics:
    """Sums over the ended episodes of one environment id, and means of them."""

    episodes: int = 0
    """Episodes that ended, in whatever way."""
    turns: int = 0
    """Turns in those episodes."""
    total_return: float = 0.0
    """Sum of all their rewards."""
    successes: int = 0
    """Episodes whose last info said `success`."""
    truncated: int = 0
    """Episodes that were cut off, failures included."""
    abandoned: int = 0
    """Episodes that the caller gave up by starting the next one; not among `episodes`."""
    failed: int = 0
    """Episodes that ended because their environment failed."""
    failures: int = 0
    """Calls that failed, including those whose retry succeeded."""

    @property
    def mean_return(self) -> float:
        """Mean undiscounted return of an episode; NaN before the first."""
        return self.total_return / self.episodes if self.episodes else float("nan")

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of an episode; NaN before the first."""
        return self.turns / self.episodes if self.episodes else float("nan")

    @property
    def success_rate(self) -> float:
        """Share of episodes that were solved; NaN before the first."""
        return self.successes / self.episodes if self.episodes else float("nan")

    def end(self, turns: int, total: float, *, success: bool, truncated: bool, failed: bool) -> None:
        """Count an ended episode."""
        self.episodes += 1
        self.turns += turns
        self.total_return += total
        self.successes += success
        self.truncated += truncated
        self.failed += failed
