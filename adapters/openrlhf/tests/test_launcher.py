"""Starting OpenRLHF's command: its arguments, the classes that replace its own, and the reports of errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import FLAGS
from openrlhf.trainer import ppo_trainer, ppo_trainer_async
from openrlhf.trainer.ray import ppo_actor, ppo_critic
from openrlhf.utils import config
from ray.exceptions import RayTaskError

from gem_core.errors import EnvFailure, FailureKind, GemError, NotFoundError, SettingsError
from gem_openrlhf import _launcher as launcher
from gem_openrlhf import _trainer as trainer
from gem_openrlhf import _workers as workers
from gem_openrlhf import check_command, launch
from gem_openrlhf._launcher import DEFAULT_AGENT
from gem_openrlhf._tasks import TaskLabel
from gem_support.base_model import REFUSED, saved_base_model
from gem_support.scripts import answer_of
from gem_train.report import RunReport

ENV = ["--gem.env", "test:Babble-v0", "game:Corridor-v0", "--gem.steps", "3"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that launches; its argument replaces OpenRLHF's command."""

    def launched(command: Callable[[], None], *flags: str, **options: Any) -> None:
        monkeypatch.setattr(launcher.runpy, "run_module", lambda *_, **__: command())
        launch(flags=[*ENV, *flags], **options)

    return launched


def test_the_command_gets_our_classes(run):
    before = ppo_trainer.PPOTrainer, config.hierarchize, sys.argv
    seen: list[Any] = []

    def command() -> None:
        seen.extend([ppo_trainer.PPOTrainer, ppo_trainer_async.TrainingActor, ppo_trainer_async.GenerateSamplesActor])
        seen.extend([ppo_actor.PolicyModelActor, ppo_critic.CriticModelActor, sys.argv[1:]])

    run(command, "--rollout.batch_size", "4")
    assert seen[:3] == [trainer.TurnPPOTrainer, trainer.TurnTrainingActor, trainer.TurnSamplesActor]
    assert seen[3:5] == [workers.TurnPolicyActor, workers.TurnCriticActor]
    assert seen[5] == ["--rollout.batch_size", "4"]
    assert (ppo_trainer.PPOTrainer, config.hierarchize, sys.argv) == before


@pytest.mark.parametrize(("advantage", "estimator"), [("rebn", "reinforce"), ("gae", "gae")])
def test_completed_arguments(
    run: Callable[..., None],
    arguments: Callable[..., Any],
    model_folder: Path,
    tmp_path: Path,
    advantage: str,
    estimator: str,
    monkeypatch: pytest.MonkeyPatch,
):
    model = f"--actor.model_name_or_path={model_folder}"
    args = arguments(model, "--ckpt.path", str(tmp_path), "--eval.steps", "2")
    monkeypatch.setattr(config, "hierarchize", lambda made: made)
    made: list[Any] = []
    run(lambda: made.append(config.hierarchize(args)), "--gem.advantage", advantage, "--gem.eval_episodes", "6")
    (found,) = made
    assert found.train.agent_func_path == str(DEFAULT_AGENT)
    assert found.algo.advantage.estimator == estimator
    assert found.gem.advantage == advantage
    for path, count, split in ((found.data.prompt_dataset, 24, "train"), (found.eval.dataset, 6, "eval")):
        rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
        labels = [TaskLabel.decode(row[found.data.label_key]) for row in rows]
        assert sorted(label.task.task_id for label in labels) == [*range(count)]
        assert {label.split for label in labels} == {split}
        assert {label.task.env_id for label in labels} == {"test:Babble-v0", "game:Corridor-v0"}
        assert len({row[found.data.input_key] for row in rows}) == count


@pytest.mark.parametrize(
    ("flags", "size"),
    [
        ([], 2),
        (["--train.max_epochs", "2"], 1),  # four updates are two batches
        (["--train.partial_rollout_enable"], 3),  # slots that become free after an update
        (["--train.partial_rollout_enable", "--algo.dynamic_filtering_enable"], 2),
    ],
)
def test_the_queue_bounds_staleness(
    run: Callable[..., None],
    arguments: Callable[..., Any],
    model_folder: Path,
    tmp_path: Path,
    flags: list[str],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
):
    model = f"--actor.model_name_or_path={model_folder}"
    args = arguments(model, "--ckpt.path", str(tmp_path), "--rollout.n_samples_per_prompt", "2", *flags)
    monkeypatch.setattr(config, "hierarchize", lambda made: made)
    made: list[Any] = []
    run(lambda: made.append(config.hierarchize(args)), "--gem.max_staleness", "4")  # two updates on each batch
    (found,) = made
    assert (found.train.async_enable, found.train.async_queue_size) == (True, size)


def test_the_error_that_stopped_the_run_is_raised(run):
    def command() -> None:
        inner = RayTaskError(
            "execute", "trace", EnvFailure("test:Fragile-v0", None, FailureKind.RAISED, "OSError: gone")
        ).as_instanceof_cause()
        raise RayTaskError("fit", "trace", inner).as_instanceof_cause()

    with pytest.raises(EnvFailure, match="test:Fragile-v0 failed") as raised:
        run(command)
    assert type(raised.value) is EnvFailure


def test_other_errors_pass_through(run):
    def command() -> None:
        raise RayTaskError("fit", "no such layer", ValueError()).as_instanceof_cause()

    with pytest.raises(RayTaskError, match="no such layer"):
        run(command)


def test_flags_that_the_adapter_sets_are_refused(run):
    with pytest.raises(SettingsError, match=r"--data.prompt_dataset cannot be used"):
        run(lambda: None, "--data.prompt_dataset", "x")


def test_an_agent_that_engines_cannot_load_is_refused(run, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"cannot be read: .*No such file"):
        run(lambda: None, agent=tmp_path / "agent.py")
    (tmp_path / "agent.py").write_text("class Agent:\n    pass\n")
    with pytest.raises(SettingsError, match="has no AgentExecutor: derive a class"):
        run(lambda: None, agent=tmp_path / "agent.py")
    for text in ("class AgentExecutor:\n    pass\n", "from x import y as AgentExecutor\n", "AgentExecutor = 1\n"):
        (tmp_path / "agent.py").write_text(text)
        run(lambda: None, agent=tmp_path / "agent.py")


def test_folders_are_the_same_for_every_process(
    run: Callable[..., None],
    arguments: Callable[..., Any],
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    args = arguments(f"--actor.model_name_or_path={model_folder}", "--ckpt.path", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config, "hierarchize", lambda made: made)
    made: list[Any] = []
    run(lambda: made.append(config.hierarchize(args)), "--gem.report", "runs/report")
    assert made[0].gem.report == str(tmp_path / "runs" / "report")
    assert made[0].gem.record_folder is None


def test_a_model_that_is_not_there_is_named(run, arguments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    args = arguments("--actor.model_name_or_path=no/such-model", "--ckpt.path", str(tmp_path))
    monkeypatch.setattr(config, "hierarchize", lambda made: made)
    with pytest.raises(SettingsError, match=r"--actor.model_name_or_path no/such-model: .* cannot be read"):
        run(lambda: config.hierarchize(args))


@pytest.mark.parametrize(("setting", "value", "message"), REFUSED)
def test_what_the_chat_template_cannot_carry_is_refused(
    run: Callable[..., None],
    arguments: Callable[..., Any],
    tmp_path: Path,
    setting: str,
    value: Any,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
):
    model = saved_base_model(tmp_path)
    args = arguments(f"--actor.model_name_or_path={model}", "--ckpt.path", str(tmp_path))
    monkeypatch.setattr(config, "hierarchize", lambda made: made)
    with pytest.raises(GemError, match=message):
        run(lambda: config.hierarchize(args), f"--gem.{setting}", *([value] if isinstance(value, str) else value))


def test_after_ctrl_c_the_curve_is_drawn(run, tmp_path: Path):
    """The trainer is a Ray actor, which is killed with this process."""

    def interrupted() -> None:
        RunReport(9, "test", live=False, folder=tmp_path).update(1, {"episode/success": 0.5})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, "--gem.report", str(tmp_path))
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_a_command_line_is_checked_without_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """With OpenRLHF's own command and parser: nothing is replaced."""
    flags = [*FLAGS, "--gem.env", "game:Corridor-v0", "--gem.steps", "2", "--ckpt.path", str(tmp_path)]
    settings = check_command(flags)
    assert (settings.env, settings.steps) == (["game:Corridor-v0"], 2)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(SystemExit) as ended:
        check_command([*flags, "--actor.learning_rate", "1"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --actor.learning_rate" in capsys.readouterr().err
    with pytest.raises(SettingsError):
        check_command([*flags, "--gem.history", "2"])
    with pytest.raises(NotFoundError):
        check_command([*flags, "--gem.env", "game:Corrido-v0"])


def test_the_program_names_an_unknown_environment():
    """It ends before anything starts, but after OpenRLHF's own parser."""
    sizes = [*FLAGS, "--gem.steps", "1"]
    unknown = answer_of("gem_openrlhf", *sizes, "--gem.env", "game:Corrido-v0")
    assert unknown.returncode == 1
    last = unknown.stderr.strip().splitlines()[-1]
    assert last.startswith("NotFoundError: no environment 'game:Corrido-v0'. Did you")


def test_help_has_our_flags_and_openrlhfs():
    help = answer_of("gem_openrlhf", "--help")
    assert help.returncode == 0
    assert "--gem.max_env_failure_share" in help.stdout
    assert "--algo.advantage.gamma" in help.stdout
