"""Completes ROLL's own configuration from the section `gem`."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from gem_roll.settings import ROLLSettings, batches_ahead

TAG = "gem"
"""The only environment type in ROLL's configuration; `gem.env` decides which environments are played."""

SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
"""The sampler of the trained policy; see `check_sampling`. ROLL's defaults are 0.95, 0.7 and 50."""


def completed(config: dict[str, Any], settings: ROLLSettings) -> dict[str, Any]:
    """The completed configuration. Given values do not change.

    Args:
        config: ROLL's configuration, checked.
        settings: the section `gem`.
    """
    whole = copy.deepcopy(config)
    # The processes of a Ray cluster may have other working directories.
    named = {"report": settings.report, "record_folder": settings.record_folder}
    whole["gem"] |= {name: str(Path(folder).resolve()) for name, folder in named.items() if folder}
    whole.setdefault("eval_steps", 0)
    # A batch takes one group of each queue, the oldest. So a group never expires before it is trained on.
    whole["async_generation_ratio"] = batches_ahead(settings, config.get("ppo_epochs", 1))
    train, val = (whole.setdefault(name, {}) for name in ("train_env_manager", "val_env_manager"))
    train.setdefault("group_size", 1)
    train.setdefault("num_env_groups", whole["rollout_batch_size"] // train["group_size"])
    evaluated = settings.eval_episodes if whole["eval_steps"] > 0 else 1  # ROLL prepares an evaluation anyway
    val.setdefault("group_size", 1)
    val.setdefault("num_env_groups", evaluated)
    whole["val_batch_size"] = evaluated * val["group_size"]
    for manager in (train, val):
        manager["tags"], manager["num_groups_partition"] = [TAG], [manager["num_env_groups"]]
        given = {**train.get("generating_args", {}), **manager.get("generating_args", {})}
        manager["generating_args"] = {**SAMPLING, **given}
    whole["custom_envs"] = {TAG: {"env_type": TAG, "env_manager_cls": "gem_roll._env_manager.TurnEnvManager"}}
    whole.setdefault("actor_train", {}).setdefault("worker_cls", "gem_roll._worker.TurnActorWorker")
    training = whole["actor_train"].setdefault("training_args", {})
    # ROLL fills batches up to a multiple of this. `TurnActorWorker` sets the right number for each batch.
    training["gradient_accumulation_steps"] = settings.updates
    # Otherwise ROLL uses the probabilities before each update, or looks them up by a row's name, which copies share.
    whole["enable_old_logprobs_recompute"] = True
    for name, value in ALGORITHM.items():
        whole.setdefault(name, value)
    whole["gem"]["gamma"] = whole["step_reward_gamma"]
    return whole


ALGORITHM = {
    "adv_estimator": "reinforce",  # the adapter replaces its advantages
    "batch_adjust_mode": "copy",
    "loss_agg_mode": "seq-mean-token-sum",
    "init_kl_coef": 0.0,
    "gamma": 1.0,
    "step_reward_gamma": 0.95,  # ROLL's default
}
"""Settings of ROLL that leave the algorithm to `gem.advantage`."""
