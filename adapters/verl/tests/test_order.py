"""Rows in an order in which no update is empty."""

from __future__ import annotations

import random

import pytest

from gem_verl._order import even_order


@pytest.mark.parametrize(("rows", "ranks", "updates"), [(131, 8, 8), (129, 8, 16), (389, 8, 4), (17, 1, 16), (5, 1, 1)])
def test_rows_that_train_are_spread_evenly_over_the_updates_of_each_rank(rows: int, ranks: int, updates: int):
    whole = -(-rows // (ranks * updates)) * ranks * updates
    # As verl leaves them: padding at the end, then the rows of each rank in order.
    owner = [row % ranks for row in range(whole)]
    trains = [row < rows for rank in range(ranks) for row in range(whole) if owner[row] == rank]
    order = even_order(trains, ranks, updates)
    assert sorted(order) == [*range(whole)]
    size, part = whole // ranks, whole // ranks // updates
    for rank in range(ranks):
        mine = order[rank * size : (rank + 1) * size]
        assert {*mine} == {*range(rank * size, (rank + 1) * size)}, "a rank keeps its rows"
        counts = [sum(trains[row] for row in mine[at : at + part]) for at in range(0, size, part)]
        assert max(counts) - min(counts) <= 1


def test_any_rows_may_train_nothing():
    rng = random.Random(0)
    for _ in range(200):
        ranks, updates = rng.randint(1, 4), rng.randint(1, 4)
        trains = [rng.random() < 0.7 for _ in range(ranks * updates * rng.randint(1, 5))]
        order = even_order(trains, ranks, updates)
        size = len(trains) // ranks
        for rank in range(ranks):
            mine = order[rank * size : (rank + 1) * size]
            part = size // updates
            counts = [sum(trains[row] for row in mine[at : at + part]) for at in range(0, size, part)]
            assert max(counts) - min(counts) <= 1
