"""Where one environment of a vector stands, as the vector knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gem_core.env import ResetResult
from gem_core.vector.calls import Call, Replay, Reset, Transition, digest


@dataclass(slots=True)
class Seat:
    """Enough about an environment to bring it back elsewhere, at the turn where it was lost."""

    env_id: str
    stream: int
    """Which sequence of seeds it plays."""
    seed: int
    """The vector's seed."""
    first_task: int = 0
    """The task of its episode 0."""
    stride: int = 1
    """How far its tasks are apart."""
    episode: int = -1
    over: bool = True
    """No episode is under way."""
    error: str | None = None
    """Why the episode never began; its first step ends it."""
    lost: bool = False
    """Its environment is not where this says: it failed, or its worker died."""
    steady: bool = False
    """A step can simply be passed on."""
    attempts: int = 0
    """Failures of this episode so far."""
    total: float = 0.0
    """Sum of this episode's rewards."""
    shown: int = 0
    """Digest of what this episode has shown."""
    actions: list[str] = field(default_factory=list[str])
    """What this episode was told."""
    ended: Transition | None = None
    """The end of the episode before, while this one is being opened."""

    @property
    def start(self) -> Reset:
        """The call that began this episode."""
        task = self.first_task + self.episode * self.stride
        return Reset(self.seed, self.stream, self.episode, task, self.stride)

    @property
    def episode_seed(self) -> int:
        """The seed that the environment was given."""
        return self.start.episode_seed

    def next_start(self) -> Reset:
        """Go on to the next episode, and say how to open it."""
        self.episode += 1
        self.over, self.steady, self.error, self.attempts = True, False, None, 0
        return self.start

    def switch(self, stream: int, task: int) -> None:
        """Go on with the first episode of another sequence of seeds, and with that task."""
        self.stream, self.first_task, self.episode = stream, task, -1

    def opened(self, opening: ResetResult) -> None:
        """The episode has begun."""
        self.over, self.steady, self.lost = False, True, False
        self.total, self.actions, self.shown = 0.0, [], digest(0, opening[0], 0.0)

    def broken(self, error: str) -> ResetResult:
        """The episode could not begin; what is shown instead."""
        self.over, self.steady, self.error = False, False, error
        self.total, self.actions = 0.0, []
        return "", {"error": error, "seed": self.episode_seed, "episode": self.episode}

    def lose(self) -> None:
        """The environment is gone."""
        self.lost, self.steady = True, False

    @property
    def playable(self) -> bool:
        """An episode is under way, even if its environment is not."""
        return not self.over and self.error is None

    def step(self, action: str) -> Call:
        """The call that plays a turn, wherever the environment is now."""
        return Replay(self.start, tuple(self.actions), self.shown, action) if self.lost else action

    def played(self, action: str, transition: Transition) -> None:
        """A turn was played."""
        self.actions.append(action)
        self.shown = digest(self.shown, transition[0], transition[1])
        self.total += transition.reward
        self.steady, self.lost = True, False
