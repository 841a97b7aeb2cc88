"""The table of finished episodes: what goes in comes out, in little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from gem_core.episode import StopReason
from gem_evaluation._errors import EvaluationError
from gem_evaluation._finished import EPISODE, Finished, by_task, openings, policy_faults, rows_of, stop_reasons
from gem_evaluation._records import Key, PolicyFault, Result


def result(
    task: int, repeat: int = 0, entry: str = "one", success: bool = True, fault: PolicyFault | None = None
) -> Result:
    return Result(
        key=Key(entry, task, repeat), success=success, total_reward=task / 8, turns=task + 1,
        stop_reason=StopReason.CONTEXT_FULL if fault else StopReason.TERMINATED, invalid=1, truncated=2, tool_calls=3,
        tool_successes=4, prompt_tokens=5_000_000_000, completion_tokens=6, requests=7, cost=0.5, seconds=1.5,
        opening=f"{task:016x}", policy_fault=fault,
    )  # fmt: skip


def test_what_goes_in_comes_out() -> None:
    finished = Finished(
        [result(2), result(0, repeat=1, success=False, fault="context_full"), result(300, entry="other")]
    )
    finished.add(result(0))
    tables = finished.tables({"one": (10, 2), "other": (301, 1), "third": (5, 5)})
    assert by_task(tables.values(), "success") == [[True, False], [True], [True]]
    assert by_task([tables["one"]], "turns") == [[1, 1], [3]]
    rows = rows_of(tables.values())
    assert [rows[name].sum() for name in ("prompt_tokens", "cost", "seconds")] == [20_000_000_000, 2.0, 6.0]
    assert [*openings(tables["one"])] == [(0, f"{0:016x}"), (2, f"{2:016x}")]
    assert [*stop_reasons(rows)].count(StopReason.CONTEXT_FULL) == 1
    assert [*policy_faults(rows)] == ["context_full"]
    assert [Key("one", 0, 1) in finished, Key("one", 2, 1) in finished] == [True, False]
    assert not any(key in finished for key in (Key("one", 3, 0), Key("other", 900, 4), Key("fourth", 0, 0)))


def test_a_plan_of_less_is_a_part_of_the_table() -> None:
    finished = Finished(result(task, repeat) for task in range(4) for repeat in range(3))
    assert by_task([finished.table("one", 2, 1)], "success") == [[True], [True]]
    assert len(rows_of([finished.table("one")])) == 12


@pytest.mark.parametrize(("task", "repeat"), [(2**30, 0), (0, 2**30), (2**12, 2**12)])
def test_a_key_for_which_there_is_no_memory_is_named(task: int, repeat: int) -> None:
    with pytest.raises(EvaluationError, match="an evaluation has 8,388,608 at most"):
        Finished([result(0), result(task, repeat)])


def test_an_episode_takes_its_row_and_nothing_else() -> None:
    number = 20_000
    Finished([result(0)])
    tracemalloc.start()
    try:
        finished = Finished(result(task) for task in range(number))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result(number - 1).key in finished
    assert kept < 2 * number * EPISODE.itemsize + 100_000, "at most as much room again is kept free"
