"""Oat's PPO learner with one advantage per turn."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from oat.algorithms.ppo import PPOLearner
from oat.utils.ops import masked_sum

from gem_core.advantages import advantages_and_returns
from gem_core.plugins import manager
from gem_oat._ahead import ActorAhead
from gem_oat._args import GemOatArgs
from gem_oat._data import NumberedRows, PlaceholderPrompts
from gem_oat._status import RunStatus, reported
from gem_oat._transitions import EpisodeData, batch_episodes, pad_rows, turn_rows
from gem_train.defaults import acting
from gem_train.metrics import announcement, rollout_metrics
from gem_train.playing import prepare_process
from gem_train.recording import report_update
from gem_train.report import RunReport
from gem_train.rollout import EpisodeSummary
from gem_train.turn_table import TurnTable


class GemLearner(PPOLearner):
    """Oat's PPO learner on whole episodes. A row is a turn, and gem-core computes its advantage over all learners."""

    args: GemOatArgs
    model: Any
    critic: Any
    actors: Any

    def _init(self, args: Any, actors: list[Any]) -> None:
        super()._init(args, actors)
        self.dataset_builder = NumberedRows
        if args.max_staleness:
            collector: Any = self.collector
            collector.actors = [ActorAhead(actor, args.batches) for actor in actors]
        # A separate group for Python objects: NCCL would send them through GPUs, and its waits time out.
        self._everyone: Any = dist.new_group(backend="gloo", timeout=timedelta(days=1))
        self._turns = TurnTable.of([], [], [])
        self._memory: dict[str, Any] = {}
        self._episodes: list[str] = []
        self._order: list[int] = []
        self._used: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._scored: list[tuple[torch.Tensor, torch.Tensor]] | None = None
        self._metrics: dict[str, float] = {}
        self._evaluated: dict[str, float] = {}
        self._announced = False
        self._report: RunReport | None = None
        if self.strategy.is_rank_0():
            self._report = args.open_report(args.batches)
        prepare_process(args)

    @reported
    def run(self) -> None:
        """Train. An error in any process ends the whole program, see `gem_oat.run`."""
        super().run()
        if status := RunStatus.of_this_run():
            status.finish()

    def prepare_data(self, strategy: Any, tokenizer: Any) -> None:
        """Make a placeholder prompt for each episode of the run."""
        args = self.args
        self.prompts_dataset = PlaceholderPrompts(args.batches * args.rollout_batch_size)
        self.prompts_dataloader = strategy.setup_dataloader(
            self.prompts_dataset, args.rollout_batch_size_per_device, shuffle=False
        )
        self.eval_prompts_dataset = PlaceholderPrompts(args.eval_episodes)
        self.eval_prompts_dataloader = None

    def _broadcast_to_vllm(self) -> None:
        # An engine that sampled between two parameters would sample with a mixture of old and new weights.
        self._at_actors("hold")
        super()._broadcast_to_vllm()
        self._at_actors("release", self.steps * self.args.updates_per_batch)

    def _at_actors(self, method: str, *arguments: Any) -> None:
        if self.strategy.is_group_rank_0():
            _ = [call.result() for call in [getattr(actor.futures, method)(*arguments) for actor in self.actors]]
        dist.barrier()

    # -- a batch -----------------------------------------------------------------------------------------------------

    def process_feedback_data(self, data_list: list[EpisodeData]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Receive the episodes of a batch; every turn becomes a row.

        All learners get the same number of rows, in full micro-batches for the same number of updates.
        """
        self.query_step += len(data_list)
        data_list = [one for item in data_list for one in item.each]
        everyone = [one for part in self._gather([(one.summary, one.dropped) for one in data_list]) for one in part]
        episodes = [summary for summary, _ in everyone if summary is not None]
        if self._report is not None:
            self._report.see(episodes)
        self._metrics = rollout_metrics(episodes, sum(dropped for _, dropped in everyone), self._version)
        rows, self._turns = turn_rows(data_list, self.args)
        self._episodes = batch_episodes(data_list)
        most = max(self._gather(len(rows)))
        multiple = self.args.train_batch_size_per_device * self.args.updates
        self.pi_buffer.clear()
        self.pi_buffer.extend(pad_rows(rows, math.ceil(most / multiple) * multiple, self.tokenizer.pad_token_id))

    def learn(self, learning_round: int) -> dict[str, Any]:
        """Train on the batch. A batch without turns changes nothing."""
        info: dict[str, Any] = {}
        if self.pi_buffer:
            self._divide(len(self.pi_buffer))
            info = super().learn(learning_round)
            self._announce()
        return {**info, **self._metrics}

    def learning_step(self, trajectory: dict[str, Any]) -> dict[str, Any]:
        """Oat's training step, which calls the methods for advantages below."""
        self._order, self._used = trajectory["rows"], np.array(trajectory["loss_masks"], dtype=np.bool_)
        self._scored = [] if manager.listens("gem_update") else None
        return super().learning_step(trajectory)

    def get_batch_logps(
        self,
        model: Any,
        input_ids: torch.Tensor,
        att_mask: torch.Tensor,
        temperature: float = 1.0,
        compute_entropy: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Oat's method. Before the first update, it is called for each micro-batch of the policy, in order."""
        recorded = self._scored if model is self.model else None
        wanted = compute_entropy or recorded is not None
        logprobs, entropies = super().get_batch_logps(model, input_ids, att_mask, temperature, wanted)
        if recorded is not None and entropies is not None:
            recorded.append((logprobs, entropies))
        return logprobs, entropies

    def _divide(self, rows: int) -> None:
        """Set the number of updates, and a divisor that does not depend on the number of rows."""
        args = self.args
        micro_batches = rows // args.train_batch_size_per_device // args.updates
        self.strategy.grad_acc_step = micro_batches
        for engine in (self.model.model, self.critic):
            if engine is not None:
                engine.set_train_batch_size(micro_batches * args.train_batch_size_per_device * engine.dp_world_size)
                engine.micro_steps = 0  # the engine updates at multiples of a count that differs between batches
                engine.optimizer.gradient_accumulation_steps = micro_batches  # the optimizer's copy, for offloading
        # Oat takes the mean over rows. This divisor makes it the mean over episodes, a constant number per batch.
        divisor = args.generate_max_length * args.rollout_batch_size_per_device / rows
        self.masked_aggregator = functools.partial(masked_sum, constant_normalizer=divisor)

    # -- advantages --------------------------------------------------------------------------------------------------

    def compute_monte_carlo_advantages(self, rewards: torch.Tensor, response_masks: torch.Tensor) -> torch.Tensor:
        """One advantage per turn.

        Args:
            rewards: float (rows, tokens), including the KL penalty if there is one.
            response_masks: bool (rows, tokens).

        Returns:
            float (rows,).

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        advantages, _ = self._advantages(rewards, None)
        return advantages

    def compute_ppo_advantages(
        self, rewards: torch.Tensor, input_ids: torch.Tensor, att_mask: torch.Tensor, response_masks: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Turn-level advantages with Oat's critic. The value of a turn is the critic's value at its first token.

        Args:
            rewards: float (rows, tokens), including the KL penalty if there is one.
            input_ids, att_mask: (rows, tokens + 1).
            response_masks: bool (rows, tokens).

        Returns:
            Advantages, returns and values, float (rows, tokens); the first two the same for all tokens of a turn.

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        # Only the values are needed. An empty mask skips Oat's estimator, which is a loop over tokens.
        nothing = torch.zeros_like(response_masks)
        _, _, values = super().compute_ppo_advantages(rewards, input_ids, att_mask, nothing)
        advantages, returns = self._advantages(rewards, values)
        return advantages[:, None] * response_masks, returns[:, None] * response_masks, values

    def _advantages(self, rewards: torch.Tensor, values: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns (rows,), 0 for padding, from tables (rows, tokens)."""
        args, turns = self.args, self._turns.reordered(self._order)
        batch = turns.batch(turns.sums([_array(rewards)]), None if values is None else turns.firsts([_array(values)]))
        *columns, metrics = advantages_and_returns(
            args.advantage, batch, gamma=args.gamma, lam=args.lam, gather=self._gather, memory=self._memory
        )
        self._metrics.update(metrics)
        numbers = np.zeros((2, len(rewards)), dtype=np.float32)
        numbers[:, turns.row] = columns
        if self._scored is not None:
            self._record(turns, turns.spread(columns[0], [tuple(rewards.shape)]), columns[1], self._scored)
            self._scored = None
        advantages, returns = torch.from_numpy(numbers).to(rewards.device)
        return advantages, returns

    def _record(
        self,
        turns: TurnTable,
        advantages: Sequence[NDArray[np.float32]],
        returns: NDArray[np.float64],
        scored: Sequence[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        """Report the update.

        Args:
            turns: the turns by the rows of the learning step.
            advantages: tables of the loss.
            returns: (turns,).
            scored: log-probabilities and entropies (micro-batch, tokens), the rows of a micro-batch after another's.
        """
        logprobs, entropies = zip(*[(_array(one), _array(other)) for one, other in scored], strict=True)
        used = self._used[turns.row]  # the loss leaves some rows out
        report_update(
            self.steps,
            turns.only(used),
            self._episodes,
            advantages=advantages,
            returns=returns[used],
            logprobs=logprobs,
            entropies=entropies,
            rank=dist.get_rank(),
            ranks=dist.get_world_size(),
            version=self._version,
        )

    @property
    def _version(self) -> int:
        """Updates of the policy before this batch; Oat counts batches."""
        return (self.steps - 1) * self.args.updates_per_batch

    def _gather(self, part: Any) -> list[Any]:
        """The parts of all learners, in the order of their ranks."""
        parts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(parts, part, group=self._everyone)
        return parts

    def _announce(self) -> None:
        if not self._announced and self.strategy.is_rank_0():
            shown = acting("gem_oat", functools.partial(getattr, self.args))
            print(announcement(self.args.advantage, self.args.gamma, "turn", self._metrics, shown), flush=True)
        self._announced = True

    # -- evaluation and metrics --------------------------------------------------------------------------------------

    def evaluate(self, dataloader: Any, steps: int) -> dict[str, float]:
        """Play the evaluation's episodes; metrics start with `eval_`."""
        self._pre_evaluate()
        metrics: list[Any] = [None]
        if self.strategy.is_rank_0():
            episodes = self._play()
            found = rollout_metrics(episodes, self.args.eval_episodes - len({one.match for one in episodes}))
            metrics = [{f"eval_{name}": value for name, value in found.items()}]
        dist.broadcast_object_list(metrics, src=0, group=self._everyone)
        self._post_evaluate()
        self._evaluated = metrics[0]
        return self._evaluated

    def _play(self) -> list[EpisodeSummary]:
        share = self.args.eval_episodes // len(self.actors)
        under_way = [actor.futures.evaluate(share) for actor in self.actors]
        handles = [one.result() for one in under_way]
        return [one for handle in handles for one in self.collector.ipc_client.deserialize_ipc(handle)]

    def eval_and_log(self, train_info: dict[str, Any], eval: bool = False, save: bool = False) -> None:
        """Oat's method, and the report. With `save`, training is over."""
        self._evaluated = {}
        super().eval_and_log(train_info, eval, save)
        if self._report is not None:
            self._write_report(self._report, train_info, save)
        if save and self.strategy.is_group_rank_0():
            _ = [closed.result() for closed in [actor.futures.close() for actor in self.actors]]

    def _write_report(self, report: RunReport, train_info: Mapping[str, Any], last: bool) -> None:
        # Oat's counter continues after the last update.
        update = self.steps - 1 if last else self.steps
        if train_info and not last:
            report.update(update, {name: float(value) for name, value in {**train_info, **self.actor_info}.items()})
        if self._evaluated:
            report.amend(update, self._evaluated)
        if last:
            report.save()


def _array(numbers: torch.Tensor) -> NDArray[np.float64]:
    return numbers.detach().double().cpu().numpy()
