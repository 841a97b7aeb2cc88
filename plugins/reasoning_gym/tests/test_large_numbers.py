"""Seeds, sizes and numbers of 64 bits."""

from __future__ import annotations

from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError

pytest.importorskip("reasoning_gym")


def opened(name: str, **settings: Any) -> gem_core.Env:
    return gem_core.make(f"rg:{name}", **settings)


@pytest.mark.parametrize("name", ["chain_sum", "pool_matrix", "acre"])
@pytest.mark.parametrize("data_seed", [2**31, 2**32 + 5, 1790000000123456789, 2**64 - 1])
def test_clocks_are_seeds_and_large_numbers_are_numbers(name: str, data_seed: int) -> None:
    env, same, other = (opened(name, data_seed=seed) for seed in (data_seed, data_seed, data_seed - 1))
    for number in (0, 1, 2**31, 2**40 + 1):
        assert env.reset(row=number) == same.reset(row=number)
    assert env.reset(row=0)[0] != env.reset(row=1)[0]
    assert env.reset(row=0)[0] != other.reset(row=0)[0]
    assert env.reset(seed=5) == same.reset(seed=5)


def test_a_seed_that_numpy_takes_is_passed_on() -> None:
    assert opened("pool_matrix", data_seed=7).reset(row=5)[0] == opened("pool_matrix", data_seed=12).reset(row=0)[0]


def test_a_data_set_may_be_of_any_size() -> None:
    env = opened("chain_sum", size=10**12)
    assert env.data_size == 10**12
    assert env.reset(row=10**12 - 1)[0] != env.reset(row=0)[0]


@pytest.mark.parametrize("settings", [{"data_seed": 2**64}, {"data_seed": 1.5}, {"size": 2**64 + 1}], ids=str)
def test_what_is_larger_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        opened("chain_sum", **settings)
