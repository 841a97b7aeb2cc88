"""Where the turns of a batch of verl's stand in its rows, and the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.training.layout import Layout

from gem_core.training.rows import TurnSpan


def layout_of(keys: Sequence[str], spans: Sequence[Sequence[TurnSpan]]) -> Layout:
    """The layout of a batch.

    Args:
        keys: verl's name of each row, `<task>_<episode of the task>_<row of the episode>`.
        spans: the turns in each row.
    """
    episodes = [key.rpartition("_")[0] for key in keys]
    return Layout.of(episodes, [episode.rpartition("_")[0] for episode in episodes], spans)


def even_order(trains: Sequence[bool], ranks: int, updates: int) -> list[int]:
    """Rows in an order in which every update of every rank has as many rows that train something, give or take one.

    Each rank takes an equal part of the rows, and cuts it into equal parts for its updates. verl puts the rows with
    which it fills a batch up at the end, so that the last updates would be empty and the others too large.

    Args:
        trains: for each row whether it has a turn; as many rows as divide by `ranks * updates`.
        ranks: how many parts the rows are cut into first; which rows are in which part stays.
        updates: how many parts each rank's rows are cut into.

    Returns:
        The positions of the rows.
    """
    size = len(trains) // ranks
    order: list[int] = []
    for start in range(0, len(trains), size):
        dealt = sorted(range(start, start + size), key=lambda row: not trains[row])
        order += [row for update in range(updates) for row in dealt[update::updates]]
    return order
