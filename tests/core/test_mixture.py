"""Mixtures: which environment takes which place, and what each id did."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gem_core
from gem_core import Env
from gem_core.failures import FailurePolicy
from gem_core.vector._statistics import EnvStatistics
from gem_core.vector._tasks import share_slots, weights_of
from gem_support.vector_envs import Walk, action, make, play

weightings = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.05, 10.0), min_size=1)
backends = pytest.mark.parametrize("backend", ["sync", "thread", "process"])


@pytest.fixture(autouse=True)
def _registered() -> None:
    for name in ("Walk", "Other", "Third"):
        gem_core.register(f"demo-mixture:{name}-v0", Walk)
    gem_core.register("demo-mixture:Scripted-v0", Scripted)


# -- places ----------------------------------------------------------------------------------------------------------


@given(weightings, st.integers(1, 60))
def test_every_prefix_has_the_shares_that_the_weights_say(weights: dict[str, float], count: int) -> None:
    total = sum(weights.values())
    try:
        places = share_slots(weights, 200 + count)
    except ValueError:
        assert min(weights.values()) / total < 0.05
        return
    for width in range(1, len(places) + 1):
        counts = Counter(places[:width])
        for env_id, weight in weights.items():
            assert abs(counts[env_id] - width * weight / total) < len(weights)


@given(weightings, st.integers(6, 60), st.integers(6, 60))
def test_a_place_has_the_same_id_at_any_width(weights: dict[str, float], one: int, other: int) -> None:
    try:
        narrow, wide = (share_slots(weights, count) for count in sorted([one, other]))
    except ValueError:
        return
    assert wide[: len(narrow)] == narrow


@pytest.mark.parametrize(
    ("weights", "places"),
    [
        ({"a": 1}, "aaaa"),
        ({"a": 1, "b": 1}, "abab"),
        ({"a": 0.1, "b": 0.1, "c": 0.1}, "abcabc"),
        ({"a": 3, "b": 1}, "aabaaaba"),
        ({"a": 0.3, "b": 0.1}, "aabaaaba"),
        ({"b": 1, "a": 3}, "abaaabaa"),
        ({"a": 0.7, "b": 0.2, "c": 0.1}, "aabaacaaba"),
    ],
)
def test_places_by_hand(weights: dict[str, float], places: str) -> None:
    assert "".join(share_slots(weights, len(places))) == places


@pytest.mark.parametrize(
    ("env_ids", "weights"),
    [
        ("a", {"a": 1.0}),
        (["a", "b"], {"a": 1.0, "b": 1.0}),
        (("a", "b", "a"), {"a": 2.0, "b": 1.0}),
        ({"a": 3, "b": 0.5}, {"a": 3.0, "b": 0.5}),
    ],
)
def test_weights_of_what_make_vec_takes(env_ids: Any, weights: dict[str, float]) -> None:
    assert weights_of(env_ids) == weights


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_weights_that_cannot_work_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weights must be above 0"):
        make({"demo-mixture:Walk-v0": 1.0, "demo-mixture:Other-v0": weight}, 4)


@pytest.mark.parametrize("nothing", [[], {}, ()])
def test_no_id_is_refused(nothing: Any) -> None:
    with pytest.raises(ValueError, match="no environment id"):
        make(nothing, 4)


def test_an_id_without_a_place_is_refused() -> None:
    weights = {"demo-mixture:Walk-v0": 100.0, "demo-mixture:Other-v0": 1.0}
    with pytest.raises(ValueError, match=r"2 environment ids for 8 slots: .*Other-v0.* would never be played"):
        make(weights, 8)
    with pytest.raises(ValueError, match="would never be played"):
        make(["demo-mixture:Walk-v0", "demo-mixture:Other-v0"], 4, group_size=4)


# -- vectors ---------------------------------------------------------------------------------------------------------


def test_weights_are_interleaved_and_a_list_is_not() -> None:
    walk, other = "demo-mixture:Walk-v0", "demo-mixture:Other-v0"
    for ids, slots in [
        ([walk, walk, other], (walk, walk, other)),
        ([other, walk, walk], (other, walk, walk)),
        ({walk: 2, other: 1}, (walk, other, walk)),
    ]:
        with make(ids) as vec:
            assert vec.env_ids == slots
    with make([walk, walk, other], 6) as vec:
        assert vec.env_ids == (walk, walk, other) * 2
    with make([walk, walk, other], group_size=2) as vec:
        assert vec.env_ids == (walk, walk, walk, walk, other, other)


def test_a_group_is_of_one_id() -> None:
    weights = {"demo-mixture:Walk-v0": 2.0, "demo-mixture:Other-v0": 1.0}
    with make(weights, 12, group_size=2) as vec:
        assert vec.env_ids[0::2] == vec.env_ids[1::2]
        assert Counter(vec.env_ids) == {"demo-mixture:Walk-v0": 8, "demo-mixture:Other-v0": 4}
        assert "8 x demo-mixture:Walk-v0, 4 x demo-mixture:Other-v0" in repr(vec)


def test_many_ids_are_shown_in_short() -> None:
    names = ["Walk", "Other", "Third", "Scripted"]
    with make([f"demo-mixture:{name}-v0" for name in names]) as vec:
        assert "1 x demo-mixture:Third-v0 and 1 more ids" in repr(vec)


def test_one_id_by_default_has_one_place_each() -> None:
    with make({"demo-mixture:Walk-v0": 1.0, "demo-mixture:Other-v0": 1.0}) as vec:
        assert vec.num_envs == 2


# -- statistics ------------------------------------------------------------------------------------------------------


class Scripted(Env):
    """Answers as the action says: a reward, then how the episode goes on."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        return "", {"success": True}  # of an opening, so it counts for nothing

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        reward, _, what = action.partition(" ")
        if what == "fail":
            raise OSError("gone")
        return "", float(reward), what in ("win", "lose"), what == "cut", {"success": what == "win"}

    def sample_random_action(self) -> str:
        return "0"


@backends
@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
def test_statistics_by_hand(backend: str, autoreset: str) -> None:
    ids = ["demo-mixture:Scripted-v0", "demo-mixture:Walk-v0"]
    with make(ids, 2, backend, autoreset=autoreset, failures=FailurePolicy(max_failure_share=None)) as vec:
        vec.reset()
        for turn in ("1", "2 win", "3", "4 lose", "5 cut", "6", "7 fail", "8 win", "9"):
            _, _, terminated, truncated, _ = vec.step({0: turn})
            if (terminated[0] or truncated[0]) and autoreset == "disabled":
                vec.reset(slots=[0])
        one, other = (vec.statistics[env_id] for env_id in ids)
    # 1+2 won, 3+4 lost, 5 cut off, 6 failed, 8 won; 9 goes on.
    assert one == EnvStatistics(episodes=5, turns=7, total_return=29.0, successes=2, truncated=2, failed=1, failures=1)
    assert (one.mean_return, one.mean_turns, one.success_rate) == (29 / 5, 7 / 5, 2 / 5)
    assert other == EnvStatistics()
    assert [value != value for value in (other.mean_return, other.mean_turns, other.success_rate)] == [True] * 3


def test_statistics_are_sums_over_the_environments_of_an_id() -> None:
    ids = ["demo-mixture:Walk-v0", "demo-mixture:Other-v0"]
    with make(ids, 4) as vec:
        episodes = play(vec, 12)
    for place, env_id in enumerate(ids):
        mine = [one for index in (place, place + 2) for one in episodes[index]]
        counted = vec.statistics[env_id]
        assert (counted.episodes, counted.turns) == (len(mine), sum(len(turns) for _, turns in mine))
        assert counted.total_return == pytest.approx(sum(turn[1] for _, turns in mine for turn in turns))
        assert counted.successes == counted.episodes


def test_a_failed_reset_is_an_episode_without_turns() -> None:
    class Broken(Walk):
        def reset(self, seed: int | None = None, **options: Any) -> Any:
            raise OSError("no level")

    gem_core.register("demo-mixture:Broken-v0", Broken)
    with make("demo-mixture:Broken-v0", 1, failures=FailurePolicy(max_failure_share=None)) as vec:
        vec.reset()
        for turn in range(3):
            vec.step([action(turn)])
        one = vec.statistics["demo-mixture:Broken-v0"]
    assert (one.episodes, one.turns, one.failed, one.truncated, one.failures) == (4, 0, 4, 4, 4)
