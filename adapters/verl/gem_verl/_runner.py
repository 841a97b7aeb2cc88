"""The environments that all episodes of an agent worker share."""

from __future__ import annotations

import functools
import math
from typing import Any

from omegaconf import DictConfig
from transformers import AutoConfig
from verl.utils.fs import copy_to_local
from verl.utils.model import get_generation_config

from gem_train.playing import build_runner
from gem_train.rollout import ChatTemplate, EpisodeRunner, ImageReader, RolloutSettings, end_token_ids
from gem_train.settings import Split
from gem_train.shared_runners import SharedRunners
from gem_train.template_checks import check_conversations
from gem_verl.checks import batches_ahead, token_limits
from gem_verl.settings import VerlSettings

RUNNERS = SharedRunners()
"""The runners of this process."""


async def shared_runner(
    config: DictConfig, split: Split, tokenizer: Any, images: ImageReader | None = None
) -> EpisodeRunner:
    """The runner of this process for training or for validation.

    Args:
        config: verl's whole configuration.
        split: `train` or `eval`.
        tokenizer: the tokenizer of the policy.
        images: reads images for the policy; `None` for a model that reads text only.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError: as `gem_core.make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """
    return await RUNNERS.runner(split, functools.partial(build, config, split, tokenizer, images))


def build(config: DictConfig, split: Split, tokenizer: Any, images: ImageReader | None = None) -> EpisodeRunner:
    """A new runner; arguments and errors as `shared_runner`."""
    settings = VerlSettings.of(config.gem)
    return build_runner(
        settings,
        split,
        tokenizer,
        _rollout(config, settings),
        settings.concurrent(split, _share_of_batch(config, settings, split)),
        images,
    )


def check_model(config: DictConfig, tokenizer: Any, images: ImageReader | None) -> None:
    """Refuse a chat template that cannot carry the conversations of this run.

    Args:
        config, tokenizer, images: as for `shared_runner`.

    Raises:
        SettingsError, TemplateError, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as
            `check_conversations`.
    """
    settings = VerlSettings.of(config.gem)
    rollout, path = _rollout(config, settings), config.actor_rollout_ref.model.path
    template = rollout.template(tokenizer, images)
    ends = ends_of(template, tokenizer, path)
    check_conversations(settings, template, rollout, ends, token_limits(settings, config))


def ends_of(template: ChatTemplate, tokenizer: Any, model: str) -> tuple[int, ...]:
    """The token ids that end a response.

    Args:
        template, tokenizer: of the conversations.
        model: path of the model.
    """
    return end_token_ids(template, tokenizer, _generation_config(model))


@functools.cache
def _generation_config(model: str) -> Any:
    return get_generation_config(copy_to_local(model))


def _rollout(config: DictConfig, settings: VerlSettings) -> RolloutSettings:
    return settings.rollout(settings.max_response_tokens, _context_limit(config))


def _share_of_batch(config: DictConfig, settings: VerlSettings, split: Split) -> int:
    rollout = config.actor_rollout_ref.rollout
    tasks, episodes = (
        (config.data.train_batch_size * (1 + batches_ahead(settings, config)), rollout.n)
        if split == "train"
        else (settings.eval_episodes, rollout.val_kwargs.n)
    )
    # verl distributes whole tasks, each with all its episodes.
    return math.ceil(tasks / rollout.agent.num_workers) * episodes


def _context_limit(config: DictConfig) -> int:
    """Token limit of the engine for a prompt and its response."""
    model = AutoConfig.from_pretrained(
        copy_to_local(config.actor_rollout_ref.model.path),
        trust_remote_code=config.actor_rollout_ref.model.trust_remote_code,
    )
    limits = [
        config.data.max_prompt_length + config.data.max_response_length,
        config.actor_rollout_ref.rollout.max_model_len,
        getattr(model.get_text_config(), "max_position_embeddings", None),
    ]
    return min(limit for limit in limits if limit)
