"""MiniGrid and BabyAI: the part of the grid that the agent sees, in letters."""

from __future__ import annotations

from typing import Any

from gem_gym.codec import Codec

_OBJECTS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
_COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
_STATES = ("open", "closed", "locked")
_LETTERS = ("?", ".", "#", ".", "D", "K", "B", "X", "G", "L", "A")
_DIRECTIONS = ("east", "south", "west", "north")
_NAMED = frozenset({"door", "key", "ball", "box", "goal"})
"""What is listed with colour and place; walls, floor and lava are only on the map."""
_ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
_AGENT = "^"


class MiniGrid(Codec):
    """The agent's view as a map, with doors, keys and the like in words."""

    def __init__(self, env: Any) -> None:
        self.actions = _ACTIONS[: int(env.action_space.n)]  # some grids are only to be walked
        super().__init__(env)

    def task(self) -> str:
        """Goal, signs and actions."""
        return (
            f"You move in a grid and see the part before you. On the map, {_AGENT} is you, looking up; # is a wall, "
            ". floor, D a door, K a key, B a ball, X a box, G the goal, L lava, and ? is not seen. left and right turn "
            "you; forward moves you; pickup and toggle act on the cell before you, and toggle opens doors and boxes; "
            "drop puts down what you carry. "
            f"The sooner you are done, the more it pays; you have {self.env.unwrapped.max_steps} turns."
        )

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """The mission, the direction, and the objects in view; distances are in cells."""
        seen = [text for text in map(str, self._objects(observation["image"])) if text]
        direction = _DIRECTIONS[int(observation["direction"])]
        view = f"You see {', '.join(seen)}." if seen else "You see no objects."
        return f"Mission: {observation['mission']}. You look {direction}. {view}{self._carried(observation['image'])}"

    def board(self) -> str:
        """The map of what the agent sees."""
        image = self.env.unwrapped.gen_obs()["image"]
        columns, rows = map(int, image.shape[:2])
        signs = [[_LETTERS[int(image[column, row, 0])] for column in range(columns)] for row in range(rows)]
        signs[rows - 1][columns // 2] = _AGENT
        return "\n".join(" ".join(row) for row in signs)

    def _objects(self, image: Any) -> list[str]:
        """The objects in view, the nearest rows first; the agent's own cell is left out."""
        columns, rows = image.shape[:2]
        found: list[str] = []
        for row in reversed(range(rows)):
            for column in range(columns):
                here = (column, row) == (columns // 2, rows - 1)
                if not here and _OBJECTS[image[column, row, 0]] in _NAMED:
                    found.append(_named(image[column, row], column - columns // 2, rows - 1 - row))
        return found

    def _carried(self, image: Any) -> str:
        columns, rows = image.shape[:2]
        cell = image[columns // 2, rows - 1]
        if self.env.unwrapped.carrying is None:
            return ""
        return f" You carry a {_COLOURS[cell[1]]} {_OBJECTS[cell[0]]}."


def _named(cell: Any, right: int, ahead: int) -> str:
    kind = _OBJECTS[int(cell[0])]
    state = f"{_STATES[cell[2]]} " if kind == "door" else ""
    side = f", {abs(right)} to the {'right' if right > 0 else 'left'}" if right else ""
    return f"a {state}{_COLOURS[cell[1]]} {kind} ({ahead} ahead{side})"
