"""A maze that is seen as an image, walked turn by turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_core.image import IMAGES, PngImage
from gem_core.responses import last_box
from gem_visual._question import NO_ANSWER_REWARD, boxed
from gem_visual._shapes import COLORS, UNIT, blank

_BLOCK = 8
"""Pixels of a cell, and of a wall."""
_MOVES: Mapping[str, tuple[int, int]] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
_RULES = (
    "You are the red square in the maze, and walls are black. Walk to the green square. "
    "Put your move in a box: up, down, left or right, for example"
)

Cell = tuple[int, int]
"""Row and column."""


class Maze(Env):
    """A maze without circles; there is one way from any cell to any other.

    Action: the last `\\boxed{...}` with `up`, `down`, `left` or `right`.

    | move | reward | episode |
    | --- | --- | --- |
    | onto the green square | 1 | terminated |
    | to another cell | 0 | continues |
    | into a wall | 0 | continues; the turn is used up |
    | no such box | -0.1 | terminated |
    | on the last turn, not on the green square | as above | truncated |

    Each observation shows the maze as it is now.

    Args:
        cells: rows and columns.
        max_turns: the limit.

    Raises:
        EnvError: fewer than two cells, more than 20, or fewer than one turn.
    """

    def __init__(self, cells: int = 3, max_turns: int = 12) -> None:
        if not 2 <= cells <= 20 or max_turns < 1:
            raise EnvError(f"cells={cells}, max_turns={max_turns}: give 2 to 20 cells and at least one turn")
        self.cells, self.max_turns = cells, max_turns
        self.turn = 0
        self.open: set[tuple[Cell, Cell]] = set()
        self.place: Cell = (0, 0)
        self.goal: Cell = (0, 0)

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Dig a new maze, and choose start and goal."""
        super().reset(seed=seed)
        self.turn = 0
        self._dig()
        cells = [(row, column) for row in range(self.cells) for column in range(self.cells)]
        self.place, self.goal = self.rng.sample(cells, 2)
        return f"{_RULES} {boxed(self.rng.choice([*_MOVES]))}.\n", self._seen()

    def step(self, action: str) -> StepResult:
        """Walk to the next cell."""
        self.turn += 1
        given = (last_box(action) or "").lower()
        if given not in _MOVES:
            info: Info = {**self._seen(), "success": False, "invalid_action": True}
            return "There is no box with a direction.\n", NO_ANSWER_REWARD, True, False, info
        there = _beside(self.place, given)
        free = (self.place, there) in self.open
        if free:
            self.place = there
        success = self.place == self.goal
        info = {**self._seen(), "success": success}
        if not free:
            info["invalid_action"] = True
        text = "You are there.\n" if success else f"You went {given}.\n" if free else "There is a wall.\n"
        return text, float(success), success, not success and self.turn >= self.max_turns, info

    def sample_random_action(self) -> str:
        """A move that no wall stops."""
        return boxed(self.rng.choice([move for move in _MOVES if (self.place, _beside(self.place, move)) in self.open]))

    def expert_action(self) -> str:
        """The first move of the way to the green square."""
        before: dict[Cell, str] = {self.goal: ""}
        waiting = deque([self.goal])
        while self.place not in before:
            cell = waiting.popleft()
            for move, back in (("up", "down"), ("down", "up"), ("left", "right"), ("right", "left")):
                there = _beside(cell, move)
                if (cell, there) in self.open and there not in before:
                    before[there] = back
                    waiting.append(there)
        return boxed(before[self.place])

    def render(self) -> str:
        """The maze in signs, for a person who cannot see the image."""
        blocks = self._blocks()
        signs = {"wall": "#", "free": " ", "here": "@", "goal": "G"}
        return "\n".join("".join(signs[block] for block in row) for row in blocks)

    def _dig(self) -> None:
        """Walk at random to cells that are still closed, and back where there are none."""
        way = [(self.rng.randrange(self.cells), self.rng.randrange(self.cells))]
        seen = {way[0]}
        self.open = set()
        while way:
            around = [_beside(way[-1], move) for move in _MOVES]
            closed = [(r, c) for r, c in around if 0 <= r < self.cells and 0 <= c < self.cells and (r, c) not in seen]
            if not closed:
                way.pop()
                continue
            there = self.rng.choice(closed)
            self.open |= {(way[-1], there), (there, way[-1])}
            seen.add(there)
            way.append(there)

    def _blocks(self) -> list[list[str]]:
        size = 2 * self.cells + 1
        blocks = [["wall"] * size for _ in range(size)]
        for row in range(self.cells):
            for column in range(self.cells):
                blocks[2 * row + 1][2 * column + 1] = "free"
        for (row, column), (other_row, other_column) in self.open:
            blocks[row + other_row + 1][column + other_column + 1] = "free"
        for (row, column), what in ((self.goal, "goal"), (self.place, "here")):
            blocks[2 * row + 1][2 * column + 1] = what
        return blocks

    def _seen(self) -> Info:
        blocks = self._blocks()
        side = -(-len(blocks) * _BLOCK // UNIT) * UNIT
        image, draw = blank(side)
        fills = {"wall": COLORS["black"], "here": COLORS["red"], "goal": COLORS["green"]}
        for row, line in enumerate(blocks):
            for column, block in enumerate(line):
                if block in fills:
                    left, top = column * _BLOCK, row * _BLOCK
                    draw.rectangle((left, top, left + _BLOCK - 1, top + _BLOCK - 1), fill=fills[block])
        return {IMAGES: [PngImage.of(image).uri]}


def _beside(cell: Cell, move: str) -> Cell:
    down, right = _MOVES[move]
    return cell[0] + down, cell[1] + right
