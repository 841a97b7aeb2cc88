"""Advantages by the estimator's name, for adapters."""

from __future__ import annotations

import inspect
from collections.abc import MutableMapping
from typing import Any

import numpy as np

from gem_core.advantages._moments import CONSTANT_SPREAD, Moments
from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import returns_to_go
from gem_core.errors import AdvantageError
from gem_core.plugins import manager
from gem_core.registry import advantage_spec
from gem_core.turn_batch import FloatArray, TurnBatch


def compute_advantages(
    name: str, batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local, **options: Any
) -> tuple[FloatArray, dict[str, float]]:
    """Advantages of a rank's turns, and the metrics of the whole batch.

    Calls the `gem_batch` hook. Collective: every rank calls it for every batch, including batches without turns.

    Args:
        name: an estimator's name, built in or a plugin's.
        batch: the turns of this rank.
        gamma: discount per turn.
        gather: see `Gather`.
        options: further arguments of the estimator, for example `lam` of `gae`.

    Returns:
        float (N,) in the order of the batch, and the metrics `advantage/turns` (over all ranks),
        `advantage/return_mean` and `advantage/return_std` (of the returns-to-go), `advantage/zero` (the share of turns
        whose advantage is 0), with a critic `critic/explained_variance` (1 - var(return-to-go - value) /
        var(return-to-go): 1 for a perfect critic, 0 for a constant one, below 0 for a worse one), and those that
        plugins add.

    Raises:
        NotFoundError: no estimator of that name.
        AdvantageError: as the estimator, or the estimator did not return one finite number per turn.
    """
    spec = advantage_spec(name)
    estimator = spec.resolve()
    advantages = np.asarray(estimator(batch, gamma=gamma, gather=gather, **options), dtype=np.float64)
    if advantages.shape != (len(batch),) or not np.isfinite(advantages).all():
        raise AdvantageError(
            f"estimator {name!r} returned an array of shape {advantages.shape} for {len(batch)} turns, with "
            f"{int((~np.isfinite(advantages)).sum())} numbers not finite; it must return one finite number per turn"
        )
    returns = returns_to_go(batch, gamma)
    moments = Moments.over_ranks(returns, gather)
    metrics: dict[str, float] = {
        "advantage/turns": float(moments.count),
        "advantage/return_mean": moments.mean,
        "advantage/return_std": moments.std,
        "advantage/zero": Moments.over_ranks((np.abs(advantages) < CONSTANT_SPREAD).astype(float), gather).mean,
    }
    if spec.needs_values and batch.values is not None:
        metrics["critic/explained_variance"] = _explained(moments, returns - batch.values, gather)
    manager.notify("gem_batch", batch=batch, metrics=metrics)
    return advantages, metrics


def advantages_and_returns(
    name: str,
    batch: TurnBatch,
    *,
    gamma: float,
    lam: float,
    gather: Gather = gather_local,
    memory: MutableMapping[str, Any] | None = None,
) -> tuple[FloatArray, FloatArray, dict[str, float]]:
    """As `compute_advantages`, for trainings, which need returns as well and set lambda whatever the estimator.

    Args:
        name, batch, gamma, gather: as there.
        lam: lambda of GAE, per turn; passed only to estimators that take it.
        memory: what estimators such as `rae` keep between the batches of a training; passed only to those that take it.

    Returns:
        Advantages and returns, float (N,) each, and the metrics. Returns are the targets of the critic (advantage plus
        value) if the batch has values, otherwise returns-to-go.

    Raises:
        NotFoundError, AdvantageError: as `compute_advantages`.
    """
    taken = inspect.signature(advantage_spec(name).resolve()).parameters
    options: dict[str, Any] = {one: value for one, value in {"lam": lam, "memory": memory}.items() if one in taken}
    advantages, metrics = compute_advantages(name, batch, gamma=gamma, gather=gather, **options)
    returns = returns_to_go(batch, gamma) if batch.values is None else advantages + batch.values
    return advantages, returns, metrics


def _explained(returns: Moments, errors: FloatArray, gather: Gather) -> float:
    """The share of the variance of the returns of all ranks that the values explain; 0 if the returns are equal."""
    left = Moments.over_ranks(errors, gather)
    return 0.0 if returns.constant else 1.0 - (left.std / returns.std) ** 2
