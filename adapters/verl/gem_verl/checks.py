"""Refuses settings that cannot work, or that would silently change the algorithm, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from gem_core.errors import SettingsError
from gem_core.registry import advantage_spec
from gem_train.checks import (
    SILENT,
    check_aggregation,
    check_counts,
    check_fixed,
    check_multiple,
    check_rows,
    check_sampling,
)
from gem_verl.settings import VerlSettings

AGGREGATIONS = ("seq-mean-token-sum-norm", "seq-mean-token-sum", "token-sum", "token-mean")
"""Aggregations that weight all tokens of a batch equally, whatever the length of their rows."""

LOSSES = ("vanilla", "gpg", "gspo", "clip_cov", "kl_cov", "cispo", "dppo_tv", "dppo_kl", "dro", "bypass_mode")
"""Losses that follow `loss_agg_mode`; `sapo` and `geo_mean` average each row by its own length."""

FIXED = {
    "data.train_files": ("train", "rows come from environments, not from files"),
    "data.val_files": ("eval", "rows come from environments, not from files"),
    "data.custom_cls.path": ("pkg://gem_verl._tasks", "rows come from environments, not from another data set"),
    "data.shuffle": (False, "tasks are in random order by their seeds"),
    "data.gen_batch_size": (None, "a batch is played as a whole"),
    "data.train_max_samples": (-1, "environments never run out of tasks; see trainer.total_training_steps"),
    "data.val_max_samples": (-1, "see gem.eval_episodes"),
    "data.mm_processor_kwargs": ({}, "images have as many ids as the image processor's own configuration says"),
    "actor_rollout_ref.rollout.ignore_eos": (False, "a response ends where the model ends its turn"),
    "data.filter_overlong_prompts": (False, "episodes that exceed the context end truncated"),
    "critic.loss_agg_mode": ("token-mean", "the critic learns one value per turn, each with the same weight"),
    "algorithm.use_pf_ppo": (False, "it has no effect on turn-level advantages"),
    "reward.reward_model.enable": (False, "it would replace the rewards of the environments"),
    "reward.custom_reward_function.path": (None, "environments give the rewards"),
    "trainer.use_v1": (True, "only verl's V1 trainer supports turns"),
    "trainer.v1.trainer_mode": (
        "gem",
        "verl's own modes lack turns, and asynchronous training is not a mode but the setting gem.max_staleness",
    ),
    "trainer.v1.sync.parameter_sync_step": (None, "data.train_batch_size / ppo_mini_batch_size decides the updates"),
    "distillation.enabled": (False, "it replaces the loss"),
}
"""Settings of verl that must stay as in `conf/gem.yaml`: another value would change the algorithm or do nothing,
without a message."""

AT_LEAST_ONE = (
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.ppo_epochs",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.val_kwargs.n",
    "actor_rollout_ref.rollout.agent.num_workers",
    "critic.ppo_mini_batch_size",
    "trainer.total_training_steps",
    "trainer.total_epochs",
)


def check(config: DictConfig) -> VerlSettings:
    """Check a whole configuration and return its section `gem`.

    Raises:
        SettingsError: settings that cannot work together, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    settings = VerlSettings.of(config.gem)
    settings.import_modules()
    for name, theirs in settings.owned.items():
        # Compared by value, because verl replaces our references to its settings by values before its trainer starts.
        if config.gem[name] != OmegaConf.select(config, theirs):
            raise SettingsError(f"gem.{name} cannot be set here. Use {theirs}.")
    given = {name: rule for name, rule in FIXED.items() if OmegaConf.select(config, name) is not None}
    check_fixed(given, partial(OmegaConf.select, config), _spelled)
    _check_numbers(config)
    _check_settings(settings, config)
    _check_groups(settings, config)
    _check_ahead(settings, config)
    _check_separate(config)
    _check_loss(settings, config)
    for reason in [*_silent_changes(config), *_turn_row_reasons(settings, config)]:
        raise SettingsError(f"{reason} {SILENT}")
    tasks = config.data.train_batch_size
    settings.check_environments(tasks, f"data.train_batch_size={tasks}")
    if advantage_spec(settings.advantage).needs_values:
        settings.check_images(
            f"and algorithm.adv_estimator={settings.advantage} needs a critic, which verl makes of models of text. Use "
            "an estimator without one"
        )
    return settings


def _spelled(name: str, value: Any) -> str:
    return f"{name}={value}"


def _check_numbers(config: DictConfig) -> None:
    if OmegaConf.select(config, "trainer.total_training_steps") is None:
        raise SettingsError(
            "trainer.total_training_steps is not set: environments have no epochs, so give the number of steps"
        )
    check_counts(AT_LEAST_ONE, partial(OmegaConf.select, config), _spelled)
    for name in ("actor_rollout_ref.actor", "critic"):
        whole, size = config.data.train_batch_size, OmegaConf.select(config, name).ppo_mini_batch_size
        written = f"{name}.ppo_mini_batch_size={size}"
        reason = "their quotient is the number of updates per batch"
        check_multiple(whole, f"data.train_batch_size={whole}", size, written, reason)


def _check_settings(settings: VerlSettings, config: DictConfig) -> None:
    trainer = config.trainer
    evaluates = trainer.test_freq > 0 or trainer.val_before_train or trainer.get("val_only", False)
    settings.check("" if evaluates else "trainer.test_freq")
    tokens, prompt, rest = settings.max_response_tokens, config.data.max_prompt_length, config.data.max_response_length
    if tokens > rest:
        raise SettingsError(
            f"gem.max_response_tokens={tokens} is more than data.max_response_length={rest}, which limits all tokens "
            "after the first prompt of an episode"
        )
    settings.rollout(tokens, prompt + rest, limits=token_limits(settings, config))


def token_limits(settings: VerlSettings, config: DictConfig) -> str:
    """The settings that limit a response and a prompt, with their values."""
    prompt, rest = config.data.max_prompt_length, config.data.max_response_length
    return (
        f"gem.max_response_tokens={settings.max_response_tokens} with data.max_prompt_length={prompt}, "
        f"data.max_response_length={rest}"
    )


def _check_groups(settings: VerlSettings, config: DictConfig) -> None:
    size = config.actor_rollout_ref.rollout.n
    settings.check_groups(size, f"actor_rollout_ref.rollout.n={size}")
    needs_values = advantage_spec(settings.advantage).needs_values
    critic = needs_values if config.critic.enable is None else config.critic.enable
    if critic != needs_values:
        raise SettingsError(
            f"critic.enable={config.critic.enable}, but algorithm.adv_estimator={settings.advantage} "
            f"{'needs' if needs_values else 'does not use'} values; leave critic.enable out"
        )


def updates_per_batch(config: DictConfig) -> int:
    """Updates of the policy on each batch."""
    actor = config.actor_rollout_ref.actor
    return config.data.train_batch_size // actor.ppo_mini_batch_size * actor.ppo_epochs


def batches_ahead(settings: VerlSettings, config: DictConfig) -> int:
    """How many batches may be begun before their turn, within `gem.max_staleness`. Raises `SettingsError` if none."""
    fewer = "actor_rollout_ref.actor.ppo_mini_batch_size or actor_rollout_ref.actor.ppo_epochs"
    return settings.batches_within_bound(updates_per_batch(config), fewer)


def _check_ahead(settings: VerlSettings, config: DictConfig) -> None:
    _ = batches_ahead(settings, config)
    sampler, filters = config.trainer.v1.sampler, config.algorithm.filter_groups
    other = {
        "algorithm.filter_groups.enable=True": bool(filters and filters.enable),
        "trainer.v1.sampler.sync_refill_failed_groups=True": bool(sampler.get("sync_refill_failed_groups")),
        "trainer.v1.sampler.custom_sampler": bool((sampler.get("custom_sampler") or {}).get("name")),
    }
    for written, given in other.items():
        if settings.max_staleness and given:
            raise SettingsError(
                f"{written} decides which episodes are trained on, and so does gem.max_staleness="
                f"{settings.max_staleness}. Leave one of them out"
            )


def _check_separate(config: DictConfig) -> None:
    if config.actor_rollout_ref.hybrid_engine:
        return
    rollout = config.actor_rollout_ref.rollout
    for name in ("nnodes", "n_gpus_per_node"):
        if rollout[name] < 1:
            raise SettingsError(
                f"actor_rollout_ref.rollout.{name}={rollout[name]}, but with actor_rollout_ref.hybrid_engine=False the "
                "rollout servers have devices of their own. Give at least 1"
            )
    if rollout.checkpoint_engine.backend == "naive":
        raise SettingsError(
            "actor_rollout_ref.rollout.checkpoint_engine.backend=naive sends weights within a process, but with "
            "actor_rollout_ref.hybrid_engine=False the rollout servers have processes of their own. Use nccl"
        )


def _check_loss(settings: VerlSettings, config: DictConfig) -> None:
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    mode, loss = actor.loss_agg_mode, actor.policy_loss.loss_mode
    check_aggregation(f"actor_rollout_ref.actor.loss_agg_mode={mode}", mode, AGGREGATIONS)
    sampler = {name: rollout.get(name) for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
    check_sampling(sampler, lambda name, value: f"actor_rollout_ref.rollout.{name}={value}", scaled=True)
    correction = config.algorithm.rollout_correction or DictConfig({"rollout_is": None, "rollout_rs": None})
    across = {
        f"actor_rollout_ref.actor.policy_loss.loss_mode={loss}": loss == "gspo",
        f"algorithm.rollout_correction.rollout_is={correction.rollout_is}": correction.rollout_is == "sequence",
        f"algorithm.rollout_correction.rollout_rs={correction.rollout_rs}": "seq_" in str(correction.rollout_rs),
    }
    check_rows(settings, across)


def _silent_changes(config: DictConfig) -> Iterator[str]:
    actor, algorithm = config.actor_rollout_ref.actor, config.algorithm
    if actor.policy_loss.loss_mode not in LOSSES:
        yield (
            f"actor_rollout_ref.actor.policy_loss.loss_mode={actor.policy_loss.loss_mode} is not known to weight all "
            f"tokens equally. Use one of {', '.join(LOSSES)}."
        )
    scale = actor.loss_scale_factor
    if actor.loss_agg_mode == "seq-mean-token-sum-norm" and not (isinstance(scale, int | float) and scale > 0):
        yield (
            f"actor_rollout_ref.actor.loss_scale_factor={scale} is not a constant divisor (null is the longest row "
            "of each micro-batch). Leave it out to use gem.max_response_tokens, or give a number above 0."
        )
    if not algorithm.norm_adv_by_std_in_grpo:
        yield (
            "algorithm.norm_adv_by_std_in_grpo=False has no effect, because the estimator decides the scale. Use "
            "algorithm.adv_estimator=drgrpo for GRPO without the standard deviation."
        )
    if algorithm.filter_groups and algorithm.filter_groups.enable and config.actor_rollout_ref.rollout.n < 2:
        yield (
            "algorithm.filter_groups.enable=True removes groups without differences, and with "
            "actor_rollout_ref.rollout.n=1 a group is one episode. Use at least 2."
        )


def _turn_row_reasons(settings: VerlSettings, config: DictConfig) -> Iterator[str]:
    filters = config.algorithm.filter_groups
    several = settings.row == "turn" or settings.compaction is not None or settings.thoughts == "drop"
    if several and filters and filters.enable and filters.metric == "reward":
        yield (
            "algorithm.filter_groups.metric=reward compares rows, and an episode has several. Use "
            "algorithm.filter_groups.metric=return, or gem.row=episode without gem.compaction and gem.thoughts=drop."
        )
