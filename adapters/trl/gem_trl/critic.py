"""A critic for `advantage="gae"`: the value of each turn, learned beside the policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from numpy.typing import NDArray
from torch import nn
from transformers import get_scheduler

from gem_core.errors import SettingsError
from gem_core.turn_batch import FloatArray
from gem_train.rows import Row
from gem_trl._config import TurnGRPOConfig
from gem_trl._copies import copy_of

FILE = "critic.pt"
"""Name of the critic's file in a checkpoint."""


class ValueModel(nn.Module):
    """A copy of a policy's transformer, with a linear head that starts at zero.

    Weights that are trained are copied. Frozen weights are shared with the policy, so with LoRA a critic costs the
    memory of its own adapters only.

    Args:
        policy: a causal language model of transformers, with or without adapters of peft; before it is distributed.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        model = policy.get_base_model() if hasattr(policy, "get_base_model") else policy
        self.backbone: Any = copy_of(model.base_model)
        self.head = nn.Linear(model.config.get_text_config().hidden_size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The value before each token: float (rows, tokens). The value in column t has seen the tokens up to t."""
        found = self.backbone(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        return self.head(found.last_hidden_state.float()).squeeze(-1)


class Critic:
    """Values of turns, and the updates of the model that gives them.

    The value of a turn is read at the last token of its prompt, so it does not depend on the response. That is the
    value "at the turn's first token" of verl, OpenRLHF and Oat. The loss is half the squared distance to the targets of
    GAE (advantage plus value), averaged over the turns of all processes. As in verl, the critic learns from a batch
    before the policy does, in as many updates and with a schedule of the same kind.

    Every process has whole weights and the same ones. Their gradients are added up over processes here, not by a
    distributed model, so the critic's updates leave the policy's alone.

    Args:
        policy: see `ValueModel`.
        args: the settings of the run.
        accelerator: of the trainer.
        pad_id: fills rows up; masked.

    Raises:
        SettingsError: the run shares weights out over processes.
    """

    def __init__(self, policy: Any, args: TurnGRPOConfig, accelerator: Accelerator, pad_id: int) -> None:
        _check_whole(accelerator)
        self._args, self._accelerator, self._pad_id = args, accelerator, pad_id
        self.model = ValueModel(policy).to(accelerator.device)
        if args.gradient_checkpointing:
            backbone = self.model.backbone
            name = "activation_checkpointing_enable"  # before transformers 5.23 it has the other name only
            enable = getattr(backbone, name, None) or backbone.gradient_checkpointing_enable
            enable(args.gradient_checkpointing_kwargs)
        for weight in self._trained():
            first: Any = broadcast(weight.data)  # adapters start at random
            weight.data.copy_(first)
        self._optimizer = torch.optim.AdamW(
            self._trained(),
            lr=args.learning_rate if args.critic_learning_rate is None else args.critic_learning_rate,
            betas=(args.adam_beta1, args.adam_beta2),
            eps=args.adam_epsilon,
            weight_decay=args.weight_decay,
        )
        parts = args.steps_per_generation or 1
        self._minibatches = max(parts // args.gradient_accumulation_steps, 1)
        batches = math.ceil(args.max_steps * args.gradient_accumulation_steps / (parts * args.num_iterations))
        updates = batches * args.num_iterations * self._minibatches
        options: Any = args.lr_scheduler_kwargs
        self._schedule = get_scheduler(
            args.lr_scheduler_type,
            self._optimizer,
            num_warmup_steps=args.get_warmup_steps(updates),
            num_training_steps=updates,
            scheduler_specific_kwargs=options,
        )

    def values(self, rows: Sequence[Row]) -> FloatArray:
        """The value of each turn: (N,), in the order of the rows and their turns."""
        self.model.eval()
        found = [np.zeros(0)]
        with torch.no_grad():
            for part in self._micro_batches(rows, np.arange(len(rows))):
                found.append(self._values_of([rows[number] for number in part]).cpu().double().numpy())
        return np.concatenate(found)

    def learn(self, rows: Sequence[Row], targets: FloatArray) -> dict[str, float]:
        """Learn from a batch. Collective: every process calls it for every batch.

        Args:
            rows: as for `values`.
            targets: (N,), the target of each turn.

        Returns:
            The metric `critic/loss` over all processes, averaged over the updates.
        """
        self.model.train()
        offsets = np.cumsum([0, *(len(row.turns) for row in rows)])
        losses: list[float] = []
        for _ in range(self._args.num_iterations):
            # The count of updates makes the order another one each time, also after a checkpoint.
            order = np.random.default_rng((self._args.seed, self._schedule.last_epoch)).permutation(len(rows))
            for chosen in np.array_split(order, self._minibatches):
                losses.append(self._update(rows, targets, offsets, chosen))
        return {"critic/loss": float(np.mean(losses))}

    def save(self, folder: str | Path) -> None:
        """Write the critic into the folder of a checkpoint."""
        state = {
            "weights": {name: weight.data for name, weight in self.model.named_parameters() if weight.requires_grad},
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }
        torch.save(state, Path(folder) / FILE)

    def load(self, folder: str | Path) -> None:
        """Continue with the critic of a checkpoint.

        Raises:
            SettingsError: the checkpoint has no critic.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise SettingsError(
                f"the checkpoint {folder} has no {FILE}: it was written by a run without a critic. Resume with the "
                "advantage of that run, or start a new run from its weights."
            )
        state = torch.load(path, map_location=self._accelerator.device, weights_only=True)
        self.model.load_state_dict(state["weights"], strict=False)
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])

    def _update(self, rows: Sequence[Row], targets: FloatArray, offsets: NDArray[np.int64], chosen: Any) -> float:
        """One step of the optimizer on some rows of this process and of the others. Returns the loss."""
        total = torch.zeros((), device=self._accelerator.device)
        count = self._summed(torch.tensor(float(sum(len(rows[number].turns) for number in chosen))))
        for part in self._micro_batches(rows, chosen):
            wanted = np.concatenate([targets[offsets[number] : offsets[number + 1]] for number in part])
            errors = self._values_of([rows[number] for number in part]) - torch.from_numpy(wanted).to(total)
            loss = (errors**2).sum() / (2 * count)
            loss.backward()
            total += loss.detach()
        self._share_gradients()
        nn.utils.clip_grad_norm_(self._trained(), self._args.max_grad_norm or math.inf)
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._schedule.step()
        return self._summed(total).item()

    def _values_of(self, rows: Sequence[Row]) -> torch.Tensor:
        """The values of the turns of some rows: (turns,)."""
        width = max(len(row.ids) for row in rows)
        ids = torch.full((len(rows), width), self._pad_id)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = torch.from_numpy(np.array(row.ids, dtype=np.int64))
            mask[place, : len(row.ids)] = 1
        device = self._accelerator.device
        with self._accelerator.autocast():
            values = self.model(ids.to(device), mask.to(device))
        at = [(place, turn.start - 1) for place, row in enumerate(rows) for turn in row.turns]
        places, columns = torch.tensor(at, device=device).T
        return values[places, columns]

    def _micro_batches(self, rows: Sequence[Row], numbers: NDArray[np.int64]) -> Iterator[list[int]]:
        """Some rows of a batch in parts as large as TRL's micro-batches, without rows that have no turn."""
        size = math.ceil(len(rows) / (self._args.steps_per_generation or 1))
        with_turns = [number for number in numbers.tolist() if rows[number].turns]
        yield from (with_turns[first : first + size] for first in range(0, len(with_turns), size))

    def _share_gradients(self) -> None:
        """Add the gradients of all processes up. A process without turns adds nothing."""
        weights = self._trained()
        for weight in weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        flat = self._summed(torch.cat([weight.grad.float().ravel() for weight in weights if weight.grad is not None]))
        parts = flat.split([weight.numel() for weight in weights])
        for weight, part in zip(weights, parts, strict=True):
            weight.grad = part.view_as(weight).to(weight.dtype)

    def _summed(self, numbers: torch.Tensor) -> torch.Tensor:
        found: Any = self._accelerator.reduce(numbers.to(self._accelerator.device), reduction="sum")
        return found

    def _trained(self) -> list[nn.Parameter]:
        return [weight for weight in self.model.parameters() if weight.requires_grad]


def _check_whole(accelerator: Accelerator) -> None:
    kind = str(accelerator.distributed_type.value)
    if kind in ("DEEPSPEED", "FSDP", "MEGATRON_LM"):
        raise SettingsError(
            f"advantage='gae' has a critic with whole weights on each process, and {kind} shares weights out. Use DDP "
            "(with LoRA if memory is short), pass value_function=..., or use an estimator such as 'rebn'."
        )
