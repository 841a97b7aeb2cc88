"""Recorded runs of Oat's own learner and actor in this process."""

from __future__ import annotations

import copy
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from oat.args import default_args_validation
from oat.interface import get_program
from oat.types import TransitionData
from oat.utils.deepspeed import DeepspeedStrategy

from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager
from gem_cpu.oat import engine
from gem_cpu.oat.transport import learner_of
from gem_oat import GemActor, GemLearner, GemOatArgs
from gem_oat._checks import prepare
from gem_train.recording import stop_recording
from gem_train.rollout import Episode

GAMMA = 0.9


class Response(NamedTuple):
    """A trained row: the ids before the response, the ids of the response, and numbers of its tokens."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    advantage: float
    return_: float
    value: float


class LossTokens(NamedTuple):
    """Numbers of the tokens of a response, as Oat's loss has them."""

    advantages: list[float]
    logprobs: list[float]
    """Of the learner before the update."""
    sampled: list[float]
    """Of the actor's engine."""


@dataclass
class Run:
    """The played episodes, sampled responses and trained rows, batch by batch."""

    learner: WatchedLearner
    episodes: list[Episode] = field(default_factory=list[Episode])
    sampled: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    @property
    def batches(self) -> list[list[Response]]:
        return self.learner.trained

    @property
    def training_episodes(self) -> list[Episode]:
        """Without the episodes of evaluations, which are recorded separately."""
        trained = {one.summary.seed for batch in self.learner.batches_of for one in batch if one.summary is not None}
        runs = {episode.run for episode in self.episodes if episode.seed in trained}
        return [episode for episode in self.episodes if episode.run in runs]

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        self.episodes.append(copy.deepcopy(episode))


class WatchedLearner(GemLearner):
    """Records the episodes, the rows of their turns and the input of Oat's learning step; changes nothing."""

    def _init(self, args: Any, actors: Any) -> None:
        super()._init(args, actors)
        self.trained: list[list[Response]] = []
        self.rows: list[int] = []
        self.updates: list[int] = []
        self.info: list[dict[str, Any]] = []
        self.evaluations: list[dict[str, float]] = []
        self.batches_of: list[list[Any]] = []
        self.turns_of: list[list[list[TransitionData]]] = []
        self.weights = [self._weights()]
        self.logs: list[dict[str, Any]] = []
        self.strategy.pprint = self.logs.append
        self.losses: list[dict[tuple[int, ...], list[LossTokens]]] = []
        """For each batch and each row with its last token: what the loss had, once per pass."""

    def process_feedback_data(self, data_list: Any) -> None:
        self.batches_of.append(data_list)
        super().process_feedback_data(data_list)
        rows = iter(self.pi_buffer)
        self.turns_of.append([[*islice(rows, sum(len(row.turns) for row in one.rows))] for one in data_list])

    def _divide(self, rows: int) -> None:
        super()._divide(rows)
        aggregate, seen = self.masked_aggregator, defaultdict[tuple[int, ...], list[LossTokens]](list)
        self.losses.append(seen)

        def watched(losses: torch.Tensor, masks: torch.Tensor, axis: int) -> torch.Tensor:
            loss = sys._getframe(1).f_locals  # the variables of Oat's learning step
            if losses is loss["pg_loss_max"]:
                _note_loss(loss, masks, seen)
            return aggregate(losses, masks, axis=axis)

        self.masked_aggregator = watched

    def learn(self, learning_round: int) -> dict[str, Any]:
        steps = self.model.model.global_steps
        info = super().learn(learning_round)
        self.updates.append(self.model.model.global_steps - steps)
        self.info.append(info)
        self.weights.append(self._weights())
        return info

    def evaluate(self, dataloader: Any, steps: int) -> dict[str, float]:
        self.evaluations.append(super().evaluate(dataloader, steps))
        return self.evaluations[-1]

    def learning_step(self, trajectory: dict[str, Any]) -> dict[str, Any]:
        self._rows_given = [
            (ids[: int(mask.sum())].tolist(), length, used)
            for ids, mask, length, used in zip(
                trajectory["input_ids"],
                trajectory["attention_mask"],
                trajectory["prompt_ids_lens"],
                trajectory["loss_masks"],
                strict=True,
            )
        ]
        self.rows.append(len(self._rows_given))
        return super().learning_step(trajectory)

    def compute_monte_carlo_advantages(self, rewards: torch.Tensor, response_masks: torch.Tensor) -> torch.Tensor:
        advantages = super().compute_monte_carlo_advantages(rewards, response_masks)
        zeros = [0.0] * len(advantages)
        self._note(advantages.tolist(), zeros, zeros)
        return advantages

    def compute_ppo_advantages(self, rewards: Any, input_ids: Any, att_mask: Any, response_masks: Any) -> Any:
        tables = super().compute_ppo_advantages(rewards, input_ids, att_mask, response_masks)
        columns = []
        for table in tables:
            first = response_masks.float().argmax(1, keepdim=True)
            columns.append(table.gather(1, first).squeeze(1).tolist())
        for table in tables[:2]:  # the same for all tokens of a turn, and 0 elsewhere
            first = table.gather(1, response_masks.float().argmax(1, keepdim=True))
            assert torch.equal(table, first * response_masks)
        self._note(*columns)
        return tables

    def _note(self, *columns: Sequence[float]) -> None:
        self.trained.append(
            [
                Response(tuple(ids[:length]), tuple(ids[length:]), *numbers)
                for (ids, length, used), *numbers in zip(self._rows_given, *columns, strict=True)
                if used
            ]
        )

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().clone() for name, value in self.model.model.module.named_parameters()}


def _note_loss(loss: Mapping[str, Any], masks: torch.Tensor, seen: dict[tuple[int, ...], list[LossTokens]]) -> None:
    tables = [loss[name].expand(masks.shape) for name in ("mb_advantage", "mb_logps", "mb_actor_logps")]
    for row in loss["mb_loss_masks"].nonzero().flatten().tolist():
        ids = loss["mb_input_ids"][row][loss["mb_att_mask"][row].bool()]
        seen[tuple(ids.tolist())].append(LossTokens(*[table[row][masks[row].bool()].tolist() for table in tables]))


def arguments(model: Path, **changes: Any) -> GemOatArgs:
    """Small settings for a CPU."""
    settings: Mapping[str, Any] = {
        "env": ["test:Babble-v0"],
        "pretrain": str(model),
        "gpus": 1,
        "collocate": True,
        "bf16": False,
        "flash_attn": False,
        "use_fused_lm_head": False,
        "beta": 0.0,
        "gamma": GAMMA,
        "generate_max_length": 6,
        "eval_generate_max_length": 6,
        "max_model_len": 256,
        "rollout_batch_size_per_device": 12,
        "train_batch_size": 12,
        "train_batch_size_per_device": 4,
        "max_train": 36,
        "learning_rate": 1e-3,
        "lr_scheduler": "constant",
        "lr_warmup_ratio": 0.0,
        "max_norm": 0.0,
        "eval_steps": -1,
        "truncated_is_invalid": False,
        "master_addr": "127.0.0.1",
        "save_path": str(model / "out"),
    }
    evaluated = {"eval_episodes": 4} if changes.get("eval_steps", -1) > 0 else {}
    return GemOatArgs(**{**settings, **evaluated, **changes})


def train(
    args: GemOatArgs,
    rank: int = 0,
    change: Callable[[WatchedLearner], None] | None = None,
    kind: type[WatchedLearner] = WatchedLearner,
) -> Run:
    """Train to the end with Oat's own loop.

    Args:
        args: the settings.
        kind: the learner.
        rank: the rank whose learner and actor are in this process.
        change: changes the learner before it runs.
    """
    program, _ = get_program(default_args_validation(prepare(args)), learner_cls=kind, actor_cls=GemActor)
    run = Run(learner_of(program, rank))
    if change is not None:
        change(run.learner)
    before = len(engine.SAMPLED)
    manager.register(run)
    try:
        run.learner.run()
    except BaseException:
        for actor in run.learner.actors:
            actor.close()
        raise
    finally:
        manager.unregister(run)
        stop_recording()
    run.sampled = engine.SAMPLED[before:]
    return run


def train_with_sgd(args: GemOatArgs, rate: float = 1.0, **options: Any) -> Run:
    """Train as `train` does, with plain SGD and this learning rate."""
    args.zero_stage = 0  # DeepSpeed supports ZeRO with Adam only
    before = DeepspeedStrategy.create_optimizer
    DeepspeedStrategy.create_optimizer = lambda self, net, **_: torch.optim.SGD(net.parameters(), lr=rate)
    try:
        return train(args, **options)
    finally:
        DeepspeedStrategy.create_optimizer = before
