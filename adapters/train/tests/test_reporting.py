"""Metrics and samples reach whoever listens: of trainings, evaluations and plain rollouts, each counted once."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.episode import Episode, Turn
from gem_core.errors import PluginError
from gem_core.plugins import manager
from gem_support.listening import Listener, registered
from gem_train._samples import SampleFolder, SampleWriter
from gem_train.playing import build_collector
from gem_train.report import RunReport
from gem_train.rollout import BatchCollector, Completion, EpisodeRunner, Reporter, RolloutSettings, batch_metrics
from gem_train.rollout._reporter import MAX_SAMPLES
from gem_train.settings import RunSettings

SETTINGS = RolloutSettings(max_response_tokens=8)


class Brief(Env):
    """Ends at once."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "go", {}

    def step(self, action: str) -> Any:
        return "done", 0.5, True, False, {"success": True}

    def sample_random_action(self) -> str:
        return "go"


def setup_module() -> None:
    gem_core.register("test:Brief-v0", Brief)


@pytest.fixture
def listener() -> Iterator[Listener]:
    yield from registered(Listener())


def policy(words: Any) -> Any:
    [token] = words.encode("go", add_special_tokens=False)
    return lambda prompts: [Completion([token]) for _ in prompts]


def run_settings(**changes: Any) -> RunSettings:
    return RunSettings(**{"env": ["test:Brief-v0"], **changes})


def ended(number: int) -> Episode:
    return Episode("test:Brief-v0", number, turns=[Turn(0, 1, 2, "go", "\ud800 <b>", "go", False)], run="r")


def test_a_plain_collector_reports_each_batch(words: Any, listener: Listener) -> None:
    collector = BatchCollector(make_vec("test:Brief-v0", 3), policy(words), words, SETTINGS, track=["game"])
    batches = [collector.collect_round(), collector.collect_episodes(2)]
    collector.close()
    assert [name for name, _ in listener.heard] == ["start", "metrics", "samples", "metrics", "samples", "end"]
    assert listener.of("metrics") == [(step, batch_metrics(batch)) for step, batch in enumerate(batches, 1)]
    assert listener.of("metrics")[0][1]["episode/success"] == 1.0
    [source] = listener.sources
    assert (source.kind, source.name, source.track) == ("rollout", "test:Brief-v0", ["game"])
    assert source.id == batches[0].episodes[0].run
    step, episodes = listener.of("samples")[0]
    assert step == 1
    assert [len(one.turns) for one in episodes] == [1, 1, 1]
    assert not any(one.sequences for one in episodes)
    assert all(one.sequences for one in batches[0].episodes)


def test_a_plain_runner_reports_each_call_of_run_all(words: Any, listener: Listener) -> None:
    batch = policy(words)

    async def answer(prompt: Any) -> Completion:
        [completion] = batch([prompt])
        return completion

    runner = EpisodeRunner("test:Brief-v0", words, SETTINGS, seed=0, max_concurrent=2)
    asyncio.run(runner.run_all(answer, range(4)))
    asyncio.run(runner.run(answer, 5))  # an adapter's or an evaluation's, which report themselves
    runner.close()
    assert [(step, metrics["episode/return"]) for step, metrics in listener.of("metrics")] == [(1, 0.5)]
    assert listener.of("samples") == []  # nobody asked to track it
    assert [name for name, _ in listener.heard] == ["start", "metrics", "end"]


def test_a_collector_of_a_training_reports_nothing_itself(words: Any, listener: Listener) -> None:
    collector = build_collector(run_settings(), "train", words, SETTINGS, policy(words), width=2)
    collector.collect_round()
    collector.close()
    assert listener.heard == []


def test_an_unknown_tracker_is_refused_before_anything_is_played(words: Any) -> None:
    for build in (
        lambda: run_settings(track="wnadb").import_modules(),
        lambda: BatchCollector(make_vec("test:Brief-v0", 1), policy(words), words, SETTINGS, track=["wnadb"]),
        lambda: EpisodeRunner("test:Brief-v0", words, SETTINGS, seed=0, track=["wnadb"]),
    ):
        with pytest.raises(PluginError, match=r"no plugin named .wnadb. is installed; installed are: .*wandb"):
            build()


def test_a_training_tells_updates_and_evaluations_without_a_folder(
    listener: Listener, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = run_settings(gamma=0.5, env_kwargs={"api_key": "sk-1"}).open_report(2)
    with report:
        report.amend(0, {"eval_episode/success": 0.0})
        report.update(1, {"loss": 2.0})
        report.update(2, {"loss": 1.0})
    report.save()
    report.save()
    told = [(0, {"eval_episode/success": 0.0}), (1, {"loss": 2.0}), (2, {"loss": 1.0})]
    assert listener.heard == [("start", False), *[("metrics", one) for one in told], ("end", True)]
    [source] = listener.sources
    assert (source.kind, source.name, source.folder) == ("training", "test:Brief-v0", None)
    assert source.settings["gamma"] == 0.5
    assert source.settings["env_kwargs"] == {"api_key": "<hidden>"}
    assert [*tmp_path.iterdir()] == []
    assert capsys.readouterr().out == ""


def test_metrics_after_the_end_go_on_with_the_source(listener: Listener) -> None:
    report = run_settings().open_report(1)
    report.update(1, {})
    report.save()
    report.amend(1, {"eval": 1.0})
    assert [name for name, _ in listener.heard] == ["start", "metrics", "end", "start", "metrics"]
    assert listener.of("start") == [False, True]
    assert len({one.id for one in listener.sources}) == 1


def test_a_tracked_training_keeps_its_id_where_it_resumes(
    listener: Listener, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def identifier(folder: Path, done: int, **changes: Any) -> str:
        run_settings(report=str(folder), **changes).open_report(4, done).save()
        return listener.sources[-1].id

    tracked = {"track": ["game"]}
    first = identifier(tmp_path, 0, **tracked)
    assert identifier(tmp_path, 2, **tracked) == first
    assert [one.resumed for one in listener.sources] == [False, True]
    assert identifier(tmp_path, 0, **tracked) != first  # a new training in the same folder
    assert identifier(tmp_path / "other", 2, **tracked) != first
    (tmp_path / "run_id").write_text("cut of")
    assert len(identifier(tmp_path, 2, **tracked)) == 16
    identifier(tmp_path / "untracked", 0)
    assert not (tmp_path / "untracked").exists()
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.ERROR):
        identifier(tmp_path / "file", 0, **tracked)
    assert "The id of the run could not be kept" in caplog.text


def play(folder: str, count: int) -> None:
    writer = SampleWriter(SampleFolder(folder))
    for number in range(count):
        writer.gem_episode_end(ended(number))


def test_samples_come_from_all_processes_and_are_bounded(listener: Listener, tmp_path: Path) -> None:
    settings = run_settings(report=str(tmp_path), track=["game"])
    play(str(tmp_path), 1)
    assert [*tmp_path.iterdir()] == []  # nobody wants any yet
    report = settings.open_report(3)
    code = f"import test_reporting; test_reporting.play({str(tmp_path)!r}, 100)"
    command = [sys.executable, "-c", f"import sys; sys.path = {sys.path!r}; {code}"]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [one.wait() for one in processes] == [0, 0]
    files = [*(tmp_path / ".gem_samples").iterdir()]
    assert len(files) == 2 * MAX_SAMPLES
    report.update(1, {"loss": 1.0})
    report.update(2, {"loss": 1.0})
    [(step, episodes)] = listener.of("samples")
    assert (step, len(episodes)) == (1, MAX_SAMPLES)
    assert sorted(one.seed for one in episodes) == [0, 0, 1, 1, 2, 2, 3, 3]  # as many from each process
    assert episodes[0].turns[0].response == "\\ud800 <b>"
    play(str(tmp_path), 1)
    (tmp_path / ".gem_samples" / "0-killed-1.json").write_bytes(b"{")
    report.update(3, {})
    assert [one.seed for one in listener.of("samples")[1][1]] == [0]
    report.save()
    play(str(tmp_path), 1)
    assert not (tmp_path / ".gem_samples").exists()


def test_nobody_has_to_track(tmp_path: Path) -> None:
    """What the installed trackers do where nobody names them: nothing."""
    for name in ("wandb", "tensorboard", "trackio"):
        manager.load(name)
    reporter = Reporter("training", "test", folder=tmp_path)
    reporter.report(1, {"loss": 1.0}, [ended(0)])
    reporter.close()
    assert [*tmp_path.iterdir()] == []


def test_the_users_own_files_stay(tmp_path: Path) -> None:
    own = [tmp_path / "samples" / "mine.txt", tmp_path / ".gem_samples" / "mine.txt"]
    for file in own:
        file.parent.mkdir()
        file.write_text("mine")
    report = RunReport(1, "test", live=False, reporter=Reporter("training", "test", folder=tmp_path, track=["game"]))
    report.update(1, {"loss": 1.0})
    report.save()
    assert all(file.exists() for file in own)


def test_what_cannot_be_written_costs_nothing(tmp_path: Path, listener: Listener) -> None:
    (tmp_path / ".gem_samples").write_text("a file")
    report = RunReport(1, "test", live=False, reporter=Reporter("training", "test", folder=tmp_path, track=["game"]))
    play(str(tmp_path), 1)
    report.update(1, {"loss": 1.0})
    report.save()
    assert listener.of("metrics") == [(1, {"loss": 1.0})]
