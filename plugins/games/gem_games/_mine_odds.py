"""The chance that each closed cell of a Minesweeper board hides a mine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

Clue = tuple[frozenset[int], int]
"""Closed cells, and how many of them hide mines."""
Counts = dict[int, tuple[int, dict[int, int]]]
"""By the number of mines in a group of cells: the number of arrangements, and for each cell those with a mine."""

MAX_ARRANGEMENTS = 50_000
"""Partial arrangements of one group that are looked at; odds of a larger group are those of a part of them."""


def odds(closed: Iterable[int], clues: Sequence[Clue], mines: int) -> dict[int, float]:
    """The chance of a mine for each closed cell, all arrangements being equally likely.

    Args:
        closed: the cells that are not open.
        clues: what the open cells say.
        mines: how many the closed cells hide in all.
    """
    covered = frozenset[int]().union(*(cells for cells, _ in clues))
    free = [cell for cell in closed if cell not in covered]
    groups = [_counts(group) for group in _groups(clues)]
    whole = _together(groups)
    weights = {
        count: ways * math.comb(len(free), mines - count) for count, ways in whole.items() if _fits(mines - count, free)
    }
    total = sum(weights.values())
    if not total:  # only where a group was too large to look at whole
        return dict.fromkeys(closed, 0.5)
    found = {cell: sum(w * (mines - count) for count, w in weights.items()) / (total * len(free)) for cell in free}
    for number, group in enumerate(groups):
        others = _together([one for other, one in enumerate(groups) if other != number])
        for cell in {cell for _, cells in group.values() for cell in cells}:
            with_mine = sum(
                cells.get(cell, 0) * ways * math.comb(len(free), mines - inside - outside)
                for inside, (_, cells) in group.items()
                for outside, ways in others.items()
                if _fits(mines - inside - outside, free)
            )
            found[cell] = with_mine / total
    return found


def _fits(mines: int, free: Sequence[int]) -> bool:
    return 0 <= mines <= len(free)


def _groups(clues: Sequence[Clue]) -> list[list[Clue]]:
    """The clues in groups that share no cell."""
    groups: list[tuple[set[int], list[Clue]]] = []
    for clue in clues:
        if not clue[0]:
            continue
        near = [group for group in groups if group[0] & clue[0]]
        cells, members = set(clue[0]), [clue]
        for group in near:
            cells |= group[0]
            members += group[1]
            groups.remove(group)
        groups.append((cells, members))
    return [members for _, members in groups]


def _counts(clues: Sequence[Clue]) -> Counts:
    """All arrangements of a group, counted by their mines."""
    order = list(dict.fromkeys(cell for cells, _ in clues for cell in sorted(cells)))
    of = {cell: [number for number, (cells, _) in enumerate(clues) if cell in cells] for cell in order}
    mines_left = [mines for _, mines in clues]
    cells_left = [len(cells) for cells, _ in clues]
    ways: defaultdict[int, int] = defaultdict(int)
    with_mine: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    looked = 0
    chosen: list[int] = []

    def place(at: int) -> None:
        nonlocal looked
        looked += 1
        if looked > MAX_ARRANGEMENTS:
            return
        if at == len(order):
            ways[len(chosen)] += 1
            for cell in chosen:
                with_mine[len(chosen)][cell] += 1
            return
        cell = order[at]
        for mine in (0, 1):
            for number in of[cell]:
                mines_left[number] -= mine
                cells_left[number] -= 1
            if all(0 <= mines_left[number] <= cells_left[number] for number in of[cell]):
                chosen.extend([cell] * mine)
                place(at + 1)
                del chosen[len(chosen) - mine :]
            for number in of[cell]:
                mines_left[number] += mine
                cells_left[number] += 1

    place(0)
    return {count: (ways[count], {cell: with_mine[count].get(cell, 0) for cell in order}) for count in ways}


def _together(groups: Sequence[Counts]) -> Mapping[int, int]:
    """The number of arrangements of several groups, by their mines."""
    whole: dict[int, int] = {0: 1}
    for group in groups:
        added: defaultdict[int, int] = defaultdict(int)
        for one, ways in whole.items():
            for more, (others, _) in group.items():
                added[one + more] += ways * others
        whole = dict(added)
    return whole
