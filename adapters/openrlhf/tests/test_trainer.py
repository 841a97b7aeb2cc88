"""The trainer's code around OpenRLHF's own step."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_up import random_batch

from gem_openrlhf._actors import plain_class
from gem_openrlhf._rows import RESULT, EpisodeRows
from gem_openrlhf._trainer import TurnPPOTrainer, TurnTrainingActor, _TurnTraining
from gem_openrlhf.settings import OpenRLHFSettings
from gem_train.report import RunReport


@pytest.fixture(params=[TurnPPOTrainer, TurnTrainingActor])
def trainer(request: pytest.FixtureRequest, arguments: Callable[..., SimpleNamespace], tmp_path: Path) -> Any:
    made = plain_class(request.param).__new__(plain_class(request.param))
    made.args = arguments("--rollout.micro_batch_size=3", "--train.batch_size=4", "--train.micro_batch_size=2")
    made.args.gem = OpenRLHFSettings(env=["test:Babble-v0"], steps=2)
    made.experience_maker = SimpleNamespace(expect=lambda turns, batch, version, episodes: None, metrics={})
    made.actor_model_group = made.reference_model_group = object()
    made.critic_model_group = None
    made._report, made._announced = RunReport(2, "test", live=False, folder=tmp_path), False
    made.wandb_logger = made.tensorboard_logger = made._images = None
    return made


@pytest.fixture
def openrlhfs(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """A function that replaces a method of OpenRLHF; Ray copies inherited methods."""

    def replace(name: str, method: Any) -> None:
        classes = type(trainer).__mro__
        for cls in classes[classes.index(_TurnTraining) + 1 :]:
            if name in vars(cls):
                monkeypatch.setattr(cls, name, method)

    return replace


def samples(batch: list[EpisodeRows]) -> list[Any]:
    return [SimpleNamespace(info={RESULT: [one]}) for one in batch]


def test_a_batch_without_a_turn_changes_nothing(trainer, openrlhfs):
    openrlhfs("train_step", lambda *_: pytest.fail("trained on nothing"))
    status, step = trainer.train_step(samples([EpisodeRows(), EpisodeRows()]), 4)
    assert step == 5
    assert status == {
        "env/errors": 2.0,
        "rollout/episodes": 0.0,
        "rollout/turns": 0.0,
        "rollout/dropped": 2.0,
        "stop/terminated": 0.0,
        "stop/truncated": 0.0,
        "stop/context_full": 0.0,
        "stop/env_error": 1.0,
    }


def test_rows_come_in_full_batches_for_every_rank(trainer, openrlhfs):
    seen: list[int] = []

    def train_step(self: Any, rows: list[Any], step: int) -> tuple[dict[str, Any], int]:
        seen.append(len(rows))
        return {"policy_loss": 1.0}, step + 1

    openrlhfs("train_step", train_step)
    for nodes, ranks in ((1, 1), (2, 1), (1, 3)):
        trainer.args.actor.num_nodes, trainer.args.ref.num_gpus_per_node = nodes, ranks
        status, _ = trainer.train_step(samples(random_batch(random.Random(0), "turn")), 0)
        # A multiple of the batch for log-probabilities, and of two updates of two rows.
        assert seen[-1] % (nodes * ranks * 12) == 0
        assert status["rollout/episodes"] == 8
        assert status["policy_loss"] == 1.0


def test_the_report_has_a_step_and_its_evaluation(trainer, openrlhfs):
    openrlhfs("save_logs_and_checkpoints", lambda *_: None)
    openrlhfs("save_best_checkpoint", lambda *_: None)
    for step in (1, 2):
        trainer.save_logs_and_checkpoints(step, {"kl": 0.5 * step, "generated_samples": ["text", 1.0], "x": None}, {})
    trainer.save_best_checkpoint({"eval_episode/success": 0.25}, 1, {})
    assert trainer._report.history == [
        {"step": 1.0, "kl": 0.5, "eval_episode/success": 0.25},
        {"step": 2.0, "kl": 1.0},
    ]


def test_the_active_estimator_is_announced_once(trainer, capsys: pytest.CaptureFixture[str]):
    names = ("advantage/turns", "advantage/return_mean", "advantage/return_std", "rollout/episodes")
    metrics = dict.fromkeys(names, 8.0)
    trainer._announce({})
    trainer._announce(metrics)
    trainer._announce(metrics)
    assert capsys.readouterr().out == (
        "rebn active: 8 turns from 8 episodes, return-to-go mean 8.000, std 8.000, gamma 1.0; a row is an episode; "
        "acting: reward.clip_range=(-10, 10), algo.kl.init_coef=0.01, actor.eps_clip=0.2, "
        "actor.eps_clip_low_high=(0.2, 0.2), actor.max_norm=1.0\n"
    )
