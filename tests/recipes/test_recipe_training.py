"""The short run of each recipe, as `--short` plays it, and the pages of the committed results."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from gem_tiny import tiny_policy
from recipes.algorithms.declared import STUDY as ALGORITHMS
from recipes.algorithms.declared import TASKS
from recipes.command import DOCS, main
from recipes.frameworks.declared import STUDY as FRAMEWORKS
from recipes.gamma.declared import STUDY as GAMMA
from recipes.results import declared, read
from recipes.smollm2.declared import STUDY as FIVE
from recipes.study import SMOLLM2, Run, Study
from recipes.tools.declared import STUDY as TOOLS
from recipes.training import play
from recipes.transfer.declared import STUDY as TRANSFER

STUDIES = {study.name: study for study in (ALGORITHMS, GAMMA, TRANSFER, TOOLS)}
"""Those that TRL plays in this process."""
WITH_PAGES = {**STUDIES, FRAMEWORKS.name: FRAMEWORKS, FIVE.name: FIVE}
GUESS = "game:GuessTheNumber-v0-easy"
PAGES = {name: importlib.import_module(f"recipes.{name}.page").page for name in WITH_PAGES}


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_short_run_leaves_its_result(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # warm-started weights are kept under the current folder
    main(study, PAGES[study.name], ["--short", "--results", str(tmp_path / "results")])
    (result,) = read(tmp_path / "results", phase="short")
    assert result.run == declared(study.short)
    # A batch of several updates is one point of a curve.
    settings = study.short.settings
    assert result.updates == settings["max_steps"] // settings.get("steps_per_generation", 1)
    assert len(result.curves[study.metric]) == result.updates
    assert result.totals["rollout/episodes"] == 16 * result.updates
    assert result.totals["rollout/turns"] >= result.totals["rollout/episodes"]
    assert result.random_success is not None
    if study.short.evaluate:
        played = study.short.settings["eval_env"]
        # A single environment has no numbers of its own besides those of the whole evaluation.
        for name in [f"eval_env/{env}/success" for env in played] if len(played) > 1 else ["eval_episode/success"]:
            assert 0 <= result.before[name] <= 1
            assert 0 <= result.after[name] <= 1
    assert result.cpu_seconds > 0
    assert result.versions["trl"]
    assert result.name in capsys.readouterr().out


def test_a_run_may_train_adapters_of_a_model_in_a_folder(tmp_path: Path) -> None:
    """As a run of SmolLM2 does."""
    for part in tiny_policy(GUESS, warm_start_steps=5):
        part.save_pretrained(tmp_path / "model")
    batch = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "eval_episodes": 4}
    settings = {**SMOLLM2, **batch, "env": [GUESS], "max_completion_length": 4, "max_steps": 2}
    run = Run("rebn", "guess", 0, settings, str(tmp_path / "model"), "short", evaluate=True, lora=4)
    result = play(run, tmp_path)
    assert result.run == declared(run)
    assert result.run["lora"] == 4
    assert len(result.curves["episode/success"]) == 2
    assert {"eval_episode/success", "eval_episode/return"} <= result.before.keys() & result.after.keys()


@pytest.mark.parametrize("study", WITH_PAGES.values(), ids=WITH_PAGES)
def test_a_page_shows_the_committed_results(study: Study, tmp_path: Path) -> None:
    text = PAGES[study.name](study.results("cpu"), tmp_path)
    assert text == (DOCS / "recipes" / f"{study.name}.md").read_text(), (
        f"Next: python -m recipes.{study.name} --write-page"
    )
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (DOCS / "img/recipes").glob(f"{study.name}_*.png")}


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_settings_of_all_runs_are_valid(study: Study, kind: str, tmp_path: Path) -> None:
    from gem_trl import TurnGRPOConfig

    seen: set[str] = set()
    for run in study.runs(kind):
        if (key := f"{run.task} {run.cell}") not in seen:
            seen.add(key)
            settings = {name: value for name, value in run.settings.items() if name not in ("measure", "bf16")}
            TurnGRPOConfig(str(tmp_path), seed=run.seed, report_to="none", **settings)


def test_eight_environments_are_declared() -> None:
    assert len(TASKS) == 8
