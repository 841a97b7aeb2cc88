"""Sokoban: push boxes onto targets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._sokoban_rooms import FLOOR_PER_BOX, Room, draw_room
from gem_games._sokoban_routes import routes

_DRAWN = (((6, 6), 2, 20), ((8, 8), 5, 50))
"""Rows and columns, boxes and turns to draw from."""
_WALL, _FLOOR, _TARGET, _BOX, _BOX_ON_TARGET, _PLAYER = "#_OX√P"
_BOXES, _FREE = _BOX + _BOX_ON_TARGET, _FLOOR + _TARGET


class Sokoban(Game):
    """A room with as many boxes as targets, to be solved within `max_turns` moves.

    Action: the last `\\boxed{up}` (`down`, `left`, `right`) in the text, in any case. Moving into a box pushes it.

    | move | reward | episode |
    | --- | --- | --- |
    | puts the last box on a target | 1 | terminated |
    | another | 0 | continues |
    | into a wall, or pushing a box that is blocked | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | on the last turn, not solved | boxes on targets / boxes | terminated and truncated |

    Board: `P` player, `#` wall, `X` box, `O` target, `√` box on a target, `_` floor. Every room can be solved, but a
    few not within the limit.

    Args:
        dim_room: rows and columns, the walls around included.
        num_boxes: the boxes, each with a target.
        max_turns: the limit. All three `None` draws 6x6 with 2 boxes and 20 turns, or 8x8 with 5 and 50, for each
            episode.

    Raises:
        EnvError: a room too small for its boxes, no boxes or turns, or only some of the three given. `reset` raises it
            where no room is found, which does not happen with the sizes of the ids.
    """

    ACTION = re.compile(r"\\boxed\{(up|down|left|right)\}", re.IGNORECASE)
    instead_of: ClassVar[Mapping[str, str]] = {**Game.instead_of, "room_size": "Use dim_room=(rows, columns)"}
    FORM = f"{boxed('up')}, {boxed('down')}, {boxed('left')} or {boxed('right')}"

    def __init__(
        self, dim_room: Sequence[int] | None = (6, 6), max_turns: int | None = 100, num_boxes: int | None = 3
    ) -> None:
        self._drawn = to_be_drawn(dim_room=dim_room, max_turns=max_turns, num_boxes=num_boxes)
        if dim_room is not None and max_turns is not None and num_boxes is not None:
            self._set_limits(dim_room, num_boxes, max_turns)

    def deal(self) -> None:
        """Draw a room, and its size if none was given."""
        if self._drawn:
            self._set_limits(*self.rng.choice(_DRAWN))
        self.enter(self.draw_room())

    def draw_room(self) -> Room:
        """A room that can be solved."""
        return draw_room(*self.dim_room, self.num_boxes, self.rng)

    def enter(self, room: Room) -> None:
        """Start in this room, whatever was drawn."""
        self.targets, self.player = room.targets, room.player
        # The board's text, in which cell n stands at 2n, between spaces and line ends.
        self._text = [*(_WALL + " ") * (room.height * room.width)]
        self._text[2 * room.width - 1 :: 2 * room.width] = "\n" * room.height
        self._text.pop()
        for cell in room.floor:
            self._put(cell, _FLOOR, _TARGET)
        for cell in room.boxes:
            self._put(cell, _BOX, _BOX_ON_TARGET)
        self.done = len(room.boxes & room.targets)
        self._text[2 * room.player] = _PLAYER
        self._steps = {"up": -room.width, "down": room.width, "left": -1, "right": 1}

    def rules(self) -> str:
        """Goal, marks, limit and form."""
        return (
            f"Sokoban: get all boxes ({_BOX}) onto targets ({_TARGET}) within {self.max_turns} moves. You are "
            f"{_PLAYER}; {_WALL} is a wall, {_FLOOR} is floor, {_BOX_ON_TARGET} a box on a target. You move up, down, "
            "left or right. Moving into a box pushes it one cell on, if that cell has no wall and no box; you cannot "
            f"pull. Write one move a turn like this: {boxed('up')}"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Move, and push a box that is in the way."""
        way = move[1].lower()
        step = self._steps.get(way)
        if step is None:  # a letter outside ASCII, such as a dotless i, that only looks the same without case
            return None
        there = self.player + step
        mark = self._text[2 * there]
        pushes = mark in _BOXES
        if mark == _WALL:
            return f"There is a wall, you cannot move {way}.", 0.0, INVALID
        if pushes and not self._push(there, there + step):
            return f"The box cannot be pushed {way}.", 0.0, INVALID
        self._put(self.player, _FLOOR, _TARGET)
        self._text[2 * there] = _PLAYER
        self.player = there
        if pushes and self.done == self.num_boxes:
            return "All boxes are on targets.", 1.0, SOLVED
        return f"You {'pushed a box' if pushes else 'moved'} {way}.", 0.0, GOES_ON

    def board(self) -> str:
        """The room, row by row."""
        return "".join(self._text)

    def consolation(self) -> float:
        """The share of boxes that are on targets."""
        return self.done / self.num_boxes

    def sample_random_action(self) -> str:
        """A move that is not blocked."""
        return boxed(self.rng.choice([way for way, step in self._steps.items() if self._is_open(step)]))

    def expert_action(self) -> str:
        """The next move of a way to the end, a shortest one where it is found in time.

        If no way was found, the first move that is not blocked.
        """
        boxes = frozenset(cell for cell, mark in enumerate(self._text[::2]) if mark in _BOXES)
        floor = frozenset(cell for cell, mark in enumerate(self._text[::2]) if mark != _WALL)
        way = routes(self.dim_room[1], floor, self.targets).move((self.player, boxes))
        return boxed(way or next(way for way, step in self._steps.items() if self._is_open(step)))

    def _set_limits(self, room: Sequence[int], boxes: int, turns: int) -> None:
        if len(room) != 2 or min(room) < 3 or boxes < 1 or turns < 1:
            raise EnvError(
                f"cannot play {boxes} boxes in a room of {room} in {turns} turns: it needs dim_room=(rows, columns) of "
                "at least 3 each, num_boxes >= 1 and max_turns >= 1"
            )
        height, width = room
        if (height - 2) * (width - 2) < FLOOR_PER_BOX * boxes:
            raise EnvError(
                f"{height}x{width} is too small for {boxes} boxes: inside the walls it needs {FLOOR_PER_BOX} cells for "
                "each. Give a larger dim_room or fewer num_boxes"
            )
        self.dim_room, self.num_boxes, self.max_turns = (height, width), boxes, turns

    def _put(self, cell: int, mark: str, on_target: str) -> None:
        self._text[2 * cell] = on_target if cell in self.targets else mark

    def _push(self, box: int, beyond: int) -> bool:
        """Push a box out of its cell, if the one beyond is free."""
        if self._text[2 * beyond] not in _FREE:
            return False
        self._put(beyond, _BOX, _BOX_ON_TARGET)
        self.done += (beyond in self.targets) - (box in self.targets)
        return True

    def _is_open(self, step: int) -> bool:
        there = self.player + step
        mark = self._text[2 * there]
        return mark in _FREE or (mark in _BOXES and self._text[2 * (there + step)] in _FREE)


class SokobanV1(BoxedGame, Sokoban):
    """The same in rooms that can be solved within `max_turns`; the box accepts white space."""

    ACTION = re.compile(r"(up|down|left|right)", re.IGNORECASE | re.ASCII)

    def draw_room(self) -> Room:
        """A room that can be solved in time."""
        return draw_room(*self.dim_room, self.num_boxes, self.rng, most_moves=self.max_turns)
