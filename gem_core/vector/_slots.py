"""Where one slot of a vector stands, as the vector knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from gem_core.env import ResetResult
from gem_core.image import IMAGES
from gem_core.partner import PARTNER_REPLIES
from gem_core.vector._calls import EnvCall, Replay, Reset, Transition, digest
from gem_core.vector._tasks import Task, TaskPlan

PlayedTurn: TypeAlias = "tuple[str, str, float, list[str] | None, list[str] | None]"
"""Action, observation, reward, the images of the observation, and what a partner answered."""


@dataclass(slots=True)
class SlotState:
    """Enough about an environment to bring it back elsewhere, at the turn where it was lost."""

    env_id: str
    start: Reset
    """The call that began this episode."""
    begun: bool = False
    """It was reset at least once."""
    over: bool = True
    """No episode is under way."""
    error: str | None = None
    """Why the episode never began; its first step ends it."""
    lost: bool = False
    """The environment is not where this state says: it failed, or its worker died."""
    steady: bool = False
    """A step can simply be passed on."""
    attempts: int = 0
    """Failures of this episode so far."""
    opening: str = ""
    """The first observation of this episode."""
    images: list[str] | None = None
    """The images of the first observation."""
    replies: list[str] | None = None
    """What a partner answered before the first observation. The first turn that it plays has these, too."""
    turns: list[PlayedTurn] = field(default_factory=list[PlayedTurn])
    """The turns of this episode."""
    ended: Transition | None = None
    """The end of the episode before, while this one is being opened."""

    def next_start(self, given_seed: int | None = None) -> Reset:
        """Move on to the next episode, maybe with a seed of its own; returns the call that opens it."""
        start = self.start.next() if self.begun else self.start
        return self.start_with(start if given_seed is None else start._replace(given_seed=given_seed))

    def start_with(self, start: Reset) -> Reset:
        """Move on to the episode that this call opens; returns the call."""
        self.start, self.begun = start, True
        self.over, self.steady, self.error, self.attempts = True, False, None, 0
        return start

    def opened(self, opening: ResetResult) -> None:
        """The episode has begun."""
        self.over, self.steady, self.lost = False, True, False
        observation, info = opening
        self.opening, self.images = observation, info.get(IMAGES)
        self.replies, self.turns = info.get(PARTNER_REPLIES), []

    def broken(self, error: str) -> ResetResult:
        """The episode could not begin; returns what is shown instead."""
        self.over, self.steady, self.error = False, False, error
        self.turns = []
        return "", {"error": error, **self.named}

    @property
    def named(self) -> dict[str, int]:
        """What an opening's info says about which episode it opens."""
        return {"seed": self.start.seed, "episode": self.start.episode}

    def lose(self) -> None:
        """The environment is gone."""
        self.lost, self.steady = True, False

    def give_up(self) -> None:
        """The episode under way is not played any further."""
        self.over, self.steady, self.error = True, False, None

    @property
    def playable(self) -> bool:
        """An episode is under way, even if its environment is not."""
        return not self.over and self.error is None

    def step(self, action: str) -> EnvCall:
        """The call that plays a turn, wherever the environment is now."""
        if not self.lost:
            return action
        shown = digest(0, self.opening, 0.0, self.images)
        replies: list[str] = []
        for _, observation, reward, images, answers in self.turns:
            shown = digest(shown, observation, reward, images)
            replies += answers or []
        start = self.start._replace(partner_replies=tuple(replies or self.replies or ()))
        return Replay(start, tuple(turn[0] for turn in self.turns), shown, action)

    def played(self, action: str, transition: Transition) -> None:
        """A turn was played."""
        info = transition[4]
        self.turns.append((action, transition[0], transition[1], info.get(IMAGES), info.get(PARTNER_REPLIES)))
        self.steady, self.lost = True, False


def first_starts(plan: TaskPlan) -> list[Reset]:
    """The calls that open the first episode of each slot."""
    return [start_of(plan, slot, plan.first_episode) for slot in range(plan.num_envs)]


def start_of(plan: TaskPlan, slot: int, episode: int, *, seed: int | None = None) -> Reset:
    """The call that opens that episode in that slot.

    Args:
        plan: the vector's.
        slot, episode: which.
        seed: of the run, in place of the plan's.
    """
    return start_of_task(plan, plan.task(slot, episode), episode, seed=seed)


def start_of_task(plan: TaskPlan, task: Task, episode: int = 0, *, seed: int | None = None) -> Reset:
    """The call that opens an episode of this task; the slot's next episodes move on by one round each."""
    stride = (plan.table.per_round, plan.table.per_round_of(task.env_id))
    return Reset(plan.seed if seed is None else seed, task, episode, stride)
