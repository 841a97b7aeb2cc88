"""Tower of Hanoi: carry a pile of disks from one tower to another, no disk ever on a smaller one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, Game, Move, boxed, to_be_drawn

TOWERS = "ABC"

Pile: TypeAlias = tuple[int, ...]
"""Disks of a tower from the bottom; 1 is the smallest."""

_RANDOM = ((3, 10), (4, 20), (5, 35))
"""Disks and turns to draw from."""


class TowerofHanoi(Game):
    """`num_disks` disks on tower A, to be moved to tower C within `max_turns` turns, one at a time.

    Action: the last `\\boxed{A C}` in the text: from, to; in any case, with white space, a comma or nothing between.

    | move | reward | episode |
    | --- | --- | --- |
    | the last disk to C | 1 | terminated |
    | another allowed one, also from a tower to itself | 0 | continues |
    | from an empty tower, or onto a smaller disk | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | not solved on the last turn | disks on C / num_disks | terminated and truncated |

    Args:
        num_disks, max_turns: pile and limit; both `None` draws one of three sizes for each episode.

    Raises:
        EnvError: fewer than one disk or turn, or only one of the two given.
    """

    # `\s*,?\s*` between the letters reads the same, in time quadratic in the white space.
    ACTION = re.compile(r"\\boxed\{([ABCabc])\s*(?:,\s*)?([ABCabc])\}")
    FORM = boxed("from to")

    def __init__(self, num_disks: int | None = 3, max_turns: int | None = 100) -> None:
        self._drawn = to_be_drawn(num_disks=num_disks, max_turns=max_turns)
        if num_disks is not None and max_turns is not None:
            self._set_size(num_disks, max_turns)

    def deal(self) -> None:
        """Pile the disks up on A, and draw their number if none was given."""
        if self._drawn:
            self._set_size(*self.rng.choice(_RANDOM))
        self.towers: dict[str, Pile] = {"A": tuple(range(self.num_disks, 0, -1)), "B": (), "C": ()}

    def rules(self) -> str:
        """Task, limit and form."""
        return (
            f"Tower of Hanoi: move all {self.num_disks} disks from tower A to tower C in {self.max_turns} moves. "
            "A move takes the top disk of a tower to another one, never onto a smaller disk. Disk 1 is the smallest; "
            "the top disk of a tower is on the right. "
            f"Put your move in a box: {boxed('A C')} moves a disk from A to C.\n"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Move a disk."""
        source, target = move[1].upper(), move[2].upper()
        towers = self.towers
        pile, onto = towers[source], towers[target]
        if not pile:
            return f"Tower {source} is empty.", 0.0, INVALID
        disk = pile[-1]
        if onto and disk > onto[-1]:
            return f"Disk {disk} does not go onto disk {onto[-1]}.", 0.0, INVALID
        towers[source] = pile[:-1]
        towers[target] += (disk,)  # read again: it may be the same tower
        if len(towers["C"]) == self.num_disks:
            return "All disks are on C.", 1.0, SOLVED
        return f"Disk {disk} went from {source} to {target}.", 0.0, GOES_ON

    def consolation(self) -> float:
        """The more disks on C, the more it pays."""
        return len(self.towers["C"]) / self.num_disks

    def board(self) -> str:
        """The disks of each tower, the top one last."""
        a, b, c = map(_text, self.towers.values())
        return f"A: {a}\nB: {b}\nC: {c}"

    def sample_random_action(self) -> str:
        """An allowed move from a tower to another."""
        tops = [(self.towers[tower] or (self.num_disks + 1,))[-1] for tower in TOWERS]
        moves = [(source, target) for source in range(3) for target in range(3) if tops[source] < tops[target]]
        source, target = self.rng.choice(moves)
        return boxed(f"{TOWERS[source]} {TOWERS[target]}")

    def expert_action(self) -> str:
        """The next move of a shortest way: the largest disk that is not there yet decides."""
        towers = {disk: tower for tower, pile in self.towers.items() for disk in pile}
        disk, goal = self.num_disks, "C"
        move = boxed("A C")
        for disk in range(self.num_disks, 0, -1):
            here = towers[disk]
            if here != goal:
                # The smaller disks have to be on the third tower first.
                move, goal = boxed(f"{here} {goal}"), next(tower for tower in TOWERS if tower not in (here, goal))
        return move

    def _set_size(self, disks: int, turns: int) -> None:
        if disks < 1 or turns < 1:
            raise EnvError(f"cannot play {disks} disks in {turns} turns: it needs num_disks >= 1 and max_turns >= 1")
        self.num_disks, self.max_turns = disks, turns


@lru_cache(maxsize=1 << 12)
def _text(pile: Pile) -> str:
    return " ".join(map(str, pile)) or "-"
