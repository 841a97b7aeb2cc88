"""A path with forks: the way out is marked, and after a wrong turn the agent must walk back."""

from __future__ import annotations

from typing import Any

from gem_core import Env
from gem_core.errors import EnvError

COLOURS = ("red", "blue", "green")
SIDES = ("left", "right")


class Fork(Env):
    """Follow one color through a row of forks.

    Observation: `follow red: left blue, right red` at a fork, `dead end` after a wrong turn, `out` behind the last
    fork. Action: one word, white space around it ignored: `left` or `right` at a fork, `back` in a dead end.

    | action | reward | episode |
    | --- | --- | --- |
    | the right turn at the last fork | 1 | terminated |
    | any other move | 0 | continues; truncated after `max_turns` |
    | any other text | -0.1 | the same, without a move |

    Args:
        forks: number of forks on the way out.
        max_turns: turns before the episode is cut off.

    Raises:
        EnvError: no fork, or fewer turns than forks.
    """

    def __init__(self, forks: int = 3, max_turns: int = 10) -> None:
        if not 1 <= forks <= max_turns:
            raise EnvError(f"a maze needs 1 <= forks <= max_turns, not forks={forks} and max_turns={max_turns}")
        self.forks = forks
        self.max_turns = max_turns

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        """Choose the color to follow and hang the signs."""
        super().reset(seed=seed)
        self.colour = self.rng.choice(COLOURS)
        others = [colour for colour in COLOURS if colour != self.colour]
        self.signs = [self.rng.sample([self.colour, self.rng.choice(others)], 2) for _ in range(self.forks)]
        self.passed = 0
        self.lost = False
        self.turn = 0
        return self.render(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take a turn, or walk back."""
        self.turn += 1
        move = action.strip()
        legal = move in self._moves()
        if legal and self.lost:
            self.lost = False
        elif legal:
            self.lost = self.signs[self.passed][SIDES.index(move)] != self.colour
            self.passed += not self.lost
        out = self.passed == self.forks
        info: dict[str, Any] = {"success": out}
        if not legal:
            info["invalid_action"] = True
        reward = 1.0 if out else 0.0 if legal else -0.1
        return self.render(), reward, out, not out and self.turn >= self.max_turns, info

    def sample_random_action(self) -> str:
        """A random possible move."""
        return self.rng.choice(self._moves())

    def render(self) -> str:
        """The signs at this place."""
        if self.passed == self.forks:
            return "out"
        if self.lost:
            return "dead end"
        left, right = self.signs[self.passed]
        return f"follow {self.colour}: left {left}, right {right}"

    def _moves(self) -> tuple[str, ...]:
        return ("back",) if self.lost else SIDES
