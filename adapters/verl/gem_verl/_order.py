"""The order of rows in which no update is empty."""

from __future__ import annotations

from collections.abc import Sequence


def even_order(trains: Sequence[bool], ranks: int, updates: int) -> list[int]:
    """An order of rows in which every update of every rank has the same number of rows that train, give or take one.

    Each rank takes an equal part of the rows, and divides it into equal parts for its updates. verl appends padding
    rows to a batch, so without this order the last updates would be empty and the others too large.

    Args:
        trains: for each row, whether it has a turn. The number of rows is a multiple of `ranks * updates`.
        ranks: number of ranks. Rows are divided among ranks first, and stay on their rank.
        updates: number of updates per rank.

    Returns:
        The positions of the rows.
    """
    size = len(trains) // ranks
    order: list[int] = []
    for start in range(0, len(trains), size):
        dealt = sorted(range(start, start + size), key=lambda row: not trains[row])
        order += [row for update in range(updates) for row in dealt[update::updates]]
    return order
