"""What a collector hands out."""

from __future__ import annotations

from dataclasses import dataclass, field

from gem_core.episode import Episode


@dataclass
class Batch:
    """Whole episodes, and what it took to collect them."""

    episodes: list[Episode] = field(default_factory=list[Episode])
    carried_turns: int = 0
    """Turns of these episodes that an earlier call had sampled."""
    in_flight: int = 0
    """Episodes that go on in the next call."""
    surplus: int = 0
    """Whole episodes that come in a later batch: beyond what was asked for, or waiting for the rest of their group."""
    dropped: int = 0
    """Episodes left out: their environment failed and the failure policy, or a plugin, says so; or a limit cut their
    match off and `match_cutoff` says so."""
    filtered: int = 0
    """Groups left out because their episodes were all alike; see `GroupFilter`."""
    policy_seconds: float = 0.0
    """Wall time in the policy."""
    env_seconds: float = 0.0
    """Wall time waiting for environments, not counting what they do while the policy samples."""
    paced_seconds: float = 0.0
    """Wall time in which the pace allowed nothing; see `BatchCollector.collect_paced`."""

    @property
    def matches(self) -> int:
        """How often an environment was played: the number of episodes, where the agents of a match count once."""
        return len({episode.match for episode in self.episodes})

    @property
    def turns(self) -> int:
        """Turns in all episodes."""
        return sum(len(episode.turns) for episode in self.episodes)
