"""A corridor: a minimal game, for tests and first examples."""

from __future__ import annotations

from typing import Any

from gem_core.env import Env, ResetResult, StepResult
from gem_core.errors import EnvError

LEFT, RIGHT = "<", ">"


class Corridor(Env):
    """Walk from `@` to `G` along a row of cells.

    Observation: the row, for example `..@...G`. Action: `<` or `>`, white space around it ignored. Reaching `G` pays 1
    and terminates, any other legal move pays 0, an illegal one -0.1; after `max_turns` the episode is truncated.
    The row is all the text: nothing says what a move is, so that prompts of small models stay short.

    Args:
        length: number of cells.
        max_turns: turns before the episode is cut off.

    Raises:
        EnvError: fewer than two cells, or fewer than one turn.
    """

    def __init__(self, length: int = 7, max_turns: int = 8) -> None:
        if length < 2 or max_turns < 1:
            raise EnvError(f"a corridor needs length >= 2 and max_turns >= 1, not {length} and {max_turns}")
        self.length = length
        self.max_turns = max_turns

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Put player and goal on two different cells."""
        super().reset(seed=seed)
        self.turn = 0
        self.player, self.goal = self.rng.sample(range(self.length), 2)
        return self.render(), {}

    def step(self, action: str) -> StepResult:
        """Move one cell."""
        self.turn += 1
        legal = action.strip() in self._legal_moves()
        if legal:
            self.player += 1 if action.strip() == RIGHT else -1
        reached = self.player == self.goal
        info = {"success": reached, **({} if legal else {"invalid_action": True})}
        reward = 1.0 if reached else 0.0 if legal else -0.1
        return self.render(), reward, reached, not reached and self.turn >= self.max_turns, info

    def sample_random_action(self) -> str:
        """A move that stays inside the corridor."""
        return self.rng.choice(self._legal_moves())

    def expert_action(self) -> str:
        """Towards the goal."""
        return RIGHT if self.player < self.goal else LEFT

    def render(self) -> str:
        """The row of cells."""
        marks = {self.player: "@", self.goal: "G"}
        return "".join(marks.get(cell, ".") for cell in range(self.length))

    def _legal_moves(self) -> list[str]:
        return [LEFT] * (self.player > 0) + [RIGHT] * (self.player < self.length - 1)
