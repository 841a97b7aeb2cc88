"""OpenRLHF's averages over trained tokens, for rows and micro-batches without trained tokens.

OpenRLHF divides by the number of trained tokens of a row, a micro-batch or an update. Padding rows have no trained
tokens, and would make metrics NaN or end the training with a ZeroDivisionError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from openrlhf.models import loss
from openrlhf.utils import loss_utils

NEXT_TO_NOTHING = 1e-9
"""Weight of a micro-batch without trained tokens in averages over tokens."""

_loss_norm = loss_utils._optimizer_step_loss_norm


@contextmanager
def safe_averages(*modules: ModuleType) -> Iterator[None]:
    """Make averages over no tokens 0 in OpenRLHF's losses and in these modules of OpenRLHF."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(loss_utils, "_optimizer_step_loss_norm", loss_norm))
        for module in (loss, *modules):
            stack.enter_context(patch.object(module, "masked_mean", masked_mean))
        yield


def masked_mean(tensor: torch.Tensor, mask: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """OpenRLHF's mean over the tokens of a mask, 0 for an empty mask."""
    return (tensor * mask).sum(dim=dim) / mask.sum(dim=dim).clamp(min=1)


def loss_norm(masks: Any, dp_group: Any, dp_size: int, gas: int) -> dict[str, Any]:
    """OpenRLHF's divisors of the loss of an update, never 0."""
    norm = _loss_norm(masks, dp_group, dp_size, gas)
    least = 1 / gas  # the divisor of an update with one token
    return {**norm, **{name: norm[name].clamp(min=least) for name in ("batch_num_tokens", "global_batch_size")}}


def weighed(training_step: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The actor's step on a micro-batch, with a number of tokens above 0, because OpenRLHF divides metrics by it."""

    def step(*args: Any, **kwargs: Any) -> dict[str, Any]:
        status = training_step(*args, **kwargs)
        return {**status, "num_action_tokens": status["num_action_tokens"] or NEXT_TO_NOTHING}

    return step
