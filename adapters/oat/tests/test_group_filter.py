"""Oat's actor replaces groups without signal, and the learner trains on the groups that are left."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from runs import GAMMA, Run, arguments, train

import gem_core
from gem_core.errors import AdvantageError, SettingsError
from gem_oat._checks import prepare
from gem_support.babble import Babble
from gem_support.brute_force import expected


class Coin(Babble):
    """The only reward is for success."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, _, over, truncated, info = super().step(action)
        return observation, float(over and info["success"]), over, truncated, info


class Hopeless(Babble):
    """Nobody succeeds."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, _, over, truncated, _ = super().step(action)
        return observation, 0.0, over, truncated, {"success": False}


gem_core.register("test:Coin-v0", Coin)
gem_core.register("test:Hopeless-v0", Hopeless)

FILTERED = {"advantage": "grpo", "group_size": 2, "filter_groups": "success"}


@pytest.fixture(scope="module", params=[None, 20], ids=["rounds", "carried"])
def run(model: Path, request: pytest.FixtureRequest) -> Run:
    limits = {"filter_limit": 1000, "max_concurrent": request.param}
    return train(arguments(model, env=["test:Coin-v0"], **FILTERED, **limits))


def test_every_group_of_a_full_batch_has_signal(run: Run) -> None:
    assert [len(batch) for batch in run.learner.batches_of] == [12] * 3
    for batch in run.learner.batches_of:
        groups: dict[int, list[bool]] = defaultdict(list)
        for one in batch:
            groups[one.summary.group_id].append(one.summary.success)
        assert all(sorted(successes) == [False, True] for successes in groups.values())
    filtered = sum(batch[0].info["rollout/filtered"] for batch in run.learner.batches_of)
    assert filtered > 0
    ended = [one for one in run.episodes if one.turns]
    assert len(ended) >= 2 * filtered + 36


def test_advantages_of_the_groups_that_are_left_equal_brute_force(run: Run) -> None:
    for items, turns, trained in zip(run.learner.batches_of, run.learner.turns_of, run.batches, strict=True):
        rewards = [[turn.rewards[-1] for turn in one] for one in turns]
        numbers = expected("grpo", rewards, [one.summary.group_id for one in items], GAMMA)
        want = sorted(
            (tuple(turn.prompt_ids), tuple(turn.response_ids), number)
            for one, row in zip(turns, numbers, strict=True)
            for turn, number in zip(one, row, strict=True)
        )
        got = sorted((one.before, one.ids, one.advantage) for one in trained)
        assert [one[:2] for one in got] == [one[:2] for one in want]
        assert [one[2] for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)


def test_a_run_without_signal_ends_with_the_reason(model: Path) -> None:
    with pytest.raises(AdvantageError, match="groups without signal in success were played for a batch of 6"):
        train(arguments(model, env=["test:Hopeless-v0"], filter_limit=2, **FILTERED))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"correction": "tis"}, "--correction tis cannot be used: .* Use --tis_c"),
        ({"filter_groups": "return"}, "--filter_groups return needs groups"),
    ],
)
def test_what_cannot_work_is_refused(model: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        prepare(arguments(model, **changes))
