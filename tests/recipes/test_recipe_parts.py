"""Results, statistics and declarations of recipes. Nothing is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gem_core import make
from recipes.actions import OtherAnswers
from recipes.algorithms.declared import CHOSEN, RATES, STUDY, TASKS
from recipes.algorithms.page import page
from recipes.command import main
from recipes.frameworks.declared import STUDY as FRAMEWORKS
from recipes.gamma.declared import STUDY as GAMMA
from recipes.policies import checked
from recipes.results import RecipeError, Result, curve, declared, is_of, read, write
from recipes.running import missing
from recipes.smollm2.declared import STUDY as SMOLLM2
from recipes.statistics import improvement, interquartile_mean, mean, paired_difference, prediction_interval, profile
from recipes.tools.declared import STUDY as TOOLS
from recipes.transfer.declared import STUDY as TRANSFER

RUN = STUDY.short


def made_up(run=RUN, success: float = 0.5, **changes) -> Result:
    values = {
        "name": run.name,
        "phase": run.phase,
        "task": run.task,
        "cell": run.cell,
        "seed": run.seed,
        "run": declared(run),
        "updates": 4,
        "curves": {"episode/success": [0.0, success, success, 1.0], "rollout/turns": [4.0, 3.0, 2.0, 1.0]},
        "totals": {"rollout/turns": 10.0, "rollout/episodes": 8.0},
        "cpu_seconds": 1.0,
        "commit": "c",
        "versions": {},
    }
    return Result(**{**values, **changes})


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = made_up(phase="main")
    write(tmp_path, result)
    assert read(tmp_path) == [result]
    assert [path.name for path in tmp_path.iterdir()] == [f"{result.name}.json"]


def test_a_run_is_missing_until_it_has_a_result_of_the_same_settings(tmp_path: Path) -> None:
    assert missing([RUN], tmp_path) == [RUN]
    write(tmp_path, made_up())
    assert missing([RUN], tmp_path) == []
    changed = replace(RUN, settings={**RUN.settings, "learning_rate": 0.5})
    assert missing([changed], tmp_path) == [changed]


def test_a_broken_result_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "main-x.json").write_text("{")
    with pytest.raises(RecipeError, match=r"main-x\.json is no result"):
        read(tmp_path)
    assert not is_of(tmp_path / "main-x.json", RUN)


def test_means_are_over_the_updates_that_have_a_number(tmp_path: Path) -> None:
    ramp = curve([float("nan"), *range(60), float("nan")])
    write(tmp_path, made_up(phase="main", updates=62, curves={"x": ramp}))
    (read_back,) = read(tmp_path)
    assert (read_back.area("x"), read_back.start("x"), read_back.end("x")) == (29.5, 2.0, 54.0)


def test_the_interquartile_mean_leaves_out_the_outer_quarters() -> None:
    scores = {"a": [0.0, 0.4, 0.5, 1.0], "b": [0.0, 0.4, 0.5, 1.0]}
    estimate = interquartile_mean(scores)
    assert estimate.value == pytest.approx(0.45)
    assert estimate.low <= 0.45 <= estimate.high
    same = mean({"a": [0.3] * 5})
    assert same == pytest.approx((0.3, 0.3, 0.3))


def test_runs_are_resampled_within_their_task() -> None:
    # Each task is constant, so resampling within tasks changes nothing; across tasks it would.
    assert mean({"a": [0.0] * 5, "b": [1.0] * 5}) == pytest.approx((0.5, 0.5, 0.5))


def test_the_probability_of_improvement_counts_pairs() -> None:
    assert improvement({"a": [2.0, 2.0]}, {"a": [1.0, 1.0]}) == (1.0, 1.0, 1.0)
    assert improvement({"a": [1.0, 3.0]}, {"a": [2.0, 2.0]}).value == 0.5
    assert improvement({"a": [1.0]}, {"a": [1.0]}).value == 0.5
    with pytest.raises(ValueError, match="share no task"):
        improvement({"a": [1.0]}, {"b": [1.0]})


def test_a_performance_profile_is_the_share_of_runs_above_a_score() -> None:
    assert list(profile({"a": [0.2, 0.8]}, np.array([0.0, 0.5, 0.9]))) == [1.0, 0.5, 0.0]


def test_a_prediction_interval_is_wider_than_the_spread_of_the_runs() -> None:
    low, high = prediction_interval([0.4, 0.5, 0.6])
    # Student's quantile with two degrees of freedom, 4.303, times 0.1 times the root of 4/3.
    assert (low, high) == pytest.approx((0.5 - 0.4968, 0.5 + 0.4968), abs=1e-3)
    assert prediction_interval([1.0, 1.0, 1.0]) == pytest.approx((0.9, 1.1))


def test_a_paired_difference_does_not_count_what_pairs_share() -> None:
    gap = paired_difference([11.0, 52.0, 93.0], [10.0, 50.0, 90.0])
    half = 4.302653 / 3**0.5  # Student's 97.5 % quantile with 2 degrees of freedom; the differences are 1, 2 and 3
    assert gap == pytest.approx((2.0, 2.0 - half, 2.0 + half), abs=1e-5)


def test_the_warm_start_of_questions_teaches_the_format_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recipes.policies.CHECKED", 60)  # a grading takes milliseconds
    model = TASKS["leg_counting"].model()
    assert checked(model) <= model.chance + 0.1
    with pytest.raises(RecipeError, match="would teach answers"):
        checked(replace(model, wrappers=()))


def test_the_warm_start_of_games_knows_no_more_than_declared() -> None:
    for name, task in TASKS.items():
        if task.env.startswith("game:"):
            assert checked(task.model()) <= task.chance + 0.2, name


def test_sudoku_is_refused_without_other_answers() -> None:
    model = replace(TASKS["fifteen"].model(), env=("game:Sudoku-v0-easy",), chance=0.0)
    with pytest.raises(RecipeError, match="would teach answers"):
        checked(model)
    assert checked(replace(model, wrappers=("recipes.actions:OtherAnswers",))) < 0.1


def test_other_answers_are_those_of_other_episodes() -> None:
    kwargs = TASKS["leg_counting"].settings["env_kwargs"]
    env = OtherAnswers(make("rg:leg_counting", **kwargs))
    right = 0
    for seed in range(50):
        env.reset(seed=seed)
        _, reward, *_ = env.step(env.sample_random_action())
        right += reward == 1
    assert right < 10


def test_the_declared_learning_rates_are_the_best_of_the_tuning_runs() -> None:
    scores: dict[str, dict[float, list[float]]] = {}
    for result in read(STUDY.results("cpu"), phase="tuning"):
        cell, _, rate = result.cell.partition("@")
        scores.setdefault(cell, {}).setdefault(float(rate), []).append(result.area(STUDY.metric))
    for cell, rates in scores.items():
        if set(rates) == set(RATES):
            assert max(rates, key=lambda rate: float(np.mean(rates[rate]))) == CHOSEN[cell], (cell, rates)


def test_names_of_runs_are_unique_and_committed_results_are_those_of_declared_runs() -> None:
    for study in (STUDY, GAMMA, TRANSFER, TOOLS, FRAMEWORKS, SMOLLM2):
        for kind in ("cpu", "gpu"):
            names = [run.name for run in study.runs(kind)]
            assert len(names) == len(set(names)), study.name
        by_name = {run.name: run for run in study.runs("cpu")}
        for path in study.results("cpu").glob("*.json"):
            assert json.loads(path.read_text())["run"] == declared(by_name[path.stem]), path


def test_a_selection_without_runs_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no run has task \['nowhere'\]\. Tasks: coin_flip, corridor"):
        main(STUDY, page, ["--list", "--task", "nowhere", "--results", str(tmp_path)])


def test_a_cell_without_runs_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="an interval needs three"):
        main(STUDY, page, ["--repeat", "corridor/rebn", "--results", str(tmp_path)])
